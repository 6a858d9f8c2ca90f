"""Memory over a million calls, of the process and of the device."""

import gc
import os

import numpy as np

from tools.gpu.report import at_most, holds, undecided

from .request import Findings, put, synchronize

CALLS = 1_000_000
WARM_UP = 100_000
PART = 1000
"""The number of calls between checks of the time."""

GROWTH = 8.0
"""MiB by which the process may grow: enough for arenas of its allocators, and no more."""


def run(request):
    import fastops

    wanted = CALLS // 50 if request.quick else CALLS
    x = put(np.ones((8, 8), np.float32), request.device)
    add, multiply, matmul = (getattr(fastops.raw_ops, op) for op in ("AddV2", "Mul", "MatMul"))
    relu = fastops.raw_ops.Relu

    def calls(count):
        made = 0
        while made < count and request.left() > 0:
            for _ in range(PART // 4):
                y = add(x=x, y=x)
                y = multiply(x=y, y=x)
                y = relu(features=y)
                matmul(a=y, b=x)
            made += PART
            if not made % (100 * PART):
                synchronize()
        synchronize()
        gc.collect()
        return made

    findings = Findings()
    with request.scope():
        calls(min(WARM_UP, wanted))
        host, device = resident(), taken(request)
        made = calls(wanted)
        growth = resident() - host
        after = taken(request)
    findings.figures = {"calls": made, "host MiB": growth, "device bytes": [device, after]}
    findings.verdicts = [
        holds("calls", made >= wanted, f"{made:,} of {wanted:,}"),
        at_most("growth of the process", growth, GROWTH, " MiB"),
    ]
    if device is None:
        findings.verdicts.append(
            undecided("growth on the device", f"{request.device} does not tell")
        )
    else:
        findings.verdicts.append(at_most("growth on the device", after - device, 0, " bytes"))
    return findings


def resident():
    """Return the resident memory of the process in MiB."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def taken(request):
    """Return the bytes in use on the device, or `None` if the device does not report them."""
    import tensorflow as tf

    try:
        return tf.config.experimental.get_memory_info(request.device)["current"]
    except ValueError:
        return None
