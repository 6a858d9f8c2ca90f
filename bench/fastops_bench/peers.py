"""The peers: other libraries, each in its own environment.

``python -m fastops_bench.peers FOLDER`` makes these environments, all or some of them.
"""

import argparse
import subprocess
import sys
import venv
from pathlib import Path

from fastops_bench.processes import Process
from fastops_bench.suites import SUITES

FOLDER = Path(".venv-peers")

MEASURES = ("numpy>=2.0", "pytest>=8", "rich>=13")
REQUIREMENTS = {
    "tensorflow": ("tensorflow-cpu>=2.19,<2.23,!=2.22.0",),
    "torch": ("torch==2.14.1", "scikit-learn>=1.5", "gymnasium>=1"),
    "jax": ("jax>=0.6",),
    "onnxruntime": ("onnxruntime>=1.20", "onnx>=1.18"),
}
"""The packages of each peer's environment. PyTorch's also has what the examples need."""

LIBRARIES = {"onnxruntime": "onnxruntime,onnx"}
"""The libraries that are measured in an environment, if they are not just the peer."""


def found(folder):
    """Return the interpreters of the environments in a folder, by peer."""
    pythons = {name: folder / name / "bin" / "python" for name in REQUIREMENTS}
    return {name: python for name, python in pythons.items() if python.exists()}


def processes(folder, suites, **settings):
    """Return a process for each peer that is measured in the suites."""
    for name, python in found(folder).items():
        theirs = [suite for suite in suites if name in SUITES[suite].peers]
        if theirs:
            libraries = LIBRARIES.get(name, name)
            # Do not resolve the interpreter's path: it is a link to a file outside of the
            # environment.
            yield Process(
                name, theirs, python=str(python.absolute()), libraries=libraries, **settings
            )


def make(folder, names):
    """Make environments, and install their packages."""
    for name in names:
        print(f"{folder / name}: {', '.join(REQUIREMENTS[name])}", flush=True)
        venv.create(folder / name, clear=True, with_pip=True)
        install = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        python = folder / name / "bin" / "python"
        subprocess.run([python, *install, *REQUIREMENTS[name], *MEASURES], check=True)


def main():
    parser = argparse.ArgumentParser(
        prog="python -m fastops_bench.peers", description="Make the environments of the peers."
    )
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER, help="default: %(default)s")
    parser.add_argument("--only", choices=REQUIREMENTS, action="append", help="may be repeated")
    args = parser.parse_args()
    try:
        make(args.folder, args.only or list(REQUIREMENTS))
    except subprocess.CalledProcessError as error:
        sys.exit(f"pip ended with status {error.returncode}")


if __name__ == "__main__":
    main()
