"""Profiles as traces and as pictures: `to_chrome_trace`, `to_html`, and their parts."""

import json
import os
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser

import keras
import pytest
import tensorflow as tf
from support import python

import fastops
from fastops import ops
from fastops._reports import flame, page, spans
from fastops._reports.costs import Costs, costs_of_noting
from fastops._reports.spans import Noted, Span, nest, tracks

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("fresh")]

X = tf.constant([1.0, 2.0])
VOID = {"meta", "br", "link", "img", "input", "hr"}


@pytest.fixture(autouse=True)
def not_installed():
    yield
    fastops.uninstall()


class Document(HTMLParser):
    """A parsed page: tags, titles, texts, and the tags that are open at the end."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.titles, self.texts, self.links = [], set(), [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("src", "href"):
                self.links.append(value)
            if name == "title":
                self.titles.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def validated(report):
    """Check that a trace follows the format; return its complete events by thread."""
    trace = json.loads(report.to_chrome_trace())
    found, named = {}, set()
    for event in trace["traceEvents"]:
        assert event["ph"] in ("X", "M")
        assert type(event["pid"]) is type(event["tid"]) is int
        assert type(event["name"]) is str
        assert type(event["args"]) is dict
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "thread_sort_index")
            if event["name"] == "thread_name":
                named.add(event["tid"])
            continue
        assert type(event["cat"]) is str
        event["start"], event["took"] = round(event["ts"] * 1000), round(event["dur"] * 1000)
        assert min(event["start"], event["took"]) >= 0
        found.setdefault(event["tid"], []).append(event)
    assert set(found) == named
    for events in found.values():
        around = []
        for event in events:
            while len(around) > 1 and around[-1]["start"] + around[-1]["took"] <= event["start"]:
                around.pop()
            if around:
                outer = around[-1]
                assert event["start"] >= outer["start"]
                assert event["start"] + event["took"] <= outer["start"] + outer["took"]
                outer["left"] = outer.get("left", outer["took"]) - event["took"]
                assert outer["left"] >= 0
                event["outer"] = outer["name"]
            around.append(event)
    return found


def names(events):
    return [event["name"] for event in events]


def test_a_trace_of_a_direct_call():
    ops.add_v2(x=X, y=X)
    report = fastops.explain(ops.add_v2, x=X, y=X)
    (events,) = validated(report).values()
    assert [(e["name"], e["cat"], e.get("outer")) for e in events] == [
        ("MainThread", "program", None),
        ("AddV2", "dispatch", "MainThread"),
        ("kernel", "kernel", "AddV2"),
    ]
    assert events[1]["args"] == {"path": "direct"}
    add = report.ops["AddV2"]
    assert events[2]["took"] == add.kernel_ns
    assert events[1]["took"] == add.total_ns
    assert events[0]["took"] == report.total_ns


def test_a_trace_of_calls_that_are_not_direct():
    ops.neg(x=X)
    with fastops.profile() as report:
        ops.neg(x=tf.cast(X, tf.float64))
        with fastops.options(path="capi"):
            ops.neg(x=X)
    (events,) = validated(report).values()
    assert [(e["name"], e.get("outer")) for e in events][1:] == [
        ("Neg (first_call)", "MainThread"),
        ("TensorFlow", "Neg (first_call)"),
        ("Neg (options)", "MainThread"),
        ("TensorFlow", "Neg (options)"),
    ]
    assert events[1]["args"] == {"path": "tensorflow", "reason": "first_call"}
    assert events[3]["args"] == {"path": "capi", "reason": "options"}


def test_nested_calls_are_nested_in_the_trace():
    variable = tf.Variable([1.0, 2.0])
    for _ in range(2):
        ops.mul(x=variable, y=X)
    with tf.GradientTape():
        report = fastops.explain(ops.mul, x=variable, y=X)
    (events,) = validated(report).values()
    assert [(e["name"], e.get("outer")) for e in events][1:] == [
        ("Mul", "MainThread"),
        ("ReadVariableOp", "Mul"),
        ("kernel", "ReadVariableOp"),
        ("kernel", "Mul"),
    ]


def test_traced_functions():
    @fastops.function(autograph=False)
    def squared(x):
        return tf.square(x) + 1.0

    for _ in range(3):
        squared(X)
    report = fastops.explain(squared, X)
    (executor,) = {function.executor for function in report.functions}
    (events,) = validated(report).values()
    assert [e["args"].get("executor") for e in events if "squared" in e["name"]] == [executor]


def test_each_thread_has_its_own_track():
    """Threads have separate tracks, although the system reuses ids of ended threads."""
    python("""
        import json, threading
        from fastops._reports import explain
        x = tf.constant(1.0)
        ops.neg(x=x)
        report = explain.start()
        def work():
            for _ in range(5): ops.neg(x=x)
        work()
        for name in ("one", "other"):
            thread = threading.Thread(target=work, name=name)
            thread.start()
            thread.join()
        events = json.loads(report.to_chrome_trace())["traceEvents"]
        tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
        assert list(tracks.values()) == ["MainThread", "one", "other"], tracks
        for number in tracks:
            assert sum(e["tid"] == number and e["name"] == "Neg" for e in events) == 5
        assert report.to_html().count('class="bars"') == 3
    """)


def test_profiles_of_several_threads_at_once():
    ops.neg(x=X)
    reports = []

    def work():
        with fastops.profile(frames=True) as report:
            for _ in range(20):
                ops.neg(x=X)
        reports.append(report)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    traces = [validated(report) for report in reports]
    assert len({number for by_thread in traces for number in by_thread}) == 4
    for by_thread in traces:
        (events,) = by_thread.values()
        assert names(events).count("Neg") == 20


def inner(x):
    return ops.neg(x=x)


def outer(x):
    return inner(x)


def test_python_above_dispatch_and_kernel():
    ops.neg(x=X)
    with fastops.profile(frames=True) as report:
        for _ in range(3):
            outer(X)
    (events,) = validated(report).values()
    assert [(e["name"], e["cat"], e.get("outer")) for e in events] == [
        ("MainThread", "program", None),
        *[
            ("outer", "program", "MainThread"),
            ("inner", "program", "outer"),
            ("Neg", "dispatch", "inner"),
            ("kernel", "kernel", "Neg"),
        ]
        * 3,
    ]
    assert events[1]["args"] == {"file": __file__, "line": outer.__code__.co_firstlineno}
    (track,) = tracks(report, corrected=True)
    bar = flame.merged(track.root)
    for name in ("outer", "inner", "Neg", "kernel"):
        (bar,) = bar.inner.values()
        assert (bar.name, bar.count) == (name, 3)


def test_python_of_tensorflow_without_fastops():
    tf.add(X, X)
    with fastops.profile(frames=True) as report:
        tf.add(X, X)
    (events,) = validated(report).values()
    kinds = {e["name"]: e["cat"] for e in events}
    assert kinds["add"] == "library"
    assert kinds["TFE_Py_FastPathExecute"] == "tensorflow"
    assert report.ops == {}


@pytest.mark.parametrize("installed", [False, True])
def test_a_model(installed):
    model = keras.Sequential([keras.layers.Dense(3, activation="relu"), keras.layers.Dense(2)])
    if installed:
        fastops.install()
    for _ in range(6):
        model(X[None])
    with fastops.profile(frames=True) as report:
        model(X[None])
    (events,) = validated(report).values()
    kinds = {event["cat"] for event in events}
    if installed:
        assert {"dispatch", "kernel"} <= kinds
        assert names(events).count("MatMul") == 2
        assert "tell" not in names(events)
        assert "before its replay" in report.to_html(), str(report)  # which says why not
    else:
        assert {"library", "tensorflow"} <= kinds
        assert any("Dense.call" in name or name == "call" for name in names(events))
    Document(report.to_html())


def test_exceptions_leave_a_profile_that_can_be_shown():
    def fails():
        ops.neg(x=X)
        raise ValueError("on purpose")

    with fastops.profile(frames=True) as report, pytest.raises(ValueError, match="on purpose"):
        fails()
    assert sys.getprofile() is None
    (events,) = validated(report).values()
    assert "Neg (first_call)" in names(events)
    Document(report.to_html())


def test_profiles_with_frames_nest_and_end_in_any_order():
    ops.neg(x=X)
    with fastops.profile(frames=True) as around:
        outer(X)
        with fastops.profile(frames=True) as within:
            inner(X)
        outer(X)
    for report, count in ((around, 3), (within, 1)):
        (events,) = validated(report).values()
        assert names(events).count("inner") == names(events).count("Neg") == count
    first, second = fastops.profile(frames=True), fastops.profile(frames=True)
    one, other = first.__enter__(), second.__enter__()
    inner(X)
    first.__exit__(None, None, None)
    inner(X)
    second.__exit__(None, None, None)
    assert sys.getprofile() is None
    for report, count in ((one, 1), (other, 2)):
        (events,) = validated(report).values()
        assert names(events).count("inner") == count


def test_a_profile_with_frames_that_ends_on_another_thread():
    block = fastops.profile(frames=True)
    report = block.__enter__()
    inner(X)
    thread = threading.Thread(target=block.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    inner(X)
    assert sys.getprofile() is None  # the profile function is removed at the first call
    (events,) = validated(report).values()
    assert names(events).count("inner") == 1


def test_a_profile_function_of_the_program_stays():
    def see(frame, event, argument):
        pass

    sys.setprofile(see)
    try:
        with fastops.profile(frames=True) as report:
            inner(X)
        assert sys.getprofile() is see
    finally:
        sys.setprofile(None)
    (events,) = validated(report).values()
    assert "inner" not in names(events)
    assert "Another profile function was set" in report.to_html()


def test_a_program_that_sets_its_own_profile_function_meanwhile():
    def see(frame, event, argument):
        pass

    try:
        with fastops.profile(frames=True) as report:
            inner(X)
            sys.setprofile(see)
        assert sys.getprofile() is see
    finally:
        sys.setprofile(None)
    assert "inner" in report.to_chrome_trace()


def test_profiles_can_be_read_at_any_time():
    with fastops.profile(frames=True) as report:
        inner(X)
        (events,) = validated(report).values()
        assert "inner" in names(events)
        Document(report.to_html())


def test_profiles_without_calls():
    with fastops.profile() as report:
        pass
    assert [names(events) for events in validated(report).values()] == [["MainThread"]]
    Document(report.to_html())


def test_missing_calls_are_reported(monkeypatch):
    ops.neg(x=X)
    report = fastops.explain(ops.neg, x=X)
    limits = {**report._limits(), "calls_left_out": 1234}
    monkeypatch.setattr(type(report), "_limits", lambda self: limits)
    assert "The last 1,234 calls of ops are missing" in report.to_html()
    assert json.loads(report.to_chrome_trace())["otherData"]["calls_left_out"] == 1234


# ---------------------------------------------------------------------------------------------
# Pages
# ---------------------------------------------------------------------------------------------


def test_a_page():
    ops.neg(x=X)
    report = fastops.explain(ops.neg, x=X)
    document = Document(report.to_html())
    assert {"title", "style", "script", "table"} <= document.tags
    assert document.links == []
    text = " ".join(document.texts)
    assert all(word in text for word in ("Neg", "fastops: dispatch", "kernel"))
    assert any(title.startswith("Neg\n") for title in document.titles)
    fragment = Document(report._repr_html_())
    assert {"style", "table"} <= fragment.tags
    assert "script" not in fragment.tags


def test_names_are_escaped():
    """Names of functions, files and threads come from the program."""
    hostile = "<img src=x onerror=alert(1)>\"'&"
    namespace = {}
    code = compile("def called(): pass", hostile, "exec")
    exec(code, namespace)
    called = namespace["called"]
    called.__code__ = called.__code__.replace(co_name=hostile)
    if hasattr(called.__code__, "co_qualname"):
        called.__code__ = called.__code__.replace(co_qualname=hostile)
    texts = []

    def work():
        with fastops.profile(frames=True) as report:
            for _ in range(1000):
                called()
        texts.append(report)

    thread = threading.Thread(target=work, name=hostile)
    thread.start()
    thread.join()
    for text in (texts[0].to_html(), texts[0]._repr_html_()):
        document = Document(text)
        assert "img" not in document.tags
        assert any(hostile in part for part in document.texts)
        assert any(hostile in title for title in document.titles)
    (events,) = validated(texts[0]).values()
    assert names(events).count(hostile) == 1001


def test_files(tmp_path):
    ops.neg(x=X)
    report = fastops.explain(ops.neg, x=X)
    for method, name in ((report.to_html, "a.html"), (report.to_chrome_trace, "a.json")):
        path = tmp_path / name
        assert method(path) == path.read_text(encoding="utf-8")
        assert method(str(path)) == path.read_text(encoding="utf-8")
    with pytest.raises(FileNotFoundError):
        report.to_html(tmp_path / "nowhere" / "a.html")


@pytest.mark.skipif(
    not (shutil.which("chromium") or shutil.which("google-chrome")), reason="there is no Chromium"
)
@pytest.mark.parametrize("width", [1280, 500])
def test_a_browser_shows_it_without_complaints(width, tmp_path):
    model = keras.Sequential([keras.layers.Dense(2)])
    with fastops.profile(frames=True) as report:
        model(X[None])
    probe = (
        "<script>document.querySelectorAll('.bars div')[1].click();"
        "document.title = 'wide ' + (document.documentElement.scrollWidth <= innerWidth);</script>"
    )
    path = tmp_path / "page.html"
    path.write_text(report.to_html().replace("</body>", f"{probe}</body>"), encoding="utf-8")
    flags = (
        "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
        "disable-component-update disable-sync dump-dom enable-logging=stderr"
    )
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    shown = subprocess.run(
        [
            browser, *(f"--{flag}" for flag in flags.split()), f"--window-size={width},900",
            f"--user-data-dir={tmp_path / 'data'}", path.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "CONSOLE" not in shown.stderr, shown.stderr
    assert "<title>wide true</title>" in shown.stdout


# ---------------------------------------------------------------------------------------------
# Spans and corrections
# ---------------------------------------------------------------------------------------------


def test_the_overhead_of_profiling_is_subtracted():
    """Events are 100 ns apart, of which 40 are overhead: half before and half after each event."""
    code = outer.__code__
    moments = [(1000, 0, 0), (1100, 0, 0), (1200, -1, 0), (1300, -1, 0)]
    noted = Noted(moments, [code], [], Costs(of_python=40.0))
    assert noted.spans == [(0, 1100, 1200), (0, 1000, 1300)]
    assert [noted.corrected(when) for when, _, _ in moments] == [1000, 1080, 1160, 1240]
    assert noted.corrected(900) == 900
    assert noted.corrected(1050) == 1040  # 10 of the 50 ns are overhead of the event at 1000
    assert noted.corrected(1099) == 1080
    assert noted.corrected(1400) == 1330
    whens = list(range(950, 1500))
    assert sorted(map(noted.corrected, whens)) == list(map(noted.corrected, whens))


def test_python_time_is_divided_by_the_slowdown_and_c_time_is_not():
    """A function takes 300 ns, with a call of an op from 110 to 210, and of C from 220 to 270."""
    called = [outer.__code__, ("math", "sin")]
    moments = [(100, 0, 0), (220, 1, 0), (270, -2, 0), (400, -1, 0)]
    noted = Noted(moments, called, [(110, 210)], Costs(slowdown=2.0))
    whens = (100, 110, 210, 220, 270, 400, 410)
    assert [noted.corrected(when) for when in whens] == [100, 105, 205, 210, 260, 325, 330]


def test_the_overhead_of_profiling_is_measured():
    costs = costs_of_noting()
    assert costs_of_noting() is costs
    assert min(costs.of_python, costs.of_c) >= 0
    assert costs.slowdown >= 1


def test_corrected_times_are_not_negative():
    moments = [(0, 0, 0), (10, -1, 0), (500, 0, 450), (1000, -1, 0)]
    noted = Noted(moments, [outer.__code__], [], Costs(of_python=40.0))
    assert [noted.corrected(when) for when in (0, 10, 500, 1000)] == [0, 0, 470, 500]


def test_notifications_of_profiles_take_no_time():
    from fastops._plans import observers

    moments = [(0, 0, 0), (100, 1, 0), (150, 0, 0), (170, -1, 0), (200, -1, 0), (300, -1, 0)]
    noted = Noted(moments, [outer.__code__, observers.tell.__code__], [], Costs())
    assert noted.corrected(300) == 200


def test_returns_without_a_call_are_left_out():
    moments = [(0, -1, 0), (10, 0, 0), (20, -1, 0), (30, 0, 0)]
    noted = Noted(moments, [outer.__code__], [], Costs())
    assert noted.spans == [(0, 10, 20)]


def test_spans_are_nested():
    root = Span("root", "program", 0, 100)
    parts = [(10, 50), (20, 30), (30, 60), (60, 130), (60, 60), (-5, 5)]
    nest(root, [Span(str(place), "program", *part) for place, part in enumerate(parts)])

    def shape(span):
        return span.name, span.start, span.stop, [shape(inner) for inner in span.inner]

    assert shape(root) == (
        "root", 0, 100,
        [
            ("5", 0, 5, []),
            ("0", 10, 50, [("1", 20, 30, []), ("2", 30, 50, [])]),
            ("3", 60, 100, [("4", 60, 60, [])]),
        ],
    )  # fmt: skip


def test_shares_add_up():
    root = Span("root", "program", 0, 100)
    nest(root, [Span("a", "dispatch", 10, 60), Span("k", "kernel", 20, 50)])
    shares = flame.shares(flame.merged(root))
    assert shares == {"program": 50, "library": 0, "dispatch": 20, "kernel": 30, "tensorflow": 0}
    assert list(shares) == list(spans.KINDS)


def test_notes_describe_the_measurement():
    with fastops.profile(frames=True) as report:
        inner(X)
    assert any("Noting one took" in note for note in page.notes_of(report))
    assert any("profile(frames=True)" in note for note in page.notes_of(fastops.explain(inner, X)))


def test_frames_are_classified_by_file():
    places = {
        keras.layers.Dense.call.__code__.co_filename: "library",
        tf.add.__wrapped__.__code__.co_filename: "library",
        page.__file__: "dispatch",
        json.__file__: "program",
        os.path.join("keras", "fastops", "script.py"): "program",
        __file__: "program",
    }
    assert {place: spans._kind_of(place) for place in places} == places
