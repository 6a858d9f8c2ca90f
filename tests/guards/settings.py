"""A module of a user. Layers in `declared` read its attributes."""

import numpy as np

SCALE = 2.0
TABLE = {"shift": 1.0}
ROW = np.ones(4, np.float32)


class Named:
    factor = 3.0
    limits = [1.0, 2.0]  # noqa: RUF012
