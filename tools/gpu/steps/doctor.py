"""Describe the environment: the device, its driver, the libraries, and the path of a call."""

import ctypes
import platform
import subprocess
import sys

from tools.gpu.report import holds

from .request import Findings, put


def run(request):
    import tensorflow as tf

    import fastops

    findings = Findings()
    findings.machine = {
        "Python": platform.python_version(),
        "TensorFlow": f"{tf.version.VERSION} ({tf.version.GIT_VERSION})",
        "CUDA of TensorFlow": str(tf.sysconfig.get_build_info().get("cuda_version")),
        "driver": _driver(),
        "GPUs": _describe_gpus(tf),
    }
    devices = [device.name for device in tf.config.list_logical_devices()]
    findings.verdicts.append(holds(f"there is a {request.device}", request.has_device(), devices))
    empty = request.stand_ins()
    if empty:
        findings.notes.append(
            f"empty stand-ins for libraries that are not installed yet: {' '.join(empty)}"
        )
    doctor = subprocess.run(
        [sys.executable, "-m", "fastops", "doctor"], capture_output=True, text=True, check=False
    )
    print(doctor.stdout, doctor.stderr)
    last = (doctor.stderr.strip().splitlines() or [""])[-1]
    findings.verdicts.append(
        holds("python -m fastops doctor", doctor.returncode == 0, last if doctor.returncode else "")
    )
    x, y = (put(tf.constant(value), request.device) for value in ([1.0, 2.0], [3.0, 4.0]))
    with request.scope():
        fastops.reset_stats()
        for _ in range(4):
            result = fastops.raw_ops.AddV2(x=x, y=y)
        stats = fastops.stats().ops["AddV2"]
    there = result.device == request.full_name and result.numpy().tolist() == [4.0, 6.0]
    findings.verdicts.append(holds("1 + 3 and 2 + 4 are computed there", there, result.device))
    findings.figures["AddV2"] = paths = {
        "direct": stats.direct,
        "capi": stats.capi,
        "tensorflow": stats.tensorflow,
        "reasons": dict(stats.reasons),
    }
    findings.notes.append(f"four calls of AddV2 took these paths: {paths}")
    return findings


def _driver():
    """Return the CUDA version of the driver."""
    version = ctypes.c_int(0)
    try:
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except OSError:
        return "none"
    return f"for CUDA {version.value // 1000}.{version.value % 1000 // 10}"


def _describe_gpus(tf):
    details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
    names = [
        f"{detail.get('device_name')} ({'.'.join(map(str, detail.get('compute_capability', ())))})"
        for detail in details
    ]
    return ", ".join(names) or "none"
