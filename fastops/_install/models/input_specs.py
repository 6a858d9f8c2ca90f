"""Which sizes Keras's check of a layer's inputs decides by."""

import sys

from fastops._install import restated

GROUP = "input specs"
"""The code that this module knows, in the table of `restated`."""

_SPECS = "keras.src.layers.input_spec"
_SHAPES = "keras.src.backend.common.variables"
_CHECKS = ("assert_input_compatibility", "_check_input_spec")


def axes_of(frame, rank):
    """Return the axes by which code may decide that takes all sizes of a tensor.

    Keras turns the shape of each input of a layer into a tuple, and compares this tuple with the
    layer's `keras.InputSpec`. The sizes decide nothing but errors, along the axes of the spec.

    Parameters
    ----------
    frame : frame
        The frame of the code.
    rank : int
        The number of sizes.

    Returns
    -------
    list of int or None
        The axes; None for all of them.
    """
    check = frame.f_back
    if (
        frame.f_code is not _code_of(_SHAPES, "standardize_shape")
        or check is None
        or not any(check.f_code is _code_of(_SPECS, name) for name in _CHECKS)
        or restated.changed(GROUP) is not None
    ):
        return None
    spec = check.f_locals["spec"]
    asked = {axis for axis, size in (spec.axes or {}).items() if size is not None}
    asked |= {axis for axis, size in enumerate(spec.shape or ()) if size is not None}
    if spec.allow_last_axis_squeeze:
        asked.add(-1)
    return [axis for axis in asked if -rank <= axis < rank]


def _code_of(module, name):
    """Return the code of a function that is Keras's own."""
    function = vars(sys.modules[module]).get(name) if module in sys.modules else None
    return getattr(function, "__code__", None)
