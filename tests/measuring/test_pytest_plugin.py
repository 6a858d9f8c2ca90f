"""The pytest plugin: benchmarks against a baseline, and tests that no op falls back."""

import json
from statistics import median

import pytest
from pytest_fastops.comparison import Comparison, candidate_and_baseline, fallbacks
from pytest_fastops.race import median_interval

import fastops

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.filterwarnings("ignore")

ADD = """
import fastops, pytest
import tensorflow as tf

@pytest.mark.op_benchmark(rounds=7, block=1e-4)
def test_add(op_benchmark):
    x = tf.constant([1.0, 2.0])
    op_benchmark(fastops.ops.add_v2, x=x, y=x)
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run tests, given as text, by another pytest in this process."""
    # This variable disables pytest-benchmark, and is set in worker processes of pytest-xdist.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)

    def run(text, *options):
        pytester.makepyfile(text)
        options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", *options]
        return pytester.runpytest_inprocess(*options)

    return run


def test_a_benchmark_needs_five_lines(run, pytester):
    result = run(ADD, "--fastops-json=found.json", "--benchmark-json=theirs.json")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*times faster than the baseline*", "test_add *1 direct*"])
    (comparison,) = json.loads((pytester.path / "found.json").read_text())["comparisons"]
    assert comparison["baseline"] == "tf.raw_ops.AddV2"
    assert comparison["paths"] == {"direct": 1.0}
    assert comparison["reasons"] == {}
    assert {arm: len(times) for arm, times in comparison["samples"].items()} == {
        "candidate": 7,
        "baseline": 7,
        "again": 7,
    }
    pairs = zip(comparison["samples"]["baseline"], comparison["samples"]["candidate"], strict=True)
    assert comparison["ratio"] == median(a / b for a, b in pairs)
    assert comparison["versions"]["fastops"] == fastops.__version__
    (theirs,) = json.loads((pytester.path / "theirs.json").read_text())["benchmarks"]
    assert theirs["stats"]["data"] == pytest.approx(
        [time / 1e9 for time in comparison["samples"]["candidate"]]
    )
    assert theirs["extra_info"]["ratio"] == comparison["ratio"]


def test_an_installed_program_is_compared_with_stock(run, pytester):
    text = """
    import fastops, pytest
    import tensorflow as tf

    @pytest.mark.op_benchmark(rounds=3, block=1e-4, tail=60, group="mine")
    def test_tanh(op_benchmark):
        found = op_benchmark(tf.math.tanh, tf.constant([1.0]))
        assert not fastops.is_installed()
        assert found.paths == {"direct": 1.0}
        assert set(found.tail) == {"candidate", "baseline"}
        assert found.tail["candidate"]["p50"] <= found.tail["candidate"]["worst"]
        assert found.interval == (None, None)  # three rounds are too few for an interval
    """
    result = run(text, "--benchmark-group-by=group")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*Nanoseconds of single calls:*", "*benchmark 'mine': 1 tests*"])


@pytest.mark.parametrize(("least", "outcome"), [("1e-6", "passed"), ("1e6", "failed")])
def test_a_minimum_ratio(run, least, outcome):
    result = run(ADD, f"--fastops-min-ratio={least}")
    result.assert_outcomes(**{outcome: 1})
    if outcome == "failed":
        result.stdout.fnmatch_lines(["*times faster than tf.raw_ops.AddV2; * asks for 1e+06"])


def test_fallbacks_of_a_benchmark(run):
    text = ADD.replace("y=x)", 'y=x, baseline="tensorflow")') + (
        "\n    with fastops.options(path='capi'):\n        pass\n"
        "\n@pytest.mark.op_benchmark(rounds=1, block=1e-5)\n"
        "def test_capi(op_benchmark):\n"
        "    def call(x):\n"
        "        with fastops.options(path='capi'):\n"
        "            return fastops.ops.neg(x=x)\n"
        "    op_benchmark(call, tf.constant(1.0))\n"
    )
    result = run(text, "--fastops-fail-on-fallback")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["ops left the direct path (options: 1 a call)"])


