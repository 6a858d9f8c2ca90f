"""The list of replayed functions: public functions of TensorFlow that are written in Python.

The source of each function was read before it was added. Its arguments alone decide which ops it
runs: it keeps nothing from call to call, draws random numbers only by ops, and reads no state
except that of the context. Other obstacles are found when a call is recorded: ops with state,
results that are not tensors, and arguments of unsupported types.
"""

FUNCTIONS = {
    "tf": """
        Assert acos argsort assert_equal assert_greater assert_less assert_rank batch_to_space
        broadcast_dynamic_shape broadcast_static_shape clip_by_global_norm clip_by_norm complex
        edit_distance eig eigvals einsum ensure_shape eye fingerprint guarantee_const
        histogram_fixed_width histogram_fixed_width_bins linspace meshgrid norm reduce_logsumexp
        repeat required_space_to_batch_paddings reverse_sequence roll saturate_cast scalar_mul
        searchsorted sequence_mask shape_n slice sort space_to_batch strided_slice tanh
        tensor_scatter_nd_update tensordot unique unique_with_counts
    """,
    "tf.debugging": """
        assert_all_finite assert_greater_equal assert_integer assert_less_equal assert_near
        assert_negative assert_non_negative assert_non_positive assert_none_equal assert_positive
        assert_rank_at_least assert_rank_in assert_scalar assert_shapes assert_type
    """,
    "tf.experimental.numpy": """
        abs absolute add all allclose amax amin angle any append arange arccos arccosh arcsin
        arcsinh arctan arctan2 arctanh argmax argmin argsort around array array_equal asanyarray
        asarray ascontiguousarray atleast_1d atleast_2d atleast_3d average bitwise_and bitwise_not
        bitwise_or bitwise_xor broadcast_arrays broadcast_to cbrt ceil clip compress concatenate
        conj conjugate copy cos cosh count_nonzero cross cumprod cumsum deg2rad diag diag_indices
        diagflat diagonal diff divide divmod dot dsplit dstack einsum empty empty_like equal exp
        exp2 expand_dims expm1 eye fabs fix flatten flip fliplr flipud float_power floor
        floor_divide full full_like gcd geomspace greater greater_equal heaviside hsplit hstack
        hypot identity imag inner isclose iscomplex iscomplexobj isfinite isinf isnan isneginf
        isposinf isreal isrealobj isscalar ix_ kron lcm less less_equal linspace log log10 log1p
        log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logspace matmul
        max maximum mean meshgrid min minimum mod moveaxis multiply nanmean nanprod nansum
        negative nextafter nonzero not_equal ones ones_like outer pad polyval positive power prod
        ptp rad2deg ravel real reciprocal remainder repeat reshape roll rot90 round select
        sign signbit sin sinc sinh sort split sqrt square squeeze stack std subtract sum
        swapaxes take take_along_axis tan tanh tensordot tile trace transpose tri tril triu
        true_divide vander var vdot vsplit vstack where zeros zeros_like
    """,
    "tf.experimental.numpy.random": """
        poisson rand randint randn random standard_normal uniform
    """,
    "tf.image": """
        adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_jpeg_quality
        adjust_saturation central_crop combined_non_max_suppression convert_image_dtype
        crop_and_resize crop_to_bounding_box draw_bounding_boxes extract_glimpse extract_patches
        flip_left_right flip_up_down generate_bounding_box_proposals grayscale_to_rgb
        image_gradients non_max_suppression non_max_suppression_overlaps non_max_suppression_padded
        non_max_suppression_with_scores pad_to_bounding_box per_image_standardization psnr
        random_brightness random_contrast random_crop random_flip_left_right random_flip_up_down
        random_hue random_saturation resize resize_with_crop_or_pad resize_with_pad rgb_to_grayscale
        rgb_to_yiq rgb_to_yuv rot90 sample_distorted_bounding_box sobel_edges ssim
        ssim_multiscale stateless_random_brightness stateless_random_contrast stateless_random_crop
        stateless_random_flip_left_right stateless_random_flip_up_down stateless_random_hue
        stateless_random_jpeg_quality stateless_random_saturation total_variation transpose
        yiq_to_rgb yuv_to_rgb
    """,
    "tf.io": """
        decode_and_crop_jpeg decode_bmp decode_csv decode_gif decode_image decode_jpeg decode_png
        decode_raw deserialize_many_sparse encode_jpeg encode_png extract_jpeg_shape is_jpeg
        serialize_many_sparse serialize_sparse
    """,
    "tf.linalg": """
        adjoint banded_triangular_solve cholesky_solve diag diag_part eigh eigh_tridiagonal
        eigvalsh expm global_norm logdet lstsq lu_matrix_inverse lu_reconstruct lu_solve
        matrix_rank matrix_transpose matvec normalize pinv set_diag svd tensor_diag_part trace
        triangular_solve tridiagonal_matmul tridiagonal_solve
    """,
    "tf.math": """
        accumulate_n angle bessel_i0 bessel_i0e bessel_i1 bessel_i1e bincount confusion_matrix
        conj count_nonzero cumulative_logsumexp erfcinv erfinv imag is_non_decreasing
        is_strictly_increasing lbeta log_sigmoid multiply_no_nan ndtri polyval real
        reciprocal_no_nan reduce_euclidean_norm reduce_std reduce_variance sobol_sample
        unsorted_segment_mean unsorted_segment_sqrt_n xdivy xlog1py
    """,
    "tf.math.special": """
        bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1 dawsn
        expint fresnel_cos fresnel_sin spence
    """,
    "tf.nn": """
        approx_max_k approx_min_k atrous_conv2d atrous_conv2d_transpose avg_pool avg_pool1d
        avg_pool2d avg_pool3d batch_norm_with_global_normalization batch_normalization
        collapse_repeated compute_accidental_hits compute_average_loss conv1d conv1d_transpose
        conv2d conv2d_transpose conv3d conv3d_transpose conv_transpose convolution crelu
        ctc_beam_search_decoder ctc_greedy_decoder ctc_loss ctc_unique_labels depth_to_space
        depthwise_conv2d depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input
        dilation2d dropout embedding_lookup embedding_lookup_sparse erosion2d fractional_avg_pool
        fractional_max_pool gelu in_top_k isotonic_regression l2_normalize log_poisson_loss max_pool
        max_pool1d max_pool2d max_pool3d max_pool_with_argmax moments nce_loss normalize_moments
        pool safe_embedding_lookup_sparse sampled_softmax_loss scale_regularization_loss
        separable_conv2d
        sigmoid_cross_entropy_with_logits silu
        softmax_cross_entropy_with_logits space_to_depth sufficient_statistics
        weighted_cross_entropy_with_logits weighted_moments with_space_to_batch zero_fraction
    """,
    "tf.nn.experimental": """
        general_dropout stateless_dropout
    """,
    "tf.quantization": """
        dequantize quantize quantize_and_dequantize quantize_and_dequantize_v2
    """,
    "tf.ragged": """
        boolean_mask constant cross cross_hashed range row_splits_to_segment_ids
        segment_ids_to_row_splits stack stack_dynamic_partitions
    """,
    "tf.random": """
        all_candidate_sampler categorical fixed_unigram_candidate_sampler fold_in gamma
        log_uniform_candidate_sampler poisson shuffle split stateless_binomial stateless_categorical
        stateless_gamma stateless_normal stateless_parameterized_truncated_normal stateless_poisson
        stateless_truncated_normal stateless_uniform truncated_normal uniform_candidate_sampler
    """,
    "tf.random.experimental": """
        index_shuffle stateless_shuffle
    """,
    "tf.sets": """
        difference intersection size union
    """,
    "tf.signal": """
        dct fftnd fftshift frame hamming_window hann_window idct ifftnd ifftshift inverse_mdct
        inverse_stft irfft irfft2d irfft3d irfftnd kaiser_bessel_derived_window kaiser_window
        linear_to_mel_weight_matrix mdct mfccs_from_log_mel_spectrograms overlap_and_add rfft
        rfft2d rfft3d rfftnd stft vorbis_window
    """,
    "tf.sparse": """
        add bincount concat cross cross_hashed expand_dims eye fill_empty_rows from_dense mask
        maximum minimum reduce_max reduce_sum reorder reset_shape reshape retain sampled_addmm
        segment_mean segment_sqrt_n segment_sum slice softmax sparse_dense_matmul split to_dense
        to_indicator transpose
    """,
    "tf.strings": """
        bytes_split format join length ngrams reduce_join regex_full_match regex_replace split
        substr to_hash_bucket to_number unicode_decode unicode_decode_with_offsets unicode_encode
        unicode_split unicode_split_with_offsets unsorted_segment_join
    """,
}
"""By namespace, the names of the functions."""

