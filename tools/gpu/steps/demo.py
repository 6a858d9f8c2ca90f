"""The demo: a small network learns digits, one image at a time, with stock and with fastops."""

import json
import subprocess
import sys

from tools.gpu.report import holds

from .request import Findings


def run(request):
    images = ["--epochs", "1", "--images", "200"] if request.quick else []
    command = [sys.executable, "examples/digits_online.py", "--json", "-", *images]
    done = subprocess.run(command, cwd=request.tree, capture_output=True, text=True, check=False)
    print(done.stderr, flush=True)
    try:
        record = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return Findings(verdicts=[holds("the demo runs", False, last[:300])])
    findings = Findings(figures=record)
    for task, same in record["bit_identical"].items():
        findings.verdicts.append(holds(f"{task}: the same weights", same))
    findings.table = [["task", "library", "p50 us", "p99 us", "direct"]]
    for task, libraries in record["figures"].items():
        for name, row in libraries.items():
            direct = "" if row["direct"] is None else f"{row['direct']:.1%}"
            times = [f"{row['p50']:.1f}", f"{row['p99']:.1f}"]
            findings.table.append([task, name, *times, direct])
    return findings
