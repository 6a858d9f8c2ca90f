"""How much the stress tests do.

The environment's ``STRESS`` is a fraction of the full figures: eight threads with a million calls
each, ten million calls and a million attribute values while memory is watched. ``STRESS=1`` takes
about half an hour; without it a hundredth of them runs.
"""

import os

STRESS = float(os.environ.get("STRESS", "0.01"))


def times(full):
    """Return how often to do what the full figures do that often."""
    return max(1, round(full * STRESS))


def seconds(full):
    """Return how long something may take that takes that long with the full figures."""
    return 60 + full * STRESS