WRITTEN_LATER = frozenset({"tf.tanh"})
"""Functions that are Python code since TensorFlow 2.22, and generated from an op before."""

ARRAYS = {
    title: names
    for names, titles in {
        "a": "tf.linalg.pinv",
        "a b": "tf.linalg.matvec tf.tensordot",
        "data segment_ids": "tf.math.unsorted_segment_mean tf.math.unsorted_segment_sqrt_n",
        "features": "tf.nn.crelu tf.nn.gelu",
        "features beta": "tf.nn.silu",
        "ids": "tf.nn.embedding_lookup",
        "image": """
            tf.image.adjust_brightness tf.image.adjust_gamma tf.image.adjust_hue
            tf.image.adjust_jpeg_quality tf.image.adjust_saturation tf.image.central_crop
            tf.image.convert_image_dtype tf.image.crop_to_bounding_box tf.image.flip_left_right
            tf.image.flip_up_down tf.image.pad_to_bounding_box tf.image.per_image_standardization
            tf.image.random_brightness tf.image.random_contrast tf.image.random_flip_left_right
            tf.image.random_flip_up_down tf.image.random_hue tf.image.random_saturation
            tf.image.resize_with_crop_or_pad tf.image.resize_with_pad tf.image.rot90
            tf.image.stateless_random_brightness tf.image.stateless_random_contrast
            tf.image.stateless_random_flip_left_right tf.image.stateless_random_flip_up_down
            tf.image.stateless_random_hue tf.image.stateless_random_jpeg_quality
            tf.image.stateless_random_saturation tf.image.transpose
        """,
        "images": """
            tf.image.adjust_contrast tf.image.resize tf.image.rgb_to_grayscale tf.image.rgb_to_yiq
            tf.image.rgb_to_yuv tf.image.yiq_to_rgb tf.image.yuv_to_rgb
        """,
        "img1 img2": "tf.image.ssim tf.image.ssim_multiscale",
        "input": """
            tf.linalg.expm tf.math.angle tf.math.count_nonzero tf.math.imag tf.math.real tf.nn.pool
        """,
        "input depthwise_filter pointwise_filter": "tf.nn.separable_conv2d",
        "input filter": "tf.nn.depthwise_conv2d",
        "input_tensor": "tf.math.reduce_std tf.math.reduce_variance",
        "inputs": "tf.nn.isotonic_regression",
        "labels": "tf.nn.nce_loss tf.nn.sampled_softmax_loss",
        "labels logits": """
            tf.nn.sigmoid_cross_entropy_with_logits tf.nn.softmax_cross_entropy_with_logits
            tf.nn.weighted_cross_entropy_with_logits
        """,
        "lengths": "tf.sequence_mask",
        "log_mel_spectrograms": "tf.signal.mfccs_from_log_mel_spectrograms",
        "logits": "tf.random.categorical tf.random.stateless_categorical",
        "matrix": "tf.linalg.adjoint",
        "mdcts": "tf.signal.inverse_mdct",
        "per_example_loss": "tf.nn.compute_average_loss",
        "real imag": "tf.complex",
        "signal": "tf.signal.frame tf.signal.overlap_and_add",
        "signals": "tf.signal.mdct tf.signal.stft",
        "stfts": "tf.signal.inverse_stft",
        "t": "tf.clip_by_norm",
        "targets log_input": "tf.nn.log_poisson_loss",
        "tensor": "tf.linalg.normalize tf.norm",
        "value": """
            tf.image.random_crop tf.image.stateless_random_crop tf.nn.zero_fraction tf.saturate_cast
        """,
        "value filters": "tf.nn.atrous_conv2d_transpose",
        "values value_range": "tf.histogram_fixed_width_bins",
        "x": """
            tf.linalg.trace tf.math.cumulative_logsumexp tf.math.erfcinv tf.math.lbeta
            tf.math.log_sigmoid tf.math.multiply_no_nan tf.math.reciprocal_no_nan tf.nn.dropout
            tf.nn.experimental.general_dropout tf.nn.experimental.stateless_dropout
            tf.nn.l2_normalize tf.nn.sufficient_statistics
        """,
        "x frequency_weights": "tf.nn.weighted_moments",
    }.items()
    for title in titles.split()
}
"""By function, the names of arguments that may be NumPy arrays. The function converts the arrays to
tensors without giving a dtype. Before that, it reads nothing of them except their dtype. A test
reads the code for this."""

