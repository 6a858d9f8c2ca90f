"""Run the steps of the proof, each in a new process."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from .report import CUT, DIED, Report, outcome, step_lines

STEPS = {
    "doctor": (120, "the device, the libraries, the path of a call"),
    "parity": (1200, "each op with a kernel there: bits, paths"),
    "demo": (240, "examples/digits_online.py: the same weights as stock"),
    "ladder": (300, "small ops 3 times faster, 1.5 us above the bare kernel; large not slower"),
    "plan": (180, "a perceptron's training step through a plan, 5 times faster"),
    "training": (300, "Keras's fit under install: the same weights as stock"),
    "programs": (300, "eager programs under install: the same bytes as stock"),
    "memory": (300, "flat over a million calls, on the host and on the device"),
    "sanitizer": (600, "compute-sanitizer over quick tests, and over the ops of the ladder"),
}
"""By name, the time limit of a step in seconds, and what it tests."""

GPU = "GPU:0"
FAULTED = 70
"""The exit status of a step that has lost the device and continues in another process."""

MOST_DEATHS = 40
"""The number of processes after which a step is given up."""

CACHE = 4 << 30
"""The size in bytes of the driver's cache of code compiled for this GPU."""


def prove(options):
    """Run the command; return its exit status."""
    if options.list:
        for name, (seconds, purpose) in STEPS.items():
            print(f"{name:<10} {seconds:>5} s  {purpose}")
        return 0
    if unknown := set(options.step or ()) - set(STEPS):
        print(f"no such step: {', '.join(sorted(unknown))}; --list lists them", file=sys.stderr)
        return 2
    device = options.device or GPU
    if not device.upper().startswith("CPU") and not gpus():
        print(
            f"there is no {device} here: NVIDIA's driver finds no GPU. "
            "`--device CPU:0` tries the steps without one.",
            file=sys.stderr,
        )
        return 2
    place = Path(sys.prefix)
    if not (place / "tree").is_dir():
        print(f"{place} is not assembled: run its bin/python", file=sys.stderr)
        return 2
    runner = Runner(place, device, options)
    return 0 if runner.run(options.step or list(STEPS)) else 1


def gpus():
    """Return the number of GPUs that NVIDIA's driver finds."""
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value


class Runner:
    """Runs steps in an assembled folder.

    Parameters
    ----------
    place : Path
        The folder.
    device : str
        The device, such as ``GPU:0``.
    options : argparse.Namespace
        The options of the command.
    """

    def __init__(self, place, device, options):
        self._place, self._device, self._options = place, device, options
        self._out = (options.out or place / "proof").absolute()
        self._out.mkdir(parents=True, exist_ok=True)
        self._begin = time.monotonic()

    def run(self, names):
        """Run steps; return whether all succeeded."""
        report = Report(self._out, self._device, self._options.resume)
        for name in names:
            if self._options.resume and report.done(name):
                continue
            if self._left() <= 0:
                print(f"{name}: no time is left for it; --resume continues")
                continue
            print(f"{name} ...", flush=True)
            report.keep(name, self.step(name))
            print(*step_lines(name, report.content["steps"][name]), sep="\n", flush=True)
        print(f"{self._out / 'report.txt'}")
        return report.good(names)

    def step(self, name):
        """Run a step, in more processes if one ends and it can continue; return the result."""
        begin = time.monotonic()
        limit = min(self._options.step_limit or STEPS[name][0], self._left())
        result = self._out / f"{name}.json"
        result.unlink(missing_ok=True)
        request = {
            "step": name,
            "device": self._device,
            "out": str(self._out),
            "place": str(self._place),
            "quick": self._options.quick,
            "ops": self._options.ops,
            "share": self._options.share,
            "resume": self._options.resume,
        }
        ended, deaths = "", []
        while not result.exists() and not ended:
            left = limit - (time.monotonic() - begin)
            # The system's clock, which the process also reads.
            ends = {"begin": time.monotonic(), "seconds": left * 0.8}
            status = self._process(name, request | ends, left)
            request["resume"] = True
            if status is None:
                ended = CUT
            elif status != 0:
                deaths.append(how(status))
                # Other steps store nothing from which the next process could continue.
                if name != "parity" or len(deaths) > MOST_DEATHS:
                    ended = DIED
            elif not result.exists():
                ended = DIED
        content = json.loads(result.read_text()) if result.exists() else {}
        judged = outcome(content.get("verdicts", ())) if content else ended
        if deaths:
            content["notes"] = [*content.get("notes", ()), f"processes ended: {', '.join(deaths)}"]
        if not result.exists():
            content["notes"] = [
                *content.get("notes", ()),
                f"the end of {name}.log:",
                *self._tail(name),
            ]
        elapsed = time.monotonic() - begin
        return {"outcome": content.get("outcome") or judged, "seconds": elapsed} | {
            key: value for key, value in content.items() if key != "outcome"
        }

    def _process(self, name, request, seconds):
        """Run one process of a step; return its status, or `None` if its time was over."""
        command = [self._place / "bin" / "python", "-m", "tools.gpu.steps", json.dumps(request)]
        with (self._out / f"{name}.log").open("a") as log:
            process = subprocess.Popen(
                [*map(str, command)],
                cwd=self._place / "tree",
                env=self._variables(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # its child processes end with it
            )
            try:
                return process.wait(timeout=max(1, seconds))
            except subprocess.TimeoutExpired:
                return None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def _variables(self):
        variables = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"} | {
            "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1"),
            # Otherwise TensorFlow allocates almost all memory, but a step starts several processes.
            "TF_FORCE_GPU_ALLOW_GROWTH": "true",
            "CUDA_CACHE_PATH": str(self._place / "cuda-cache"),
            "CUDA_CACHE_MAXSIZE": str(CACHE),
            "COLUMNS": "100",
            "FASTOPS_DEVICES": self._options.direct_on,
            "LD_LIBRARY_PATH": self._libraries(),
        }
        if self._device.upper().startswith("CPU"):
            variables["CUDA_VISIBLE_DEVICES"] = "-1"
        return variables

    def _libraries(self):
        """Return the search path of libraries: TensorFlow does not find all of NVIDIA's itself."""
        packed = sorted(self._place.glob("lib/python*/site-packages/nvidia/*/lib"))
        before = os.environ.get("LD_LIBRARY_PATH")
        return os.pathsep.join([*map(str, packed), *([before] if before else [])])

    def _left(self):
        if self._options.limit is None:
            return float("inf")
        return self._options.limit - (time.monotonic() - self._begin)

    def _tail(self, name):
        lines = (self._out / f"{name}.log").read_text(errors="replace").splitlines()
        return [line[:200] for line in lines[-8:]]


def how(status):
    """Return a description of how a process ended."""
    if status == FAULTED:
        return "the device was lost"
    if status < 0:
        return signal.Signals(-status).name
    return f"exit status {status}"
