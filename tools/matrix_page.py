"""Make docs/matrix.md from the results of the matrix."""

import json
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "matrix.md"
EMULATED = Path(__file__).with_name("aarch64") / "results.json"

HEAD = """\
# Every supported version

`make matrix` writes this page from the runs in `tools/matrix.json`, and a test checks it.

A cell is a CPython and a TensorFlow, with the Keras that pip installs for them, in a separate
environment. There fastops was installed, and its tests were run. The column **fastops** tells
whether it was installed from a wheel, or compiled in a checkout. **Ladder** tells how many times
faster than `tf.raw_ops` fastops is, as the geometric mean over the short rows of
`python -m fastops bench ladder --quick`. This is a rough figure: the two were timed in turn, but on
machines that ran other work. [Speed](performance.md) has more exact figures.

{extents}
"""

EXTENT = {
    "whole": "**whole**: all tests",
    "quick": "**quick**: the tests that `pytest -m quick` runs, some of each part",
}

AARCH64 = """
## Linux on aarch64, emulated

`make aarch64` compiles fastops for Linux on aarch64 and runs it on another processor, by QEMU
{qemu}, which emulates a `{processor}`. **fastops was never run on such a processor.** The emulated
machine has CPython {python}, TensorFlow {tensorflow}, Keras {keras} and NumPy {numpy}. The tests
are the quick ones, by folder.

"""

STEPS = ("tests", "ladder", "parity")

MOST_SKIPS = 3
"""The number of skip reasons that a row names."""


def write(results, file, page=PAGE):
    """Write the page, and the file with the results that it shows.

    Parameters
    ----------
    results : list of dict
        The result of each cell, see `tools.matrix.Record`.
    """
    file.write_text(json.dumps([*map(kept, results)], indent=1, sort_keys=True) + "\n")
    page.write_text(render(json.loads(file.read_text()), emulated()))


def emulated(file=EMULATED):
    """Return the results of `make aarch64` that are checked in, or `None`."""
    return json.loads(file.read_text()) if file.exists() else None


def kept(result):
    """Return the part of a result that is checked in, with long lists shortened."""
    result = dict(result)
    if tests := result.get("tests"):
        few = dict(list(tests["skips"].items())[:20])
        result["tests"] = tests | {"failures": tests["failures"][:20], "skips": few}
    return result


def render(results, emulated=None):
    """Return the text of the page.

    Parameters
    ----------
    results : list of dict
        The result of each cell.
    emulated : dict, optional
        The results of `make aarch64`.
    """
    plain = [result for result in results if not result["cell"][2]]
    others = [result for result in results if result["cell"][2]]
    used = {result["tests"]["extent"] for result in results if "tests" in result}
    extents = ";\n".join(f"- {text}" for extent, text in EXTENT.items() if extent in used)
    parts = [HEAD.format(extents=f"{extents}." if extents else "")]
    parts += ["\n", _table(plain)]
    if others:
        parts += [
            "\n## The oldest Keras\n\n",
            "These are the same environments with the oldest Keras that `install` supports.\n\n",
            _table(others),
        ]
    failed = [result for result in results if result.get("tests", {}).get("failures")]
    if failed:
        parts += ["\n## What failed\n\n", *_failures(failed)]
    parts += _parity([result for result in results if "parity" in result])
    parts += _skips(results)
    states = sorted(
        {result[step]["state"] for result in results for step in STEPS if step in result}
    )
    if emulated:
        parts += _emulated(emulated)
        states = sorted({*states, emulated["state"]})
    if states:
        parts.append(
            "\n## States\n\nThe tested versions, by git's hash of the folder "
            f"(`git rev-parse HEAD:fastops`): {', '.join(f'`{state}`' for state in states)}.\n"
        )
    return "".join(parts)


def _table(results):
    head = ["CPython", "TensorFlow", "Keras", "NumPy", "fastops", "tests"]
    lines = [
        _row(*head, "passed", "failed", "skipped", "ladder"),
        _row(*["---"] * len(head), *["---:"] * 4),
    ]
    for result in results:
        versions = result.get("versions", {})
        python, tensorflow, keras = result["cell"]
        tests, measured = result.get("tests"), result.get("ladder")
        cells = [
            versions.get("python", python),
            versions.get("tensorflow-cpu", tensorflow),
            versions.get("keras", keras),
            versions.get("numpy", ""),
            {True: "wheel", False: "compiled"}.get(result.get("wheel") if tests else None, ""),
        ]
        if tests:
            counts = (f"{tests[name]:,}" for name in ("passed", "failed", "skipped"))
            cells += [tests["extent"], *counts]
        else:
            cells += [explain(result.get("failure", "not run")), "", "", ""]
        lines.append(_row(*cells, f"{measured['mean']:.1f}" if measured else ""))
    return "".join(lines)