FREED = frozenset({"tf.nn.nce_loss", "tf.nn.sampled_softmax_loss"})
"""Functions with ops whose output sizes depend on input values: on the number of accidental hits of
sampled classes. No Python code of these functions depends on the sizes."""

METHODS = {
    "tf.RaggedTensor": """
        __abs__ __add__ __and__ __eq__ __floordiv__ __ge__ __getitem__ __gt__ __invert__ __le__
        __lt__ __mod__ __mul__ __ne__ __neg__ __or__ __pow__ __radd__ __rand__ __rfloordiv__
        __rmod__ __rmul__ __ror__ __rpow__ __rsub__ __rtruediv__ __rxor__ __sub__ __truediv__
        __xor__ bounding_shape merge_dims nrows row_lengths row_limits row_starts to_sparse
        to_tensor value_rowids with_row_splits_dtype
    """,
    "tf.SparseTensor": """
        __div__ __mul__ __truediv__
    """,
    "tf.Variable": """
        gather_nd sparse_read
    """,
    "tf.linalg.LinearOperator": """
        __matmul__ add_to_tensor assert_non_singular assert_positive_definite assert_self_adjoint
        batch_shape_tensor cond determinant diag_part domain_dimension_tensor eigvals
        log_abs_determinant matmul matvec range_dimension_tensor shape_tensor solve solvevec
        tensor_rank_tensor to_dense trace
    """,
    "tf.linalg.LinearOperatorBlockDiag": """
        matmul matvec solve solvevec
    """,
    "tf.linalg.LinearOperatorBlockLowerTriangular": """
        matmul matvec solve solvevec
    """,
    "tf.linalg.LinearOperatorCirculant": """
        assert_hermitian_spectrum block_shape_tensor convolution_kernel
    """,
    "tf.lookup.StaticHashTable": """
        __getitem__ export lookup size
    """,
    "tf.lookup.StaticVocabularyTable": """
        lookup size
    """,
    "tf.lookup.experimental.DenseHashTable": """
        erase export insert insert_or_assign lookup remove size
    """,
    "tf.lookup.experimental.MutableHashTable": """
        export insert lookup remove size
    """,
}
"""By class, the names of the methods. The class or one of its bases defines them."""

