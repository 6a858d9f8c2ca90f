"""Write docs/coverage.md: the results of the parity suite, op by op."""

from collections import defaultdict

import tensorflow as tf

from fastops import _registry
from fastops._core.tables import index
from parity import cases, recipes

PREAMBLE = """\
# Coverage

This page has the results of the parity suite for each op of TensorFlow {version} on the CPU.
`make parity` compares the ops and writes this page; a test checks it.

An op is **verified** for a dtype if each call of its recipe with inputs of that dtype gave the same
bytes, dtype, shape, device and structure as `tf.raw_ops`. The calls ran on the direct path, with
oneDNN, without oneDNN, and under op determinism. The gradients, the node inside `tf.function`, and
the exceptions of malformed calls were the same, too.
"""


def render(reports):
    """Return the text of docs/coverage.md.

    Parameters
    ----------
    reports : list of parity.run.Report
        One for each world.
    """
    findings = defaultdict(list)
    for report in reports:
        for finding in report.findings:
            if finding["check"] == "values":
                findings[finding["op_name"]].append(finding)
    rows, pairs = [], 0
    for op_name in cases.op_names():
        verified, refused = _dtypes(findings[op_name])
        pairs += sum(map(len, verified.values())) or bool(findings[op_name])
        rows.append((op_name, _path(findings[op_name]), _listed(verified), _why(op_name, refused)))
    direct = sum(path == "direct" for _, path, _, _ in rows)
    others = _others()
    totals = [
        (f"ops of the public registry, TensorFlow {tf.version.VERSION}", len(index.FAMILIES)),
        ("verified on the direct path", direct),
        ("pairs of such an op and a dtype", pairs),
        ("never direct, with a reason", sum(map(len, others.values()))),
    ]
    assert len(rows) + totals[-1][1] == totals[0][1]
    if direct != len(rows):
        totals.insert(3, ("verified on another path", len(rows) - direct))
    lines = [
        PREAMBLE.format(version=tf.version.VERSION),
        "| | |",
        "| --- | ---: |",
        *(f"| {text} | {count:,} |" for text, count in totals),
        "",
        "## On the direct path",
        "",
        "| op | path | dtypes verified | left out, and why |",
        "| --- | --- | --- | --- |",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        "## Never on the direct path",
        "",
        "These ops run through TensorFlow, by a cached operation (`capi`) or by TensorFlow's own",
        "function. `fastops.stats()` tells which.",
        "",
        *(
            line
            for reason, names in sorted(others.items(), key=lambda item: -len(item[1]))
            for line in (f"### {reason[:1].upper()}{reason[1:]} ({len(names)})", "",
                         ", ".join(f"`{name}`" for name in names), "")
        ),
    ]  # fmt: skip
    return "\n".join(lines)


def _dtypes(findings):
    """Return, by attribute, the verified dtypes, and the refused ones with the reason."""
    verified, refused = defaultdict(dict), defaultdict(dict)
    for finding in findings:
        for attr, dtype in finding["types"].items():
            if finding["paths"] and not finding["problems"]:
                verified[attr][dtype] = True
            elif finding["rejected"]:
                refused[attr][dtype] = finding["rejected"]
    for attr, dtypes in refused.items():
        for dtype in dtypes.keys() & verified[attr].keys():
            del dtypes[dtype]
    return verified, refused


def _path(findings):
    paths = {path for finding in findings for path in finding["paths"]}
    if any(finding["problems"] for finding in findings):
        return "**differs**"
    return ", ".join(sorted(paths)) or "none"


def _listed(by_attr):
    return "; ".join(f"{attr}: {' '.join(sorted(dtypes))}" for attr, dtypes in by_attr.items())


def _why(op_name, refused):
    notes = [recipes.UNCALLED.get(op_name, ""), recipes.INDIRECT.get(op_name, ("", ""))[1]]
    reasons = defaultdict(list)
    for attr, dtypes in refused.items():
        for dtype, because in dtypes.items():
            reasons[because].append(f"{attr}={dtype}")
    notes += [f"{' '.join(which)}: {because}" for because, which in reasons.items()]
    if op_name in recipes.DRAWN:
        notes.append("random in each call: dtype, shape and bounds are compared")
    if unstable := recipes.UNSTABLE.get(op_name):
        notes.append(f"compared within the spread of TensorFlow's own runs: {unstable.because}")
    return "; ".join(filter(None, notes)).replace("|", "\\|")


def _others():
    """Return the ops that are never direct, by reason."""
    reasons = defaultdict(list)
    for op_name in sorted(set(index.FAMILIES) - set(cases.op_names())):
        record = _registry.op(op_name).record
        if record.missing:
            reason = f"not in TensorFlow {tf.version.VERSION}"
        elif record.error is not None:
            reason = "raises DeprecatedOpError"
        else:
            reason = record.exclusion or "has no kernel for the CPU"
        reasons[reason].append(op_name)
    return reasons
