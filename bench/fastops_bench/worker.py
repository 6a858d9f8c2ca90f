"""Run suites in this process, and report events to another process, line by line.

``python -m fastops_bench.worker`` reads its task from standard input, as JSON, and writes events to
a given file descriptor. In a separate process nothing else takes time, and the process can be set
up for TensorFlow without oneDNN, or for another library.
"""

import json
import os
import platform
import sys
from importlib import metadata
from pathlib import Path

import pytest

from fastops_bench import suites

RECORD = "fastops_bench"

PACKAGES = {
    *("fastops", "jax", "keras", "numpy", "onnxruntime", "tensorflow", "tensorflow_cpu"),
    *("tf_keras", "torch"),
}


def versions():
    """Return the versions of Python and of the measured libraries, by name."""
    found = {(each.name or "").replace("-", "_"): each.version for each in metadata.distributions()}
    return {"python": platform.python_version()} | {
        name: found[name] for name in sorted(PACKAGES & found.keys())
    }


def machine():
    """Return a description of this machine."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": names[0] if names else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": memory,
        "system": platform.platform(terse=True),
        "load": os.getloadavg()[0],
    }


class Teller:
    """A pytest plugin that selects tests and reports their results.

    Parameters
    ----------
    file : file object
        The file to which events are written.
    wanted : list of str
        Parts of names, one of which a test must contain; empty for all tests.
    tag : {"short", "long", "all"}
    """

    def __init__(self, file, wanted, tag):
        self._file = file
        self._wanted = [text.lower() for text in wanted]
        self._tag = tag
        self._names = {}

    def tell(self, event, **about):
        print(json.dumps({"event": event, **about}), file=self._file, flush=True)

    def pytest_collection_modifyitems(self, config, items):
        self._names = {item.nodeid: name_of(item) for item in items}
        chosen = [item for item in items if self._is_wanted(item)]
        if not chosen:
            self.tell("names", names=list(self._names.values()))
        items[:] = chosen

    def _is_wanted(self, item):
        of_tag = self._tag in ("all", tag_of(item))
        covers = item.get_closest_marker("covers")
        names = [self._names[item.nodeid], *(covers.args if covers else ())]
        text = "\n".join(names).lower()
        return of_tag and (not self._wanted or any(part in text for part in self._wanted))

    def pytest_collection_finish(self, session):
        tests = [{"name": self._names[i.nodeid], "tag": tag_of(i)} for i in session.items]
        self.tell("collected", tests=tests)

    def pytest_collectreport(self, report):
        if report.failed:
            self.tell("failed", name=report.nodeid, why=report.longreprtext)
        elif report.skipped:
            self.tell("skipped", name=Path(report.nodeid).stem, why=_last_line(report))

    def pytest_runtest_protocol(self, item):
        self.tell("begin", name=self._names[item.nodeid])

    def pytest_runtest_logreport(self, report):
        name = self._names[report.nodeid]
        if report.failed:
            self.tell("failed", name=name, why=report.longreprtext)
        elif report.skipped:
            self.tell("skipped", name=name, why=_last_line(report))
        elif report.when == "call":
            records = [value for key, value in report.user_properties if key == RECORD]
            self.tell("done", name=name, records=records)


def name_of(item):
    """Return the name of a benchmark: its suite, and what it measures."""
    suite = item.path.stem.removeprefix("bench_")
    own = item.name.removeprefix("test_")
    callspec = getattr(item, "callspec", None)
    return f"{suite}: {callspec.id if callspec else own}"


def tag_of(item):
    return "long" if item.get_closest_marker("long") else "short"


def _last_line(report):
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return reason.removeprefix("Skipped: ").strip().splitlines()[-1]


def main():
    """Run the task that is read from the standard input."""
    asked = json.load(sys.stdin)
    with os.fdopen(asked["events"], "w") as file:
        teller = Teller(file, asked["wanted"], asked["tag"])
        teller.tell("process", versions=versions(), machine=machine())
        options = [
            # Ignore the pytest configuration of the calling process.
            *("-c", os.devnull, f"--rootdir={suites.HERE}", "--confcutdir", str(suites.HERE)),
            *("--quiet", "-p", "no:cacheprovider", "-p", "no:doctest", "--tb=short"),
            f"--effort={asked['effort']}",
            *(f"--wanted={text}" for text in asked["wanted"]),
            *(["--collect-only"] if asked["list"] else []),
            *(["-m", asked["marked"]] if asked["marked"] else []),
        ]
        files = [str(suites.path(name)) for name in asked["suites"]]
        return pytest.main([*options, *files], plugins=[teller])


if __name__ == "__main__":
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    status = main()
    # Skip the exit handlers of libraries, which take a second.
    sys.stdout.flush()
    os._exit(int(status))
