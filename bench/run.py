"""Runs the benchmarks, leaves what they measured as JSON, and prints the report.

Everything is measured by pytest-benchmark in one process, the ladder of the ops that oneDNN may
replace, and the functions, once more in a process where TensorFlow does without oneDNN, and
PyTorch, JAX and ONNX Runtime in an environment of their own (``--peers-only``), whose figures the
report merges. The demo runs last.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import report

HERE = Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="try everything, measure nothing well")
    parser.add_argument(
        "--peers-only", action="store_true", help="measure the other libraries only"
    )
    parser.add_argument("--results", type=Path, default=HERE / "results", help="where JSON goes")
    args = parser.parse_args()
    results = args.results.resolve()
    results.mkdir(parents=True, exist_ok=True)

    def run(*command, **environment):
        """Run a Python program; where it fails, it has said why, and that is the end."""
        done = subprocess.run([sys.executable, *command], cwd=HERE, env=os.environ | environment)
        if done.returncode:
            sys.exit(done.returncode)

    def measure(name, *what, **environment):
        options = ["--quiet", "--benchmark-quiet", "-oaddopts=", *(["--quick"] * args.quick)]
        file = f"--benchmark-json={results / name}.json"
        run("-m", "pytest", *options, file, *what, **environment)

    if args.peers_only:
        files = ["bench_keras.py", "bench_ladder.py", "bench_perceptron.py", "bench_serving.py"]
        measure("peers", *files)
    else:
        measure("main", *sorted(path.name for path in HERE.glob("bench_*.py")))
        files = ["bench_ladder.py", "bench_function.py"]
        measure("plain", *files, "-m", "onednn", TF_ENABLE_ONEDNN_OPTS="0")
        images = ["--images=40"] * args.quick
        run(HERE.parent / "examples" / "digits_online.py", f"--json={results}/demo.json", *images)
    report.show(results)


if __name__ == "__main__":
    main()
