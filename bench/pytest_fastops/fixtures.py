"""The objects that fixtures return. This module imports TensorFlow."""

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
    """Compares a callable with a baseline, in turn, in one process.

    Parameters
    ----------
    request : pytest.FixtureRequest
        The request of the test.
    benchmark : callable
        The fixture of pytest-benchmark or pytest-codspeed. pytest-benchmark gets the candidate's
        times, for its comparisons, groups, histograms and files. pytest-codspeed measures the
        candidate itself.
    settings : dict
        The arguments of the marker.
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
            An op of `fastops.ops`, or any other callable.
        *args
            The positional arguments.
        baseline : {"stock", "capi", "tensorflow"} or callable, optional
            A callable is called with the same arguments. ``"capi"`` and ``"tensorflow"`` are other
            paths of fastops for the same call. ``"stock"`` is TensorFlow without fastops: for an
            op, the op of `tf.raw_ops`; for any other callable, the call without `fastops.install`,
            and then the candidate runs with it. The default is the marker's argument, or
            ``"stock"``.
        **kwargs
            The keyword arguments.

        Returns
        -------
        Comparison
            The result. It has no samples if benchmarks are disabled, as under pytest-xdist.

        Raises
        ------
        RuntimeError
            If it is called a second time, or if it is called under `fastops.install` without a
            baseline.
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
        """Pass the candidate's times to pytest-benchmark, which does not measure itself here."""
        self._benchmark._mode = "op_benchmark(...)"
        stats = self._benchmark._make_stats(calls)
        for nanoseconds in self.comparison.samples["candidate"]:
            stats.update(nanoseconds * calls / 1e9)
        figures = self.comparison.as_dict()
        shown = ("baseline", "ratio", "interval", "null", "null_interval", "paths", "tail")
        self._benchmark.extra_info.update({key: figures[key] for key in shown})

    def _judge(self):
        options = self._request.config.option
        least, comparison = options.fastops_min_ratio, self.comparison
        if least is not None and comparison.ratio is not None:
            low, high = comparison.interval
            if (comparison.ratio if high is None else high) < least:
                span = "" if high is None else f" ({low:.2f} to {high:.2f})"
                pytest.fail(
                    f"{comparison.ratio:.2f}{span} times faster than {comparison.baseline}; "
                    f"--fastops-min-ratio asks for {least:g}",
                    pytrace=False,
                )
        if options.fastops_fail_on_fallback and comparison.reasons:
            reasons = ", ".join(
                f"{why}: {count:g} a call" for why, count in comparison.reasons.items()
            )
            pytest.fail(f"ops left the direct path ({reasons})", pytrace=False)


class NoFallback:
    """Finds the ops that have left the direct path since this object was made."""

    def __init__(self):
        self._before = fastops.stats()

    def fallbacks(self):
        """Return these ops by name, with the number of such calls by reason."""
        return fallbacks(self._before, fastops.stats())

    def check(self):
        """Fail the test if there are such ops."""
        fallbacks = self.fallbacks()
        if fallbacks:
            lines = [
                f"{name}: {reason} ({fastops.REASONS[reason]}), {count} calls"
                for name, reasons in fallbacks.items()
                for reason, count in reasons.items()
            ]
            pytest.fail("\n".join(["ops left the direct path", *lines]), pytrace=False)
