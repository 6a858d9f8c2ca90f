"""The commands ``config`` and ``doctor``, which show what is active in this environment."""

import platform
import sys

import numpy as np
import tensorflow as tf
from rich.table import Table

from fastops import _registry
from fastops._build_info import BUILDS
from fastops._core import build, supported, threads
from fastops._core.reasons import REGISTRY
from fastops._install import placement, targets
from fastops._install.verify.results import chosen
from fastops._reports import counters
from fastops._reports.stats import stats
from fastops._shell.environment import ENVIRONMENT
from fastops._version import __version__


def _table(title, *columns):
    table = Table(title=title, title_justify="left")
    table.add_column(columns[0], no_wrap=True)
    for column in columns[1:]:
        table.add_column(column, overflow="fold")
    return table


def config(console):
    """List every ``FASTOPS_*`` environment variable."""
    table = _table("Environment variables", "variable", "value", "default", "choices", "meaning")
    for variable in ENVIRONMENT:
        table.add_row(
            variable.name,
            variable.value,
            variable.default,
            " | ".join(variable.choices or ("a positive number",)),
            variable.meaning,
        )
    console.print(table)
    return 0


def doctor(console):
    """Print versions, build and devices, and whether the direct path is live."""
    tf.config.list_logical_devices()  # initialises the context, as a call would do
    x, add = tf.constant(1.0), _registry.op("AddV2")
    for _ in range(2):
        add(x=x, y=x)
    obstacle = counters.direct_path_state()
    if obstacle is None and stats().ops["AddV2"].direct == 0:
        key = counters.cached_keys(add)[-1]
        obstacle = f"{REGISTRY[key['reason']].sentence} ({key['detail']})"

    running = build.describe(tf)
    table = _table("fastops doctor", "what", "value")
    rows = {
        "fastops": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "TensorFlow": f"{tf.version.VERSION} ({tf.version.GIT_VERSION}){_remark()}",
        "Keras": getattr(sys.modules.get("keras"), "__version__", "not imported"),
        "extensions": build.choose(running, BUILDS) or "compiled in place",
        "compiled for": build.versions(BUILDS),
        "devices": ", ".join(device.name for device in tf.config.list_logical_devices()),
        "oneDNN kernels": "on" if counters.onednn_enabled() else "off",
        "options": ", ".join(f"{k}={v}" for k, v in threads.get_options().items()),
        "verification": _verification(),
        "direct path": "live" if obstacle is None else f"not live: {obstacle}",
    }
    for row in rows.items():
        table.add_row(*row)
    console.print(table)
    console.print(_in_force())
    if left_out := targets.left_out():
        console.print(_left_out(left_out))
    return 0 if obstacle is None else 1


def _remark():
    """Say whether TensorFlow is a candidate of a release, or deprecated."""
    remark = supported.remark(tf.version.VERSION)
    return f", {remark}" if remark else ""


def _verification():
    """Say whether `install` verifies calls, by ``FASTOPS_VERIFY``."""
    mode, every = chosen(None, None)
    if mode is None:
        return "off"
    return f"{mode}, {'every call' if every == 1 else f'one call in {every}'}"


def _in_force():
    """Return a table of the stand-ins for TensorFlow's and Keras's Python code: active or not."""
    placement.uninstall()
    table = _table("What install replaces here", "layer", "active", "left out", "because")
    for layer, pieces in targets.in_force().items():
        left = {}
        for title, why in pieces.items():
            if why is not None:
                left.setdefault(why, []).append(title)
        count = len(pieces) - sum(map(len, left.values()))
        shown = str(count) if not left else f"{count} of {len(pieces)}"
        for why, titles in left.items() or [("", ())]:
            table.add_row(layer, shown, ", ".join(titles), why)
            layer = shown = ""
    return table


def _left_out(reasons):
    """Return a table of names that differ from the expected ones, by the stand-ins they disable."""
    table = _table("Names that are not as expected", "layer", "left out", "because")
    for (layer, title), why in reasons.items():
        table.add_row(layer, title, why)
    return table
