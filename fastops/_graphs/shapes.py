"""Partially known shapes."""


def dims_of(shape):
    """Return a shape as a tuple, with `None` for unknown sizes; `None` if the rank is unknown."""
    return None if shape.rank is None else tuple(shape.as_list())


def fits(dims, wanted):
    """Tell whether two shapes, as `dims_of` returns them, may be equal."""
    if dims is None or wanted is None:
        return True
    return len(dims) == len(wanted) and all(
        dim is None or other in (None, dim) for dim, other in zip(dims, wanted, strict=True)
    )
