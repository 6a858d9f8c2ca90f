"""The results of the proof: verdicts, and the report as JSON and as text."""

import json
from pathlib import Path

from .pieces import write_json

PASSED, FAILED, OPEN, SKIPPED = "passed", "failed", "open", "skipped"
"""Outcomes of a step: everything holds; something does not; no verdict; it cannot run here."""
DIED, CUT = "died", "cut off"
"""Outcomes of a step: its process crashed; it exceeded its time limit."""

WRONG = (FAILED, DIED, CUT)


# Verdicts -----------------------------------------------------------------------------------------


def holds(text, condition, value=""):
    """Make a verdict that a statement holds or does not hold."""
    return {"what": text, "bound": "", "found": value, "holds": bool(condition)}


def at_least(text, value, bound, unit=""):
    """Make a verdict on a number that must not be smaller."""
    return _number(text, value, f">= {bound:.3g}{unit}", unit, value >= bound)


def at_most(text, value, bound, unit=""):
    """Make a verdict on a number that must not be greater."""
    return _number(text, value, f"<= {bound:.3g}{unit}", unit, value <= bound)


def undecided(text, because):
    """Make a verdict that is undecided, because it could not be tested."""
    return {"what": text, "bound": "", "found": because, "holds": None}


def _number(text, value, bound, unit, judged):
    shown = f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
    return {"what": text, "bound": bound, "found": f"{shown}{unit}", "holds": bool(judged)}


def outcome(verdicts):
    """Return the outcome of a step with these verdicts."""
    judged = [verdict["holds"] for verdict in verdicts if verdict["holds"] is not None]
    if not judged:
        return OPEN
    return PASSED if all(judged) else FAILED


# The report ---------------------------------------------------------------------------------------


class Report:
    """The results of all steps, stored in ``report.json`` and ``report.txt``.

    Parameters
    ----------
    folder : Path
        The folder of both files.
    device : str
        The device on which the steps run.
    resume : bool
        Whether to keep existing results for the same device.
    """

    def __init__(self, folder, device, resume=False):
        self._folder = Path(folder)
        path = self._folder / "report.json"
        before = json.loads(path.read_text()) if resume and path.exists() else {}
        same = before.get("device") == device
        self.content = before if same else {"device": device, "machine": {}, "steps": {}}

    def keep(self, name, step):
        """Add the result of a step, and write both files."""
        self.content["steps"][name] = step
        self.content["machine"] |= step.get("machine", {})
        write_json(self._folder / "report.json", self.content)
        (self._folder / "report.txt").write_text(self.text())

    def done(self, name):
        """Tell whether a step need not run again."""
        return self.content["steps"].get(name, {}).get("outcome") == PASSED

    def good(self, names):
        """Tell whether all of these steps succeeded."""
        steps = self.content["steps"]
        return all(name in steps and steps[name]["outcome"] not in WRONG for name in names)

    def text(self):
        """Return the report as text."""
        lines = [f"fastops on {self.content['device']}"]
        lines += [f"  {name}: {value}" for name, value in self.content["machine"].items()]
        for name, step in self.content["steps"].items():
            lines += ["", *step_lines(name, step)]
        return "\n".join(lines) + "\n"


def step_lines(name, step):
    """Return the result of a step as lines of text."""
    lines = [f"{name}: {step['outcome']}, {step['seconds']:.0f} s"]
    for verdict in step.get("verdicts", ()):
        sign = {True: "holds", False: "FAILS", None: "open"}[verdict["holds"]]
        found = ", ".join(filter(None, (str(verdict["found"]), verdict["bound"])))
        lines.append(f"  {sign:<6} {verdict['what']}" + (f": {found}" if found else ""))
    for row in step.get("table", ()):
        lines.append("    " + "  ".join(f"{cell:<16}" for cell in row).rstrip())
    lines += [f"  - {note}" for note in step.get("notes", ())]
    return lines
