"""The ladder on the device: host time of small ops, and total time of large ops."""

import importlib.util
from contextlib import nullcontext

import numpy as np

from tools.gpu.report import at_least, at_most, holds, undecided

from .request import Findings, put, synchronize
from .timing import in_turn

FASTER = 3.0
ABOVE_KERNEL = 1.5
NOT_SLOWER = 0.97
"""The least share of stock's speed, minus the difference of stock from itself in the same
rounds."""

SMALL = {
    "AddV2": ("xy", "add"),
    "Mul": ("xy", "mul"),
    "Maximum": ("xy", "maximum"),
    "Neg": ("x", "neg"),
    "Exp": ("x", "exp"),
    "Tanh": ("x", "tanh"),
    "Relu": (["features"], "relu"),
    "Sigmoid": ("x", "sigmoid"),
}
"""Elementwise ops, with their arguments and names in PyTorch."""

SHAPE = (32,)


def run(request):
    findings = Findings()
    findings.table = [["op", "fastops us", "raw_ops us", "kernel us", "times", "torch us"]]
    with request.scope():
        for name, (arguments, torch_name) in SMALL.items():
            if request.quick and name not in ("AddV2", "Relu"):
                continue
            small(request, findings, name, arguments, torch_name)
        for name, library, make in (("MatMul", "libcublas.", matmul), ("Conv2D", "libcudnn", conv)):
            if request.has(library):
                large(request, findings, name, *make(request))
            else:
                findings.verdicts.append(undecided(f"large {name}", f"{library} is empty so far"))
    launch(request, findings)
    return findings


def small(request, findings, name, arguments, torch_name):
    """Time a small op on each layer, and judge its host time."""
    import tensorflow as tf

    import fastops

    random = np.random.default_rng(0)
    values = {argument: random.normal(size=SHAPE).astype(np.float32) for argument in arguments}
    names = {argument: put(value, request.device) for argument, value in values.items()}
    op = getattr(fastops.raw_ops, name)
    statement = f"op({', '.join(f'{argument}={argument}' for argument in arguments)})"
    stock = names | {"op": getattr(tf.raw_ops, name)}
    ours = names | {"op": op}
    arms = {"fastops": (statement, ours), "raw_ops": (statement, stock)}
    kernel, why = bare_kernel(request, op, names)
    if kernel is not None:
        arms["kernel"] = ("kernel()", {"kernel": kernel})
    arms |= torch_arm(request, torch_name, values)
    same = _bits(eval(statement, ours)) == _bits(eval(statement, stock))
    timed = in_turn(arms, everything(request), **brief(request))
    times = timed["raw_ops"].median / timed["fastops"].median
    findings.figures[name] = {arm: timing._asdict() for arm, timing in timed.items()}
    findings.verdicts.append(holds(f"{name}: bits of stock", same))
    findings.verdicts.append(at_least(f"{name}: faster than tf.raw_ops", times, FASTER, " times"))
    text = f"{name}: host time above the bare kernel"
    if "kernel" in timed:
        above = timed["fastops"].median - timed["kernel"].median
        findings.verdicts.append(at_most(text, above, ABOVE_KERNEL, " us"))
    else:
        findings.verdicts.append(undecided(text, why))
    _row(findings, name, timed, times)


def bare_kernel(request, op, names):
    """Return the bare kernel of a call, or `None`, and the reason why there is none."""
    from fastops._reports.floors import BareKernel

    try:
        kernel = BareKernel(op, **names)
        kernel()
    except (ValueError, RuntimeError) as error:
        return None, str(error)
    return kernel, ""


def torch_arm(request, name, values):
    """Return the arm of PyTorch, if it is installed and has the device."""
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch

    if request.kind == "GPU" and not torch.cuda.is_available():
        return {}
    device = "cpu" if request.kind == "CPU" else f"cuda:{request.device.partition(':')[2] or 0}"
    tensors = {argument: torch.tensor(value, device=device) for argument, value in values.items()}
    statement = f"op({', '.join(tensors)})"
    return {"torch": (statement, tensors | {"op": getattr(torch, name)})}


def matmul(request):
    """Return the inputs of a large product of matrices, and its attributes."""
    size = 4096 if request.kind != "CPU" else 768
    random = np.random.default_rng(1)
    matrices = {argument: random.normal(size=(size, size)).astype(np.float32) for argument in "ab"}
    return matrices, {}


def conv(request):
    """Return the inputs of a large convolution, and its attributes."""
    batch, side, depth = (64, 56, 64) if request.kind != "CPU" else (8, 28, 32)
    random = np.random.default_rng(2)
    image = random.normal(size=(batch, side, side, depth)).astype(np.float32)
    weights = random.normal(size=(3, 3, depth, depth)).astype(np.float32)
    return {"input": image, "filter": weights}, {"strides": [1, 1, 1, 1], "padding": "SAME"}


def large(request, findings, name, values, attrs):
    """Time a large op until its result is computed."""
    import tensorflow as tf

    import fastops

    names = {argument: put(value, request.device) for argument, value in values.items()} | attrs
    statement = f"op({', '.join(f'{argument}={argument}' for argument in names)})"
    arms = {
        "fastops": (statement, names | {"op": getattr(fastops.raw_ops, name)}),
        "raw_ops": (statement, names | {"op": getattr(tf.raw_ops, name)}),
    }
    arms["raw_ops again"] = arms["raw_ops"]
    results = [_bits(eval(*arms[arm])) for arm in ("raw_ops", "raw_ops", "fastops")]
    if results[0] != results[1]:
        findings.verdicts.append(
            undecided(f"large {name}: bits of stock", "stock's own runs differ")
        )
    else:
        findings.verdicts.append(holds(f"large {name}: bits of stock", results[2] == results[0]))
    options = brief(request) | {"block": 0.05, "whole": True}
    timed = in_turn(arms, everything(request), **options)
    times = timed["raw_ops"].median / timed["fastops"].median
    findings.figures[f"large {name}"] = {arm: timing._asdict() for arm, timing in timed.items()}
    noise = abs(1 - timed["raw_ops again"].median / timed["raw_ops"].median)
    bound = NOT_SLOWER - noise
    findings.verdicts.append(at_least(f"large {name}: speed of stock", times, bound, " times"))
    _row(findings, f"large {name}", timed, times)


def launch(request, findings):
    """Time the launch of an empty kernel, if the device has kernels."""
    if request.kind != "GPU":
        return
    from .launch import EmptyKernel

    kernel = EmptyKernel(int(request.device.partition(":")[2] or 0))
    arms = {"empty kernel": ("kernel()", {"kernel": kernel})}
    timed = in_turn(arms, kernel.synchronize, **brief(request))
    findings.figures["launch"] = {arm: timing._asdict() for arm, timing in timed.items()}
    median = timed["empty kernel"].median
    findings.notes.append(f"an empty kernel is launched, through ctypes, in {median:.2f} us")


def everything(request):
    """Return a context manager that waits for all work of the device."""
    if request.kind == "CPU":
        return nullcontext  # calls on the host end when their results are computed
    if importlib.util.find_spec("torch") is None:
        return synchronize
    import torch

    def both():
        synchronize()
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    return both


def brief(request):
    return {"rounds": 5, "block": 0.002} if request.quick else {}


def _bits(tensor):
    return tensor.numpy().tobytes()


def _row(findings, name, timed, times):
    def cell(arm):
        return f"{timed[arm].median:.2f}" if arm in timed else "-"

    ours = [cell(arm) for arm in ("fastops", "raw_ops", "kernel")]
    findings.table.append([name, *ours, f"{times:.2f}", cell("torch")])
