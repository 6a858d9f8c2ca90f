"""Profiles as a page of HTML that needs no other file."""

import html

from fastops._reports import flame
from fastops._reports.tables import as_html

_STYLE = """
body { margin: 0; background: #fff; }
@media (prefers-color-scheme: dark) { body { background: #14171d; } }
main { box-sizing: border-box; max-width: 1200px; margin: auto; padding: 16px; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 24px 0 4px; }
.scrolls { overflow-x: auto; }
table { border-collapse: collapse; margin: 8px 0; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 12px 3px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; white-space: nowrap; }
td:last-child { min-width: 8em; }
#told { position: sticky; bottom: 0; min-height: 3em; padding: 6px 0; white-space: pre-line;
  overflow-wrap: anywhere; background: var(--ground); border-top: 1px solid var(--line);
  font-size: 13px; }
"""

_SCRIPT = """
const told = document.getElementById("told"), start = told.textContent;
for (const picture of document.querySelectorAll(".bars")) {
  const bars = [...picture.children].map(bar => ({bar, left: parseFloat(bar.style.left),
    width: parseFloat(bar.style.width)}));
  const zoom = to => bars.forEach(item => {
    const left = (item.left - to.left) / to.width * 100, width = item.width / to.width * 100;
    const from = Math.max(left, 0), until = Math.min(left + width, 100);
    item.bar.style.left = from + "%";
    item.bar.style.width = Math.max(until - from, 0) + "%";
    item.bar.style.visibility = until - from > 0.02 ? "" : "hidden";
  });
  for (const item of bars) {
    const tell = () => { told.textContent = item.bar.title; };
    item.bar.addEventListener("mouseenter", tell);
    item.bar.addEventListener("focus", tell);
    item.bar.addEventListener("click", () => zoom(item));
    item.bar.addEventListener("keydown", event => {
      if (event.key === "Enter") zoom(item);
      if (event.key === "Escape") zoom(bars[0]);
    });
  }
  picture.addEventListener("mouseleave", () => { told.textContent = start; });
}
"""

_HINT = "Point at a bar to read about it. Click a bar to zoom in, and the top bar to zoom out."


def as_page(profile, title):
    """Return a profile as a document: the picture, the tables, and how it was measured."""
    tables = "".join(f'<div class="scrolls">{as_html(*table)}</div>' for table in profile._tables())
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in notes_of(profile))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{html.escape(title)}</title><style>{flame.STYLE}{_STYLE}</style></head>"
        f'<body class="fastops-flame"><main><h1>{html.escape(title)}</h1>'
        f"<p>{html.escape(profile._summary())}</p>"
        f"<h2>Where the time goes</h2>{flame.as_html(profile)}"
        f'<div id="told">{_HINT}</div>'
        f"<h2>Calls of ops</h2>{tables}<h2>How this was measured</h2>{notes}"
        f"</main><script>{_SCRIPT}</script></body></html>\n"
    )


def as_fragment(profile):
    """Return a profile as HTML for notebooks: the picture and the tables, without a script."""
    tables = "".join(as_html(*table) for table in profile._tables())
    return (
        f'<style>{flame.STYLE}</style><div class="fastops-flame">{flame.as_html(profile)}</div>'
        f"{tables}<p>{html.escape(profile._summary())}</p>"
    )


def notes_of(profile):
    """Yield notes: which numbers are measured, which are derived, and which calls are missing."""
    yield (
        "Measured by the clock: the block, each call of an op, its kernel alone, and its time with "
        "TensorFlow. Derived: the dispatch, which is the rest of a call."
    )
    limits = profile._limits()
    if "cost_of_python_call_ns" in limits:
        yield (
            "Measured by a profile function: the calls of Python functions, and the calls into "
            "TensorFlow's C++. Noting one took "
            f"{limits['cost_of_python_call_ns']:.0f} ns and {limits['cost_of_c_call_ns']:.0f} ns, "
            "measured on other calls. The picture leaves this time out; the tables include it."
        )
        yield (
            f"Python code took {limits['slowdown_of_python']:.2f} times as long while calls were "
            "noted, measured on other code. The picture divides the time of Python code by this "
            "factor, so that time is an estimate."
        )
    else:
        yield limits.get("no_frames") or (
            "The code above the ops is one bar: profile(frames=True) shows Python functions, too."
        )
    if any(method.reason is None for method in profile.methods):
        yield (
            "The time in which fastops checks a call of a Keras object before its replay is in the "
            "bar of the caller, in the color of Python. In a profile, replays run op by op, which "
            "takes longer."
        )
    if limits["calls_left_out"]:
        yield f"The last {limits['calls_left_out']:,} calls of ops are missing in the picture."
    if limits.get("frames_cut"):
        yield "Too many Python functions were called to keep all calls: the last ones are missing."