def test_no_fallback(run):
    result = run(
        """
        import fastops
        import tensorflow as tf

        def test_direct(no_fallback):
            for _ in range(3):
                fastops.ops.neg(x=tf.constant(1.0))
            assert no_fallback.fallbacks() == {}

        def test_other(no_fallback):
            with fastops.options(path="tensorflow"):
                fastops.ops.neg(x=tf.constant(1.0))
        """
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["ops left the direct path", "Neg: options (*), 1 calls"])


def test_disabled_benchmarks_run_once_and_say_so(run, pytester):
    options = ["--benchmark-disable", "--fastops-min-ratio=1e6", "--fastops-json=found.json"]
    result = run(ADD, *options)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*were run once and not measured*"])
    (comparison,) = json.loads((pytester.path / "found.json").read_text())["comparisons"]
    assert comparison["samples"] == {}
    assert comparison["ratio"] is None


def test_wrong_use(run):
    result = run(
        """
        import fastops, pytest
        import tensorflow as tf

        @pytest.mark.op_benchmark(colour="red")
        def test_marker(op_benchmark):
            pass

        @pytest.mark.op_benchmark(rounds=1, block=1e-5)
        def test_twice(op_benchmark):
            op_benchmark(abs, -1, baseline=int)
            with pytest.raises(RuntimeError, match="one callable in each test"):
                op_benchmark(abs, -1, baseline=int)

        def test_baseline(op_benchmark):
            with pytest.raises(ValueError, match="callable or one of stock, capi, tensorflow"):
                op_benchmark(abs, -1, baseline="fastest")

        def test_inside(op_benchmark):
            with fastops.accelerated(), pytest.raises(RuntimeError, match="name a baseline"):
                op_benchmark(tf.math.tanh, tf.constant(1.0))
        """
    )
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["the marker op_benchmark does not take colour"])


def test_codspeed_measures_the_candidate_alone(run, pytester):
    pytester.makeconftest(
        """
        import pytest

        class BenchmarkFixture:
            def __call__(self, call, *args, **kwargs):
                print("measured", call(*args, **kwargs))

        BenchmarkFixture.__module__ = "pytest_codspeed.plugin"

        @pytest.fixture
        def benchmark():
            return BenchmarkFixture()
        """
    )
    result = run("def test_abs(op_benchmark): op_benchmark(abs, -7, baseline=int)", "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*measured 7*"])
    assert "times faster" in result.stdout.str()


@pytest.mark.parametrize("count", [1, 5, 6, 31])
def test_the_interval_of_a_median(count):
    values = [float(value) for value in range(count)]
    middle, low, high = median_interval(values[::-1])
    assert middle == (count - 1) / 2
    # From tables of order statistics: a 95 % interval needs six values; of 31 values, it is from
    # the 10th to the 22nd.
    assert (low, high) == {6: (0.0, 5.0), 31: (9.0, 21.0)}.get(count, (None, None))


def test_all_results_are_compared():
    candidate, other, title = candidate_and_baseline(
        fastops.ops.add_v2, (), {"x": 1.0, "y": 2.0}, "stock"
    )
    assert title == "tf.raw_ops.AddV2"
    assert candidate.statement == other.statement == "call(x=given_x, y=given_y)"
    assert float(candidate.result()) == float(other.result()) == 3.0
    empty = Comparison("name", "stock")
    assert (empty.median, empty.spread, empty.ratio, empty.null) == (None,) * 4
    before = fastops.stats()
    assert fallbacks(before, before) == {}


# ---------------------------------------------------------------------------------------------
# Tests under install
# ---------------------------------------------------------------------------------------------

CONFTEST = """
import os, sys
assert not {"tensorflow", "fastops"} & set(sys.modules)
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
"""

UNDER_INSTALL = """
import sys, pytest
import tensorflow as tf

fastops = sys.modules.get("fastops")
AT_IMPORT = fastops is not None and fastops.is_installed()

@pytest.mark.parametrize("i", range(2))
def test_a_call_is_direct(i):
    from fastops._reports import counters
    assert AT_IMPORT and fastops.is_installed()
    fastops.reset_stats()
    for _ in range(3):
        tf.math.tanh(tf.constant([1.0]))
    assert fastops.stats().ops["Tanh"].direct >= 2
    assert not counters.onednn_enabled()
"""