def explain(failure):
    """Return a reason in a few words if it is a known one."""
    if "No matching distribution" in failure and "tensorflow" in failure:
        return "no wheel of TensorFlow"
    return failure.replace("|", "\\|").removeprefix("Keras: ")


def _failures(results):
    yield _row("CPython", "TensorFlow", "Keras", "test", "what it says")
    yield _row(*["---"] * 5)
    for result in results:
        for name, message in result["tests"]["failures"]:
            yield _row(*_names(result), f"`{name}`", message[:80].replace("|", "\\|"))


def _names(result):
    versions = result.get("versions", {})
    python, tensorflow, keras = result["cell"]
    return python, tensorflow, keras or ".".join(versions.get("keras", "").split(".")[:2])


def _parity(results):
    if not results:
        return
    yield "\n## Parity with each TensorFlow\n\n"
    yield "The table has the results of `make parity ARGS=--quick`, which the tests run, too. It\n"
    yield "compares every op that may be direct with `tf.raw_ops` of the same TensorFlow, bit for\n"
    yield "bit.\n\n"
    names = [result["versions"]["tensorflow-cpu"] for result in results]
    yield _row(
        "",
        *(
            f"{name}, CPython {result['cell'][0]}" if names.count(name) > 1 else name
            for name, result in zip(names, results, strict=True)
        ),
    )
    yield _row("---", *["---:"] * len(results))
    for figure in (name for name in results[0]["parity"] if name != "state"):
        yield _row(figure, *(f"{result['parity'][figure]:,}" for result in results))
    yield (
        "\nTwo kinds of calls are left out with TensorFlow 2.19. `Transpose` and\n"
        "`ConjugateTranspose` with negative numbers in the permutation read and write memory\n"
        "outside of the tensor there.\n"
        "`DecodeImage` does not support WebP there.\n"
    )


def _skips(results):
    reasons = {}
    for result in results:
        for reason, count in result.get("tests", {}).get("skips", {}).items():
            reasons.setdefault(reason, {})[_short(result)] = count
    if not reasons:
        return
    yield "\n## What was skipped\n\n"
    yield _row("reason", "tests, and where") + _row("---", "---")
    for reason, places in sorted(reasons.items()):
        by_count = {}
        for place, count in places.items():
            by_count.setdefault(count, []).append(place)
        total = sum("tests" in result for result in results)
        texts = (
            f"{count} in {'every cell' if len(found) == total else ', '.join(found)}"
            for count, found in by_count.items()
        )
        yield _row(reason.replace("|", "\\|").replace("\n", " "), "; ".join(texts))


def _emulated(results):
    yield AARCH64.format(**results["versions"])
    yield _row("tests", "passed", "failed", "skipped", "minutes") + _row("---", *["---:"] * 4)
    shares = results["tests"]
    names = ("passed", "failed", "skipped")
    for share in results["shares"]:
        if (found := shares.get(share)) is None:
            yield _row(f"`{share}`", "not run", "", "", "")
            continue
        text = f"`{share}`" if found["complete"] else f"`{share}`, stopped"
        minutes = f"{found['seconds'] / 60:.0f}" if found["seconds"] else ""
        yield _row(text, *(f"{found[name]:,}" for name in names), minutes)
    sums = [sum(found[name] for found in shares.values()) for name in (*names, "seconds")]
    yield _row("all", *(f"{count:,}" for count in sums[:-1]), f"{sums[-1] / 60:.0f}")
    if failures := [each for found in shares.values() for each in found["failures"]]:
        yield "\n" + _row("failed test", "what it says") + _row("---", "---")
        for name, message in failures:
            yield _row(f"`{name}`", message[:100].replace("|", "\\|"))
    yield from _emulated_parity(results.get("parity", []))
    if demo := results.get("demo"):
        bad = [task for task, same in demo.items() if not same]
        text = (
            f"differs from TensorFlow in: {', '.join(bad)}" if bad else "has TensorFlow's weights"
        )
        yield f"\nThe demo `examples/digits_online.py` {text}.\n"
    for task, found in results.get("weights", {}).items():
        yield (
            f"\nOf the {found['of']:,} weights after the {task}s of the demo, {found['same']:,} "
            "are those of the host to the last bit.\n"
            f"The largest difference is {found['difference']:.1e}.\n"
        )


def _emulated_parity(shares):
    done = [share for share in shares if "failure" not in share]
    if done:
        yield (
            f"\nParity, as in the table above, in {len(done)} of {shares[0]['shares']} shares "
            "of the ops:\n\n"
        )
        yield _row("", "sum") + _row("---", "---:")
        for figure in (name for name in done[0] if name not in ("share", "shares")):
            yield _row(figure, f"{sum(share[figure] for share in done):,}")
    for share in shares:
        if failure := share.get("failure"):
            yield f"\nShare {share['share']} of parity is not complete: {failure}.\n"


def _short(test):
    return " with ".join(filter(None, test["cell"]))


def _row(*cells):
    return f"| {' | '.join(cells)} |\n"