OBJECTS = {
    "tensorflow.python.ops.lookup_ops.HashTable": "_initializer",
    "tf.lookup.StaticHashTable": "_initializer",
    "tf.lookup.StaticVocabularyTable": "_initializer",
    "tf.lookup.experimental.DenseHashTable": "",
    "tf.lookup.experimental.MutableHashTable": "",
    "tf.linalg.LinearOperatorAdjoint": "",
    "tf.linalg.LinearOperatorBlockDiag": "",
    "tf.linalg.LinearOperatorBlockLowerTriangular": "",
    "tf.linalg.LinearOperatorCirculant": "",
    "tf.linalg.LinearOperatorCirculant2D": "",
    "tf.linalg.LinearOperatorCirculant3D": "",
    "tf.linalg.LinearOperatorComposition": "",
    "tf.linalg.LinearOperatorDiag": "",
    "tf.linalg.LinearOperatorFullMatrix": "",
    "tf.linalg.LinearOperatorHouseholder": "",
    "tf.linalg.LinearOperatorIdentity": "",
    "tf.linalg.LinearOperatorInversion": "",
    "tf.linalg.LinearOperatorKronecker": "",
    "tf.linalg.LinearOperatorLowRankUpdate": "",
    "tf.linalg.LinearOperatorLowerTriangular": "",
    "tf.linalg.LinearOperatorPermutation": "",
    "tf.linalg.LinearOperatorScaledIdentity": "",
    "tf.linalg.LinearOperatorToeplitz": "",
    "tf.linalg.LinearOperatorTridiag": "",
    "tf.linalg.LinearOperatorZeros": "",
}
"""Classes whose methods choose ops by the contents of an instance, each with the names of the
attributes that no method reads."""
