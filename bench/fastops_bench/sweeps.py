"""Sweeps: what calls take along a number, and where dispatch stops mattering."""

import math

SHARE = 0.1
"""Dispatch is said to matter while it is more than this of a call."""


def series(rows):
    """Return what was swept: by what of and along what, for each arm its places and nanoseconds."""
    found = {}
    for row in rows:
        sweep = row.about.get("sweep")
        if sweep:
            arms = found.setdefault((sweep["of"], sweep["along"]), {})
            for arm in row.samples:
                arms.setdefault(arm, []).append((sweep["at"], row.time(arm)))
    return {
        key: {arm: sorted(points) for arm, points in arms.items()} for key, arms in found.items()
    }


def dispatch(points, kernel):
    """Return what a call takes beside its kernel, from the smallest place of both."""
    return points[0][1] - kernel[0][1]


def crossing(points, kernel, share=SHARE):
    """Return from which place on the dispatch is less than a share of a call.

    What a call takes beside its kernel is measured where the kernel has next to nothing to do: it
    does not depend on the size, and the difference of two large times would be noise.

    Parameters
    ----------
    points, kernel : list of (float, float)
        Places and nanoseconds: of the call, and of its kernel alone.
    share : float

    Returns
    -------
    float or None
        Interpolated between places, on logarithmic axes; `None` if it is not so at any.
    """
    wanted = dispatch(points, kernel) / share
    before = None
    # From the end: it is not to matter any more from there on.
    for at, time in reversed(points):
        if time < wanted:
            if before is None:
                return None
            later, longer = before
            way = math.log(wanted / time) / math.log(longer / time)
            return at * (later / at) ** way
        before = at, time
    return points[0][0]


def crossings(arms):
    """Return the arms with a dispatch, and where it stops mattering."""
    if "kernel" not in arms:
        return {}
    kernel = arms["kernel"]
    return {
        arm: crossing(arms[arm], kernel)
        for arm in ("fastops", "raw_ops")
        if arm in arms and dispatch(arms[arm], kernel) > 0
    }
