"""Shapes that are known in part."""


def dims_of(shape):
    """Return a shape as a tuple, with `None` for what is not known."""
    return None if shape.rank is None else tuple(shape.as_list())


def fits(dims, wanted):
    """Tell whether two shapes, as `dims_of` has them, may be the same."""
    if dims is None or wanted is None:
        return True
    return len(dims) == len(wanted) and all(
        one is None or other in (None, one) for one, other in zip(dims, wanted, strict=True)
    )