WITHOUT_TENSORFLOW = """
import sys

def test_nothing_is_imported():
    assert not {"tensorflow", "fastops"} & set(sys.modules)
    assert ("ImportFollower" in [type(one).__name__ for one in sys.meta_path]) == FOLLOWED
"""

HEADER = "fastops: install is active from the import of TensorFlow on ({})"


@pytest.fixture
def run_apart(pytester, monkeypatch):
    """Run tests and a conftest, given as text, by pytest in a new process."""
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "FASTOPS_INSTALL"):
        monkeypatch.delenv(name, raising=False)

    def run_apart(text, *options, conftest=CONFTEST):
        pytester.makeconftest(conftest)
        pytester.makepyfile(text)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)

    return run_apart


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="alone"),
        pytest.param(["-n", "2"], id="xdist", marks=pytest.mark.slow),
    ],
)
def test_the_option_installs_before_test_modules_are_imported(run_apart, options):
    if options:
        pytest.importorskip("xdist")
    result = run_apart(UNDER_INSTALL, "--fastops-install", *options)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([HEADER.format("--fastops-install")])


def test_the_variable_installs_before_test_modules_are_imported(run_apart, monkeypatch):
    monkeypatch.setenv("FASTOPS_INSTALL", "1")
    result = run_apart(UNDER_INSTALL)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([HEADER.format("FASTOPS_INSTALL=1")])


@pytest.mark.slow
def test_a_conftest_that_imports_tensorflow(run_apart):
    conftest = CONFTEST + 'import tensorflow\nassert sys.modules["fastops"].is_installed()\n'
    run_apart(UNDER_INSTALL, "--fastops-install", conftest=conftest).assert_outcomes(passed=2)


@pytest.mark.parametrize("options", [[], ["--fastops-install"]], ids=["without", "with"])
def test_runs_without_tensorflow_import_nothing(run_apart, options):
    result = run_apart(WITHOUT_TENSORFLOW.replace("FOLLOWED", str(bool(options))), *options)
    result.assert_outcomes(passed=1)
    assert ("fastops: install" in result.stdout.str()) == bool(options)


@pytest.mark.slow
def test_the_plugin_turned_off(run_apart, monkeypatch):
    result = run_apart("", "-p", "no:fastops", "--fastops-install")
    result.stderr.fnmatch_lines(["*unrecognized arguments: --fastops-install"])
    monkeypatch.setenv("FASTOPS_INSTALL", "1")
    text = "import sys, tensorflow\ndef test_stock(): assert 'fastops' not in sys.modules"
    result = run_apart(text, "-p", "no:fastops")
    result.assert_outcomes(passed=1)
    assert "fastops: install" not in result.stdout.str()


def test_an_invalid_value_of_the_variable(run_apart, monkeypatch):
    monkeypatch.setenv("FASTOPS_INSTALL", "yes")
    result = run_apart(WITHOUT_TENSORFLOW.replace("FOLLOWED", "False"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*FASTOPS_INSTALL must be one of '0', '1', not 'yes'"])


def test_the_option_ends_with_its_run(run):
    text = "import fastops\ndef test_it(): assert fastops.is_installed()"
    run(text, "--fastops-install").assert_outcomes(passed=1)
    assert not fastops.is_installed()
    with fastops.accelerated():  # an earlier install stays active
        run(text, "--fastops-install").assert_outcomes(passed=1)
        assert fastops.is_installed()
    fastops.uninstall()


def test_tests_are_verified(pytester, monkeypatch):
    """The run needs a new process, in which it installs fastops."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import tensorflow as tf

        import fastops
        from fastops._install.verify.results import RESULTS


        def test_sum():
            assert float(tf.constant(1.0) + 1.0) == 2.0


        def test_what_differs():
            RESULTS.differences.append("planted")  # as after an error that a test expects
        """
    )
    options = ("-p", "no:cacheprovider", "-p", "pytest_fastops")
    result = pytester.runpytest_subprocess(*options, "--fastops-verify")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["planted", "*calls that were verified*", "fastops verified *"])
    result = pytester.runpytest_subprocess(*options, "--fastops-verify=warn")
    result.assert_outcomes(passed=2)
    result = pytester.runpytest_subprocess(*options, "--fastops-verify", "tests")
    result.stderr.fnmatch_lines(["*'tests' is no mode: put --fastops-verify after the tests*"])
