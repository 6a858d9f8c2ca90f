"""A run: what its processes have measured, and how it is saved and read."""

import json
from dataclasses import dataclass, field
from statistics import median, quantiles

from pytest_fastops.race import median_interval

FORMAT = 1

CANDIDATES = ("fastops", "replayed", "installed", "plan", "auto", "alias")
"""The arms that are fastops', the first that a row has before others."""

BASELINES = (
    "raw_ops",
    "stock",
    "tf.function",
    "tensorflow",
    "signature",
    "tf_keras",
    "Keras",
    "op",
)
"""What they are compared with, likewise."""

PEERS = {
    "torch": "torch",
    "jax": "jax",
    "jax.jit": "jax.jit",
    "onnxruntime": "onnxruntime",
    "raw_ops": "raw_ops, alone",
    "tf": "tf, alone",
}
"""The arms of peers, and what they are called: TensorFlow's are those where fastops is not."""

MAIN, PLAIN = "main", "plain"
"""The process with everything, and the one that does without oneDNN; others are peers'."""


@dataclass(frozen=True)
class Row:
    """One race: its arms' samples, in nanoseconds per call, one a round.

    Attributes
    ----------
    label : str
        What was called.
    samples : dict of str to list of float
        By arm.
    about : dict
        What else its record has: ``"suite"``, ``"group"``, ``"tag"``, and perhaps ``"sweep"``.
    """

    label: str
    samples: dict[str, list[float]]
    about: dict = field(default_factory=dict)

    def time(self, arm):
        """Return the median of an arm, in nanoseconds."""
        return median(self.samples[arm])

    def spread(self, arm):
        """Return half the distance between the quartiles, as a share of the median."""
        if len(self.samples[arm]) == 1:
            return 0.0
        low, _, high = quantiles(self.samples[arm], n=4)
        return (high - low) / 2 / self.time(arm)

    def has(self, *arms):
        return self.samples.keys() >= set(arms)

    def ratio(self, slow, fast):
        """How many times longer ``slow`` takes than ``fast``."""
        return self.time(slow) / self.time(fast)

    def interval(self, slow, fast):
        """Return the median of that ratio over the rounds, and its confidence interval."""
        pairs = zip(self.samples[slow], self.samples[fast], strict=False)
        return median_interval([one / other for one, other in pairs])

    def null(self, arm):
        """Return how much an arm differs from itself: each round beside the next one."""
        times = self.samples[arm]
        pairs = [one / other for one, other in zip(times[::2], times[1::2], strict=False)]
        return median_interval(pairs) if pairs else (1.0, None, None)

    @property
    def pair(self):
        """The arm of fastops and the one that it is compared with, `None` if it lacks either."""
        candidate = next(filter(self.has, CANDIDATES), None)
        baseline = next(filter(self.has, BASELINES), None)
        return (candidate, baseline) if candidate and baseline else None


@dataclass
class Run:
    """What was measured at once: one or several processes on one machine.

    Attributes
    ----------
    processes : dict of str to dict
        By name, what each measured: its ``"versions"`` and ``"records"``, what ``"failed"`` and
        was ``"skipped"``, with the reasons.
    machine, method : dict
        Where, and how.
    """

    processes: dict = field(default_factory=dict)
    machine: dict = field(default_factory=dict)
    method: dict = field(default_factory=dict)

    def save(self, path):
        """Write everything as JSON."""
        content = {"format": FORMAT, "machine": self.machine, "method": self.method}
        path.write_text(json.dumps(content | {"processes": self.processes}))

    @classmethod
    def load(cls, path):
        """Read what `save` has written.

        Raises
        ------
        ValueError
            If it is something else.
        """
        try:
            content = json.loads(path.read_text())
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"{path} is no run that `python -m fastops bench --json` has saved")
        return cls(content["processes"], content["machine"], content["method"])

    def records(self, process=MAIN, group=None):
        """Return what a process has measured, of one group or of all."""
        found = self.processes.get(process, {}).get("records", [])
        return [record for record in found if group in (None, record["group"])]

    def rows(self, group=None, process=MAIN):
        """Return the races of a process; the peers' arms are in those of the first one."""
        races = [one for one in self.records(process, group) if one.get("samples")]
        found = [Row(one["label"], one["samples"], one) for one in races]
        return self._with_peers(found) if process == MAIN else found

    def groups(self):
        """Return the groups of the first process in the order in which they were measured."""
        return list(dict.fromkeys(record["group"] for record in self.records()))

    @property
    def peers(self):
        return [name for name in self.processes if name not in (MAIN, PLAIN)]

    def _with_peers(self, rows):
        for peer in self.peers:
            theirs = {(row.about["group"], row.label): row for row in self.rows(process=peer)}
            scales = self._scales(rows, theirs)
            for place, row in enumerate(rows):
                other = theirs.get((row.about["group"], row.label))
                scale = scales.get(row.about["group"])
                if other and scale:
                    rows[place] = Row(row.label, row.samples | _scaled(other, scale), row.about)
        return rows

    def _scales(self, rows, theirs):
        """Return by group how many times longer NumPy takes here than in a peer's process."""
        found = {}
        for row in rows:
            other = theirs.get((row.about["group"], row.label))
            if other and row.has("numpy") and other.has("numpy"):
                ratio = row.time("numpy") / other.time("numpy")
                found.setdefault(row.about["group"], []).append(ratio)
        return {group: median(ratios) for group, ratios in found.items()}


def _scaled(row, scale):
    """Return a peer's own samples, as the other process would have measured them."""
    return {
        PEERS[arm]: [scale * sample for sample in samples]
        for arm, samples in row.samples.items()
        if arm in PEERS
    }
