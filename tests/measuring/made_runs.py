"""Made-up runs of benchmarks, for tests of reports."""

from fastops_bench.runs import Run

MACHINE = {
    "processor": "A <processor>",
    "cores": 2,
    "memory": 8 << 30,
    "system": "Linux",
    "load": 0.5,
}
METHOD = {"effort": "full", "tag": "all", "filter": [], "seconds": 12.0, "began": "2026-01-01"}


def samples(first, count=31):
    """Return times that differ from a number by a few percent, the same ones in each call."""
    return [first * (1 + (place * 7 % 11 - 5) / 500) for place in range(count)]


def race(suite, group, label, arms, tag="short", count=31, **about):
    return {
        "suite": suite,
        "group": group,
        "label": label,
        "tag": tag,
        "samples": {arm: samples(time, count) for arm, time in arms.items()},
        **about,
    }


LAYERS = {"floor": 16, "numpy": 200, "kernel": 300, "fastops": 400, "fast path": 5000}


def ladder(factor=1.0):
    """Return the rows of two ops, fastops by a factor faster."""
    for label, slow in (("AddV2 scalar", 6000), ("MatMul 2x2", 9000)):
        arms = LAYERS | {"fastops": 400 / factor, "raw_ops": slow, "tf": 2 * slow}
        yield race("ladder", "ladder", label, arms)


def sizes():
    """Return a sweep: a kernel takes 300 ns and 1 ns per element, fastops 100 ns more."""
    for power in range(6):
        kernel = 300 + 10**power
        arms = {"kernel": kernel, "fastops": kernel + 100, "raw_ops": kernel + 6000}
        sweep = {"of": "AddV2", "along": "elements", "at": 10**power}
        yield race("sizes", "sizes", f"AddV2 of {10**power}", arms, sweep=sweep)


def others():
    along = {"of": "StridedSlice", "along": "attributes"}
    for at in (0, 1, 5):
        sweep = along | {"at": at}
        arms = {"fastops": 600, "raw_ops": 12000}
        yield race("scaling", "scaling, attributes", f"{at} attributes", arms, sweep=sweep)
    single = {
        "fastops": [400 + place % 97 for place in range(1000)],
        "raw_ops": [6000] * 1000,
    }
    yield {"suite": "latency", "group": "latency", "label": "AddV2", "tag": "short"} | {
        "single": single
    }
    yield race("install", "calls", "a | b", {"installed": 500, "stock": 12000})
    yield race("install", "calls", "x[0] < y", {"installed": 900, "stock": 60000})
    yield race("function", "chain", "10", {"plan": 3000, "kernel": 300})
    yield {"suite": "import", "group": "import", "label": "import fastops", "tag": "short"} | {
        "seconds": [0.02, 0.03],
        "growth": [2_000_000, 3_000_000],
    }


def made(factor=1.0, peers=True):
    """Return a run in whose ladder fastops is faster by a factor."""
    main = {
        "versions": {"python": "3.11.7", "fastops": "0.1.0"},
        "records": [*ladder(factor), *sizes(), *others()],
        "failed": [],
        "skipped": [{"name": "libraries: one", "why": "sonnet is not installed"}],
    }
    processes = {"main": main}
    if peers:
        # This machine is twice as slow at everything.
        arms = {"numpy": 400, "torch": 1600}
        records = [race("ladder", "ladder", "AddV2 scalar", arms)]
        alone = race("ladder", "ladder", "AddV2 scalar", {"numpy": 400, "raw_ops": 12000})
        empty = {"versions": {"python": "3.11.7"}, "failed": [], "skipped": []}
        processes["torch"] = empty | {"records": records}
        processes["tensorflow"] = empty | {"records": [alone]}
    return Run(processes, dict(MACHINE), dict(METHOD))
