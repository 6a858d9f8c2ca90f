"""What the fixtures return. Imports TensorFlow."""

import pytest

import fastops
from pytest_fastops import PROPERTY
from pytest_fastops.comparison import (
    Comparison,
    candidate_and_baseline,
    fallbacks,
    measure,
    versions,
)


class OpBenchmark:
    """Compares a callable with a baseline, in one process and in turn.

    Parameters
    ----------
    request : pytest.FixtureRequest
        Of the test.
    benchmark : callable
        The fixture of pytest-benchmark, to which the candidate's times are given, so that its
        comparisons, groups, histograms and files have them; or that of pytest-codspeed, which
        measures the candidate itself.
    settings : dict
        What the marker says.
    """

    def __init__(self, request, benchmark, settings):
        self._request = request
        self._benchmark = benchmark
        self._settings = dict(settings)
        self.comparison = None

    def __call__(self, call, /, *args, baseline=None, **kwargs):
        """Measure ``call(*args, **kwargs)``.

        Parameters
        ----------
        call : callable
            An op of `fastops.ops`, or anything else.
        *args
            Its arguments by position.
        baseline : {"stock", "capi", "tensorflow"} or callable, optional
            Another callable, which gets the same arguments; the same call on another path of
            fastops; or TensorFlow as it is: for an op that of `tf.raw_ops`, for anything else the
            same without `fastops.install`, beside it with. By default what the marker says, or
            ``"stock"``.
        **kwargs
            Its arguments by name.

        Returns
        -------
        Comparison
            Without samples where benchmarks are disabled, as they are under pytest-xdist.

        Raises
        ------
        RuntimeError
            If it is called a second time, or under `fastops.install` for want of a baseline.
        """
        if self.comparison is not None:
            raise RuntimeError("op_benchmark compares one callable in each test")
        settings = dict(self._settings)
        chosen = settings.pop("baseline") if baseline is None else baseline
        settings.pop("baseline", None)
        candidate, other, title = candidate_and_baseline(call, args, kwargs, chosen)
        name = self._request.node.name
        if type(self._benchmark).__module__.partition(".")[0] == "pytest_codspeed":
            with candidate.scope():
                self._benchmark(call, *args, **kwargs)
            self.comparison = Comparison(name, title)
        elif not self._benchmark.enabled:
            self._benchmark._mode = "op_benchmark(...)"
            candidate.result()
            other.result()
            self.comparison = Comparison(name, title)
        else:
            self.comparison, calls = measure(name, title, candidate, other, **settings)
            self._tell(calls)
        figures = self.comparison.as_dict() | {"versions": versions()}
        self._request.node.user_properties.append((PROPERTY, figures))
        self._judge()
        return self.comparison

    def _tell(self, calls):
        """Give the candidate's times to pytest-benchmark, which would measure it alone."""
        self._benchmark._mode = "op_benchmark(...)"
        stats = self._benchmark._make_stats(calls)
        for nanoseconds in self.comparison.samples["candidate"]:
            stats.update(nanoseconds * calls / 1e9)
        figures = self.comparison.as_dict()
        shown = ("baseline", "ratio", "interval", "null", "null_interval", "paths", "tail")
        self._benchmark.extra_info.update({key: figures[key] for key in shown})

    def _judge(self):
        options = self._request.config.option
        least, found = options.fastops_min_ratio, self.comparison
        if least is not None and found.ratio is not None:
            low, high = found.interval
            if (found.ratio if high is None else high) < least:
                span = "" if high is None else f" ({low:.2f} to {high:.2f})"
                pytest.fail(
                    f"{found.ratio:.2f}{span} times faster than {found.baseline}; "
                    f"--fastops-min-ratio asks for {least:g}",
                    pytrace=False,
                )
        if options.fastops_fail_on_fallback and found.reasons:
            reasons = ", ".join(f"{why}: {count:g} a call" for why, count in found.reasons.items())
            pytest.fail(f"ops left the direct path ({reasons})", pytrace=False)


class NoFallback:
    """Tells which ops have left the direct path since it was made."""

    def __init__(self):
        self._before = fastops.stats()

    def fallbacks(self):
        """Return these ops by name: for each, how many calls did so for which reason."""
        return fallbacks(self._before, fastops.stats())

    def check(self):
        """Fail the test if there are any."""
        found = self.fallbacks()
        if found:
            lines = [
                f"{name}: {reason} ({fastops.REASONS[reason]}), {count} calls"
                for name, reasons in found.items()
                for reason, count in reasons.items()
            ]
            pytest.fail("\n".join(["ops left the direct path", *lines]), pytrace=False)
