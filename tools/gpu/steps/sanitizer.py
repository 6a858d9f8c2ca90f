"""compute-sanitizer over quick tests, and over the ops of the ladder on the device."""

import shutil
import subprocess
import sys
from pathlib import Path

from tools.gpu.report import holds

from .request import Findings, SkippedError, put

TESTS = ("tests/dispatch", "tests/plans")
ERRORS = 99
"""The exit status of the program if it has found an error."""


def run(request):
    if request.kind != "GPU":
        raise SkippedError("there are no GPU kernels to check")
    program = find(Path(request.place))
    if not program:
        raise SkippedError("compute-sanitizer is neither on the path nor among the packages")
    findings = Findings()
    code = (
        "from tools.gpu.steps import request, sanitizer\n"
        f"sanitizer.exercise(request.Request('sanitizer', {request.device!r}, '', '.'))"
    )
    judge(findings, request, program, "ops on the device", ["-c", code])
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "quick", *TESTS]
    if not request.quick:
        judge(findings, request, program, "quick tests", tests)
    return findings


def find(place):
    """Return the command of the program; empty if it is not installed."""
    if command := shutil.which("compute-sanitizer"):
        return [command]
    packed = place.glob("lib/python*/site-packages/nvidia/*/bin/compute-sanitizer")
    for path in packed:
        # In the package, its libraries are not in the folder where it searches for them.
        return [str(path), "--injection-path", str(path.parents[1] / "lib")]
    return []


def judge(findings, request, program, what, command):
    """Run Python under the program, and return a verdict on its findings."""
    options = ["--tool", "memcheck", "--error-exitcode", str(ERRORS), "--target-processes", "all"]
    log = Path(request.out, f"sanitizer-{what.replace(' ', '-')}.log")
    with log.open("w") as out:
        try:
            status = subprocess.run(
                [*program, *options, sys.executable, *command],
                cwd=request.tree,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=max(1, request.left()),
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            status = None
    text = log.read_text(errors="replace")
    lines = [line for line in text.splitlines() if "ERROR SUMMARY" in line or " passed" in line]
    said = "; ".join(line.strip("= ") for line in lines[-2:])
    said = said or ("it took too long" if status is None else f"exit status {status}")
    clean = "ERROR SUMMARY: 0 errors" in text and status is not None and status != ERRORS
    findings.verdicts.append(holds(f"{what}: no memory errors", clean, said))


def exercise(request):
    """Call the ops of the ladder a few times, with fastops."""
    import numpy as np

    import fastops

    from .ladder import SHAPE, SMALL

    values = put(np.ones(SHAPE, np.float32), request.device)
    square = put(np.ones((64, 64), np.float32), request.device)
    with request.scope():
        for name, (arguments, _) in SMALL.items():
            for _ in range(5):
                getattr(fastops.raw_ops, name)(**dict.fromkeys(arguments, values)).numpy()
        for _ in range(5):
            fastops.raw_ops.MatMul(a=square, b=square).numpy()
