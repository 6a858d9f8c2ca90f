"""Sweeps: times of calls as a function of a number, and where dispatch stops mattering."""

import math

SHARE = 0.1
"""Dispatch matters if it is more than this share of a call."""


def series(rows):
    """Return the sweeps: by group and axis, for each arm its positions and nanoseconds."""
    swept = {}
    for row in rows:
        sweep = row.about.get("sweep")
        if sweep:
            arms = swept.setdefault((sweep["of"], sweep["along"]), {})
            for arm in row.samples:
                arms.setdefault(arm, []).append((sweep["at"], row.time(arm)))
    return {
        key: {arm: sorted(points) for arm, points in arms.items()} for key, arms in swept.items()
    }


def dispatch(points, kernel):
    """Return the time of a call outside of its kernel, at the smallest position of both."""
    return points[0][1] - kernel[0][1]


def crossing(points, kernel, share=SHARE):
    """Return the position from which dispatch is less than a share of a call.

    The time of a call outside of its kernel is measured where the kernel has almost nothing to do.
    It does not depend on the size, and at large sizes it would be a small difference of two large
    times.

    Parameters
    ----------
    points, kernel : list of (float, float)
        Positions and nanoseconds, of the call and of its kernel alone.
    share : float

    Returns
    -------
    float or None
        The position, interpolated on logarithmic axes; `None` if there is none.
    """
    wanted = dispatch(points, kernel) / share
    before = None
    # Search from the end: dispatch must not matter at any later position.
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
    """Return the arms with dispatch, and the positions where it stops mattering."""
    if "kernel" not in arms:
        return {}
    kernel = arms["kernel"]
    return {
        arm: crossing(arms[arm], kernel)
        for arm in ("fastops", "raw_ops")
        if arm in arms and dispatch(arms[arm], kernel) > 0
    }
