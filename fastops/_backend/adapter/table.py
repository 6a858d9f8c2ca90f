"""Which functions of Keras's TensorFlow backend have stand-ins, and which are Keras's own.

This module has only data. The code of the functions in `NATIVE` was reviewed: their arguments and
the state that `stand_ins` guards decide which ops they run. A test compares each with Keras's
function. `MISSING` has all other functions of Keras 3.15.
"""

NATIVE = {
    "core": """
        cast convert_to_tensor scatter scatter_update shape slice stop_gradient unstack
    """,
    "numpy": """
        abs absolute add all allclose amax amin angle any append arange arccos arccosh arcsin
        arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort array array_split average
        bartlett bincount bitwise_and bitwise_invert bitwise_left_shift bitwise_not bitwise_or
        bitwise_right_shift bitwise_xor blackman broadcast_to cbrt ceil clip concatenate conj
        conjugate copy corrcoef correlate cos cosh count_nonzero cross cumprod cumsum deg2rad diag
        diagflat diagonal diff digitize divide divide_no_nan dot dsplit dstack einsum empty
        empty_like equal exp exp2 expand_dims expm1 eye fabs flip fliplr flipud floor floor_divide
        fmax fmin fmod full full_like gcd geomspace greater greater_equal hamming hanning heaviside
        histogram hsplit hstack hypot i0 identity imag inner isclose isfinite isin isinf isnan
        isneginf isposinf isreal kaiser kron lcm ldexp left_shift less less_equal linspace log log10
        log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logspace
        matmul max maximum mean median meshgrid min minimum mod moveaxis multiply nan_to_num
        nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile
        nanprod nanquantile nanstd nansum nanvar ndim negative nextafter nonzero not_equal ones
        ones_like outer pad percentile power prod ptp quantile rad2deg ravel real reciprocal repeat
        reshape right_shift roll rot90 round searchsorted select sign signbit sin sinc sinh size
        slogdet sort split sqrt square squeeze stack std subtract sum swapaxes take take_along_axis
        tan tanh tensordot tile trace transpose trapezoid tri tril triu true_divide trunc unique
        unravel_index vander var vdot view vsplit vstack where zeros zeros_like
    """,
    "nn": """
        adaptive_average_pool adaptive_max_pool average_pool batch_normalization binary_crossentropy
        categorical_crossentropy celu conv conv_transpose ctc_decode depth_to_space
        depthwise_conv dot_product_attention elu gelu glu hard_shrink hard_sigmoid hard_silu
        hard_tanh leaky_relu log_sigmoid log_softmax max_pool moments multi_hot one_hot psnr relu
        relu6 selu separable_conv sigmoid silu soft_shrink softmax softplus softsign space_to_depth
        sparse_categorical_crossentropy sparse_plus sparse_sigmoid sparsemax squareplus tanh
        tanh_shrink threshold unfold
    """,
    "math": """
        cdist erf erfc erfinv extract_sequences fft fft2 ifft2 in_top_k irfft istft logdet logsumexp
        rfft rsqrt segment_max segment_min segment_prod segment_sum stft top_k
    """,
    "random": """
        beta binomial categorical dropout gamma normal randint shuffle truncated_normal uniform
    """,
    "linalg": """
        cholesky cholesky_inverse det eig eigh inv lstsq lu_factor matrix_rank norm pinv qr solve
        solve_triangular svd
    """,
    "image": """
        affine_transform compute_homography_matrix gaussian_blur hsv_to_rgb
        map_coordinates perspective_transform resize rgb_to_grayscale rgb_to_hsv scale_and_translate
        sobel_edges
    """,
}
"""The functions that have stand-ins, by module."""

MISSING = {
    "core": {
        "associative_scan cond custom_gradient fori_loop map remat scan switch vectorized_map "
        "while_loop": "calls a function that is an argument",
        "compute_output_spec": "makes a graph of symbolic values",
        "convert_to_numpy is_tensor random_seed_dtype": "runs no op",
        "device_scope": "is a context",
        "slice_update": "runs an op that XLA compiles",
    },
    "numpy": {"vectorize": "calls a function that is an argument"},
    "nn": {
        "ctc_loss": "runs an op that does not fill its output completely",
        "fold": "warns",
    },
    "math": {},
    "random": {},
    "linalg": {"jvp": "calls a function that is an argument"},
    "image": {"elastic_transform": "looks at other arguments before it draws a seed"},
    "rnn": {
        "rnn": "calls a function that is an argument",
        "bidirectional_gru bidirectional_lstm cudnn_ok gru lstm": "runs on GPUs only, or raises",
    },
}
"""The functions that are Keras's own, by module and names, with the reason."""

READ = frozenset(
    {
        *("a", "array", "b", "condition", "data", "images", "indices", "inputs", "kernel", "key"),
        *("logits", "offset", "output", "predictions", "query", "scale", "segment_ids", "target"),
        *("targets", "value", "values", "x", "x1", "x2", "xs", "y"),
    }
)
"""Parameters that Keras's functions first convert to tensors, for all arrays."""

ARRAYS_AS_THEY_ARE = frozenset(
    {
        *("array", "convert_to_tensor", "view"),
        *("adaptive_average_pool", "adaptive_max_pool", "solve", "solve_triangular"),
    }
)
"""Functions that convert arrays in another way, or do not take arrays."""

VARIABLES_AS_THEY_ARE = frozenset(
    {
        *("digitize", "fft", "fft2", "ifft2", "irfft", "isreal", "lcm", "map_coordinates"),
        *("nan_to_num", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean"),
        *("nanmin", "nanprod", "sobel_edges", "stack"),
    }
)
"""Functions in which a Keras variable cannot replace a tensor everywhere."""
