"""Methods of tensors and variables, and the ops that they are lowered to. Data only."""

from fastops._install.public.entry import LoweringSpec, SiteSpec
from fastops._install.public.functions import MASKING


def _matmul_operator(name, first, names="(x, y)"):
    params = "a=x b=y transpose_a transpose_b"
    grads = {"grad_a": False, "grad_b": False}
    return LoweringSpec(
        name,
        names,
        (
            SiteSpec("MatMul", params, constants=grads),
            SiteSpec(
                "BatchMatMulV2",
                "x=x y=y adj_x=transpose_a adj_y=transpose_b",
                constants={"grad_x": False, "grad_y": False},
            ),
        ),
        first,
        "matmul_operator",
        "transpose_a transpose_b adjoint_a adjoint_b a_is_sparse b_is_sparse",
    )


METHODS = (
    _matmul_operator("tf.Tensor.__matmul__", "x=eager"),
    _matmul_operator("tf.Tensor.__rmatmul__", "y=eager", "(y, x)"),
    _matmul_operator("tf.Variable.__matmul__", "x=variable"),
    LoweringSpec(
        "tf.Tensor.__getitem__",
        "(tensor, slice_spec, var=None)",
        (
            SiteSpec(
                "StridedSlice",
                "input=tensor begin end strides begin_mask end_mask ellipsis_mask new_axis_mask"
                " shrink_axis_mask",
            ),
            *MASKING,
        ),
        "tensor=eager var=none",
        "getitem",
        "begin end strides begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask",
    ),
)
"""The methods of tensors and variables that are replaced."""
