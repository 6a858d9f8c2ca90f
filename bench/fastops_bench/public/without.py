"""Public names without a recipe, by reason. `*` matches any letters."""

REASONS = {
    "changes how TensorFlow runs all later calls": """
        tf.config.* tf.debugging.disable_* tf.debugging.enable_* tf.debugging.experimental.*
        tf.debugging.set_log_device_placement tf.experimental.enable_strict_mode
        tf.experimental.function_executor_type tf.experimental.async_*
        tnp.experimental_enable_numpy_behavior tf.random.set_global_generator
        tf.random.set_seed tnp.random.seed
        tf.autograph.set_verbosity tf.register_tensor_conversion_function
        tf.experimental.dispatch_for_* tf.experimental.unregister_dispatch_for
        tf.no_gradient tf.load_library tf.load_op_library tf.experimental.register_filesystem_plugin
    """,
    "builds or converts graphs and functions": """
        tf.function tf.gradients tf.hessians tf.graph_util.import_graph_def tf.autograph.*
        tf.nondifferentiable_batch_function tf.mlir.* tf.xla.* tf.lite.*
        tf.quantization.experimental.* tf.parallel_stack tf.variable_creator_scope
    """,
    "reads or writes files": """
        tf.io.gfile.* tf.io.match_filenames_once tf.io.matching_files tf.io.read_file
        tf.io.write_file tf.io.write_graph tf.saved_model.* tf.summary.* tf.train.*
    """,
    "describes a pipeline, which runs on other threads": "tf.data.*",
    "describes columns, which old layers of Keras read": "tf.feature_column.*",
    "needs several devices or machines": """
        tf.distribute.* tf.experimental.dtensor.* tf.tpu.*
    """,
    "needs a kernel that only GPUs or XLA have": """
        tf.approx_top_k tf.math.approx_max_k tf.math.approx_min_k tf.check_pinned
        tf.conv2d_backprop_filter_v2 tf.conv2d_backprop_input_v2 tf.fftnd tf.ifftnd tf.irfftnd
        tf.rfftnd tf.signal.fftnd tf.signal.ifftnd tf.signal.irfftnd tf.signal.rfftnd
        tf.image.generate_bounding_box_proposals
    """,
    "needs a graphics card": "tf.Tensor.gpu",
    "needs a file in a format that nothing here writes": "tf.image.decode_jxl",
    "works only after tnp.experimental_enable_numpy_behavior()": """
        tnp.around tnp.round tf.Tensor.__round__
    """,
    "returns information about TensorFlow, the program or the machine": """
        tf.debugging.get_log_device_placement tf.debugging.is_traceback_filtering_enabled
        tf.get_current_name_scope tf.get_logger tf.inside_function tf.profiler.* tf.sysconfig.*
        tf.test.* tf.random.get_global_generator
    """,
    "handles types and not tensors": """
        tnp.finfo tnp.issubdtype tf.types.* tf.experimental.extension_type.as_dict
        *.__tf_tracing_type__ *.experimental_from_proto *.experimental_as_proto
        *.experimental_type_proto tf.TensorShape.as_proto tf.TensorShape.cast
        tf.TensorShape.flatten tf.TensorShape.from_tensors tf.TensorShape.to_tensors
        tf.TensorShape.placeholder_value tf.TensorShape.__concat__ tf.Variable.from_proto
        tf.Variable.to_proto tf.Variable.SaveSliceInfo
    """,
    "ends what another method has begun, or can be called only once": """
        tf.GradientTape.__exit__ tf.autodiff.ForwardAccumulator.__exit__ tf.TensorArray.close
        tf.queue.FIFOQueue.close tf.queue.FIFOQueue.from_list
    """,
    "every Python object has it": """
        *.__class__ *.__delattr__ *.__del__ *.__getattr__ *.__hash__ *.__init__ *.__init_subclass__
        *.__reduce__ *.__setattr__ *.__subclasshook__
    """,
    "another name of the same, kept from Python 2 or TensorFlow 1": """
        *.__div__ *.__rdiv__ *.__idiv__ *.__nonzero__ *.__long__ tf.Tensor.experimental_ref
        tf.Variable.experimental_ref tf.Variable.initialized_value
    """,
    "raises in eager mode, or always": """
        *.consumers *.eval tf.Variable.__copy__ tf.Variable.__iadd__ tf.Variable.__imul__
        tf.Variable.__ipow__ tf.Variable.__irealdiv__ tf.Variable.__isub__ tf.Variable.__itruediv__
        tf.Variable.load tf.Variable.set_shape tf.RaggedTensor.__bool__ tf.TensorArray.grad
    """,
}


def names(reason):
    """Return the names, or patterns of names, that have this reason."""
    return [name.replace("tnp.", "tf.experimental.numpy.") for name in REASONS[reason].split()]
