"""Profiles in the Trace Event Format, which Perfetto and chrome://tracing open."""

import json
import os
import sys

from fastops._reports.spans import tracks


def as_trace(profile):
    """Return a profile as the object that the format requires.

    Times are in microseconds of the clock. They include the overhead of noting.
    """
    process = os.getpid()
    events = [_about(process, 0, "process_name", _program())]
    for index, track in enumerate(tracks(profile, corrected=False)):
        events.append(_about(process, track.number, "thread_name", track.name))
        sort = {"ph": "M", "pid": process, "tid": track.number, "name": "thread_sort_index"}
        events.append({**sort, "args": {"sort_index": index}})
        events += _complete(track.root, process, track.number)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"made_by": "fastops", **profile._limits()},
    }


def as_json(profile):
    """Return a profile as JSON text in the Trace Event Format."""
    return json.dumps(as_trace(profile), separators=(",", ":"), default=str)


def _program():
    return os.path.basename(sys.argv[0]) or "python"


def _about(process, thread, name, value):
    return {"ph": "M", "pid": process, "tid": thread, "name": name, "args": {"name": value}}


def _complete(root, process, thread):
    """Yield a span and all spans inside it, each before its inner ones."""
    waiting = [root]
    while waiting:
        span = waiting.pop()
        yield {
            "ph": "X",
            "pid": process,
            "tid": thread,
            "name": span.name,
            "cat": span.kind,
            "ts": span.start / 1000,
            "dur": (span.stop - span.start) / 1000,
            "args": span.about,
        }
        waiting += reversed(span.inner)
