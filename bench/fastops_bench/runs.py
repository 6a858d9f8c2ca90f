"""A run: the measurements of its processes, which can be saved and read."""

import json
from dataclasses import dataclass, field
from statistics import median, quantiles

from pytest_fastops.race import median_interval

FORMAT = 1

CANDIDATES = ("fastops", "replayed", "installed", "plan", "auto", "alias")
"""The arms of fastops, in order of preference."""

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
"""The arms of the baseline, in order of preference."""

PEERS = {
    "torch": "torch",
    "jax": "jax",
    "jax.jit": "jax.jit",
    "onnxruntime": "onnxruntime",
    "raw_ops": "raw_ops, alone",
    "tf": "tf, alone",
}
"""The arms of peers, and their names. TensorFlow's are measured in an environment without
fastops."""

MAIN, PLAIN = "main", "plain"
"""The names of the main process and of the process without oneDNN. Other processes are peers."""


@dataclass(frozen=True)
class Row:
    """One race: the samples of its arms, in nanoseconds per call, one for each round.

    Attributes
    ----------
    label : str
        A description of the call.
    samples : dict of str to list of float
        By arm.
    about : dict
        The other entries of its record: ``"suite"``, ``"group"``, ``"tag"``, and perhaps
        ``"sweep"``.
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
        """Return how many times longer ``slow`` takes than ``fast``."""
        return self.time(slow) / self.time(fast)

    def interval(self, slow, fast):
        """Return the median of that ratio over the rounds, and its confidence interval."""
        pairs = zip(self.samples[slow], self.samples[fast], strict=False)
        return median_interval([one / other for one, other in pairs])

    def null(self, arm):
        """Return how much an arm differs from itself, by comparing each round with the next."""
        times = self.samples[arm]
        pairs = [one / other for one, other in zip(times[::2], times[1::2], strict=False)]
        return median_interval(pairs) if pairs else (1.0, None, None)

    @property
    def pair(self):
        """The arm of fastops and the arm of the baseline; `None` if either is missing."""
        candidate = next(filter(self.has, CANDIDATES), None)
        baseline = next(filter(self.has, BASELINES), None)
        return (candidate, baseline) if candidate and baseline else None


@dataclass
class Run:
    """The measurements of one or several processes on one machine.

    Attributes
    ----------
    processes : dict of str to dict
        By process name, its ``"versions"`` and ``"records"``, and what has ``"failed"`` or was
        ``"skipped"``, with the reasons.
    machine, method : dict
        Descriptions of the machine and of the method.
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
        """Read a file that `save` has written.

        Raises
        ------
        ValueError
            If the file has other content.
        """
        try:
            content = json.loads(path.read_text())
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"{path} is not a run that `python -m fastops bench --json` has saved")
        return cls(content["processes"], content["machine"], content["method"])

    def records(self, process=MAIN, group=None):
        """Return the records of a process, of one group or of all."""
        found = self.processes.get(process, {}).get("records", [])
        return [record for record in found if group in (None, record["group"])]

    def rows(self, group=None, process=MAIN):
        """Return the races of a process. Those of the first process include the arms of peers."""
        races = [record for record in self.records(process, group) if record.get("samples")]
        found = [Row(race["label"], race["samples"], race) for race in races]
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
        """Return, by group, how many times longer NumPy takes here than in a peer's process."""
        scales = {}
        for row in rows:
            other = theirs.get((row.about["group"], row.label))
            if other and row.has("numpy") and other.has("numpy"):
                ratio = row.time("numpy") / other.time("numpy")
                scales.setdefault(row.about["group"], []).append(ratio)
        return {group: median(ratios) for group, ratios in scales.items()}


def _scaled(row, scale):
    """Return the samples of a peer, scaled to the times of the main process."""
    return {
        PEERS[arm]: [scale * sample for sample in samples]
        for arm, samples in row.samples.items()
        if arm in PEERS
    }
