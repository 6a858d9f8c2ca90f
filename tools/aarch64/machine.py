"""The emulated machine: its files, and processes in it.

Only the standard library is imported here, since `tools.wheels` runs without other packages.
"""

import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from . import GLIBC, PACKAGES, PROCESSOR, PROGRAMS, PYTHON, ROOT, FailedError

SUPPORTED = runpy.run_path(str(ROOT / "fastops" / "_core" / "supported.py"))
TENSORFLOW = SUPPORTED["released"]()[-1]

# The kernel does not start programs for aarch64, so an emulated Python that starts `sys.executable`
# has to start this script, which starts the emulator again.
START = """\
#!/bin/sh
export QEMU_LD_PREFIX='{root}'
exec '{emulator}' -cpu {processor} -0 '{python}' '{root}/usr/bin/python{version}' "$@"
"""

VENV = "home = {root}/usr/bin\ninclude-system-site-packages = false\n"

# The plugin of pytest is not imported as a part of this package, which would import TensorFlow.
PLUGIN = "tools/aarch64/plugin"

COMPILER = "aarch64-linux-gnu-g++"

SYSCONFIG = "_sysconfigdata__aarch64-linux-gnu"

HOST_CPU = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}


class Machine:
    """An emulated machine in a folder.

    Parameters
    ----------
    folder : Path
        Where all its files are.
    jobs : int
        How many compilers run at once.
    say : callable
        Called with a text about each step.
    requirements : list of str, optional
        What pip installs; default: TensorFlow, and what the tests require.
    """

    def __init__(self, folder, jobs=1, say=print, requirements=None):
        self.folder = folder
        self._requirements = requirements
        self.root = folder / "root"
        self.tree = folder / "tree"
        self.python = folder / "venv" / "bin" / "python"
        self.packages = folder / "venv" / "lib" / f"python{PYTHON}" / "site-packages"
        self._jobs = jobs
        self._say = say

    # Files ---------------------------------------------------------------------------------------

    def make(self):
        """Make what is missing, without a copy of the checkout."""
        lacking = [name for name in PROGRAMS if shutil.which(name) is None]
        if lacking:
            packages = " ".join(PROGRAMS[name] for name in lacking)
            raise FailedError(f"{' and '.join(lacking)}: not found (apt-get install {packages})")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._once("root", PACKAGES, self._unpack)
        self._once("start", self.start_script(), self._write_start)
        self._once("packages", self._requirements or self.requirements(), self._install)

    def prepare(self):
        """Make what is missing, and update the copy of the checkout."""
        from tools import matrix

        self.make()
        matrix.copy(ROOT, self.tree)
        # The copy is found as an editable installation, with its plugin of pytest.
        self.host("metadata", sys.executable, "setup.py", "--quiet", "egg_info", cwd=self.tree)
        places = (self.tree, self.tree / "bench")
        (self.packages / "fastops-checkout.pth").write_text("".join(f"{at}\n" for at in places))

    def forget(self):
        """Remove the outcomes of former runs."""
        for name in ("tests", "parity", "tree/build/parity"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _once(self, name, key, make):
        """Make a part, unless a file says that it is complete and was made with this key."""
        complete = self.folder / f"{name}.complete"
        if complete.exists() and complete.read_text() == str(key):
            return
        complete.unlink(missing_ok=True)
        make()
        complete.write_text(str(key))

    def _unpack(self):
        """Download Debian's packages for arm64 and unpack them; apt's own state is not used."""
        self._say("Debian's packages for arm64")
        apt = self.folder / "apt"
        for place in ("state/lists/partial", "cache/archives/partial"):
            (apt / place).mkdir(parents=True, exist_ok=True)
        (apt / "status").touch()
        settings = {
            "Dir::State": apt / "state",
            "Dir::State::status": apt / "status",  # nothing is installed, so all is downloaded
            "Dir::Cache": apt / "cache",
            "APT::Architecture": "arm64",
            "APT::Architectures": "arm64",
            "APT::Sandbox::User": "",
            "Debug::NoLocking": "1",
        }
        command = ["apt-get", *(f"-o{name}={value}" for name, value in settings.items())]
        self.host("apt-get update", *command, "update")
        fetch = ("install", "--download-only", "--yes", "--no-install-recommends", *PACKAGES)
        self.host("apt-get install", *command, *fetch)
        shutil.rmtree(self.root, ignore_errors=True)
        for package in sorted((apt / "cache" / "archives").glob("*.deb")):
            if not package.name.startswith(("dpkg_", "tar_")):
                self.host("dpkg", "dpkg", "--extract", package, self.root)
        # Only Python's headers: those of the C library are the cross compiler's.
        include = self.folder / "include"
        shutil.rmtree(include, ignore_errors=True)
        for place in (f"python{PYTHON}", f"aarch64-linux-gnu/python{PYTHON}"):
            shutil.copytree(self.root / "usr" / "include" / place, include / place)
        settings = self.folder / "sysconfig"
        settings.mkdir(exist_ok=True)
        shutil.copy2(self.root / "usr" / "lib" / f"python{PYTHON}" / f"{SYSCONFIG}.py", settings)

    def start_script(self):
        """Return the text of the script that starts the emulated Python."""
        return START.format(
            root=self.root,
            emulator=shutil.which("qemu-aarch64"),
            processor=PROCESSOR,
            python=self.python,
            version=PYTHON,
        )

    def _write_start(self):
        self.python.parent.mkdir(parents=True, exist_ok=True)
        self.python.write_text(self.start_script())
        self.python.chmod(0o755)
        (self.folder / "venv" / "pyvenv.cfg").write_text(VENV.format(root=self.root))

    @staticmethod
    def requirements():
        """Return what pip installs: TensorFlow, and what the tests and builds require."""
        project = (ROOT / "pyproject.toml").read_text()
        group = r"^{} = \[(.*?)\]$"
        names = ("requires", "bench", "demo", "examples", "rollouts", "test")
        texts = [re.search(group.format(name), project, re.M | re.S)[1] for name in names]
        asked = {found for text in texts for found in re.findall(r'"([^"]+)"', text)}
        ours = {one for one in asked if one.startswith("fastops") or "python_version" in one}
        return [f"tensorflow=={TENSORFLOW}.*", "rich>=13", *sorted(asked - ours)]

    def _install(self):
        """Unpack the wheels for aarch64. The host's pip does it, since it need not run them."""
        self._say("TensorFlow and other packages")
        shutil.rmtree(self.packages, ignore_errors=True)
        platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in reversed(GLIBC)]
        command = [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"),
            *("--only-binary=:all:", "--implementation=cp", f"--python-version={PYTHON}"),
            *(*platforms, "--platform=manylinux2014_aarch64", f"--target={self.packages}"),
        ]
        self.host("pip", *command, *(self._requirements or self.requirements()))
        if self._requirements is None:
            self.host("pip", *command, "--no-deps", f"tf_keras=={TENSORFLOW}.*")

    # Processes -----------------------------------------------------------------------------------

    def host(self, step, *command, **options):
        """Run a program of the host; return its output, or raise `FailedError`."""
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)
        if done.returncode:
            said = (done.stdout + done.stderr).strip().splitlines()
            raise FailedError(f"{step}: {said[-1] if said else f'exit status {done.returncode}'}")
        return done.stdout

    def build(self):
        """Compile the extensions for the emulated Python, as far as their sources have changed."""
        self._say("extensions")
        place = self.tree / "build" / f"release-cpython-{PYTHON.replace('.', '')}-aarch64-linux-gnu"
        place.mkdir(parents=True, exist_ok=True)
        # The names of translated modules contain a digest of their sources.
        for made in ROOT.glob("build/release-*/*.cpp"):
            if not (place / made.name).exists():
                shutil.copy2(made, place)
        environment = os.environ | self.cross(self.tree / "tools" / "pep517")
        environment["FASTOPS_JOBS"] = str(self._jobs)
        command = (sys.executable, "tools/aarch64/compiling.py", self.python)
        said = self.host("extensions", *command, cwd=self.tree, env=environment)
        (self.folder / "build.log").write_text(said)

    def cross(self, *path):
        """Return the environment variables with which the host's Python compiles for aarch64.

        Its `sysconfig` then answers as the emulated Python's would. The headers of that Python come
        before the host's, which the build adds.

        Parameters
        ----------
        *path
            More folders of modules.
        """
        include = self.folder / "include"
        return {
            "_PYTHON_SYSCONFIGDATA_NAME": SYSCONFIG,
            "PYTHONPATH": ":".join(map(str, (self.folder / "sysconfig", *path))),
            "CXX": f"{COMPILER} -I{include / f'python{PYTHON}'} -I{include}",
        }

    def environment(self, **variables):
        """Return the environment variables of an emulated process."""
        return {
            **os.environ,
            **HOST_CPU,
            "PATH": f"{self.python.parent}:{os.environ['PATH']}",
            "PYTHONPATH": ":".join(str(self.tree / place) for place in ("", "tests", PLUGIN)),
            "COLUMNS": "100",
            **variables,
        }

    def run(self, log, limit, *command, **variables):
        """Run a command of the emulated Python in the copy.

        Parameters
        ----------
        log : Path
            The file for its output.
        limit : float
            The seconds after which it is stopped, with all processes that it started.
        *command
            The arguments of Python.
        **variables
            Additional environment variables.

        Returns
        -------
        int or None
            The exit status; None if the command was stopped.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as out:
            process = subprocess.Popen(
                [str(self.python), *map(str, command)],
                cwd=self.tree,
                env=self.environment(**variables),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                return process.wait(timeout=max(limit, 0))
            except subprocess.TimeoutExpired:
                return None
            finally:
                stop(process)

    def describe(self):
        """Return the versions of what runs there."""
        names = ("tensorflow", "keras", "tf_keras", "numpy")
        found = {name: version(self.packages, name) for name in names}
        emulator = self.host("versions", "qemu-aarch64", "--version")
        python = self.host("versions", self.python, "--version", env=self.environment())
        return found | {
            "python": python.split()[-1],
            "qemu": re.search(r"version ([\d.]+)", emulator)[1],
            "processor": PROCESSOR,
        }


def version(packages, name):
    """Return the version of a package in a folder with unpacked wheels."""
    [place] = Path(packages).glob(f"{name}-*.dist-info")
    return place.name.removesuffix(".dist-info").rpartition("-")[2]


def stop(process):
    """End a process and all processes of its session's group."""
    if process.poll() is None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(timeout=10)
                return
            except subprocess.TimeoutExpired:
                continue
            except ProcessLookupError:
                return
