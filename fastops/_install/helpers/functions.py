"""Helper functions of TensorFlow that have a stand-in. Data only."""

from typing import NamedTuple


class Helper(NamedTuple):
    """One function.

    Attributes
    ----------
    name : str
        The name of its module (below `tensorflow.python` in most tables), and its own name.
    signature : str
        Its parameters, as `inspect.signature` shows them.
    takes : str
        A description of the arguments that the stand-in handles.
    """

    name: str
    signature: str
    takes: str


_STRUCTURES = "lists, tuples, namedtuples, and dicts with plain keys, which may hold any leaves"
_UPPER = "with the same container types in their upper levels"
_CONVERTED = "eager tensors of that dtype, shapes, numbers, and arrays that become tensors directly"
_LOOPS = "eager tensors, and lists and tuples of eager tensors"
_ELEMENTS = "numbers and eager tensors as indices, and eager tensors"
_WRAPPED = "functions and methods whose signatures come from their own code"

HELPERS = (
    Helper("util.nest.is_nested", "(seq)", "anything"),
    Helper("util.nest.flatten", "(structure, expand_composites=False)", _STRUCTURES),
    Helper(
        "util.nest.flatten_with_tuple_paths", "(structure, expand_composites=False)", _STRUCTURES
    ),
    Helper(
        "util.nest.flatten_with_joined_string_paths",
        "(structure, separator='/', expand_composites=False)",
        _STRUCTURES,
    ),
    Helper(
        "util.nest.assert_same_structure",
        "(nest1, nest2, check_types=True, expand_composites=False)",
        f"{_STRUCTURES}, all with the same structure",
    ),
    Helper(
        "util.nest.pack_sequence_as",
        "(structure, flat_sequence, expand_composites=False)",
        f"{_STRUCTURES}, and a list or tuple with an item for each leaf",
    ),
    Helper(
        "util.nest.map_structure",
        "(func, *structure, **kwargs)",
        f"{_STRUCTURES}, all with the same structure",
    ),
    *(
        Helper(f"util.nest.{name}", signature, f"{_STRUCTURES}, {_UPPER}")
        for name, signature in (
            ("map_structure_up_to", "(shallow_tree, func, *inputs, **kwargs)"),
            ("map_structure_with_tuple_paths", "(func, *structure, **kwargs)"),
            ("map_structure_with_tuple_paths_up_to", "(shallow_tree, func, *inputs, **kwargs)"),
            (
                "flatten_up_to",
                "(shallow_tree, input_tree, check_types=True, expand_composites=False)",
            ),
            (
                "assert_shallow_structure",
                "(shallow_tree, input_tree, check_types=True, expand_composites=False)",
            ),
        )
    ),
    Helper("util.nest_util.sequence_like", "(instance, args)", f"{_STRUCTURES}, and a list"),
    Helper(
        "framework.tensor_util.is_tf_type",
        "(x)",
        "objects without `__getattr__` and without an attribute `is_tensor_like`",
    ),
    Helper(
        "framework.tensor_util.constant_value",
        "(tensor, partial=False)",
        "eager tensors, and objects that are not tensors",
    ),
    Helper(
        "framework.tensor_conversion_registry.convert",
        "(value, dtype=None, name=None, as_ref=False, preferred_dtype=None,"
        " accepted_result_types=(<class 'tensorflow.python.types.core.Symbol'>,))",
        _CONVERTED,
    ),
    Helper(
        "framework.ops.convert_to_tensor",
        "(value, dtype=None, name=None, as_ref=False, preferred_dtype=None, dtype_hint=None,"
        " ctx=None, accepted_result_types=(<class 'tensorflow.python.framework.tensor.Tensor'>,))",
        _CONVERTED,
    ),
    Helper("framework.dtypes.as_dtype", "(type_value)", "dtypes, types and names"),
    Helper(
        "util.numpy_compat.np_asarray",
        "(values, dtype=None, order=None, copy=None)",
        "arrays, numbers, strings, eager tensors, lists and tuples",
    ),
    Helper("ops.numpy_ops.np_array_ops.ndim", "(a)", "eager tensors"),
    Helper("ops.numpy_ops.np_array_ops.shape", "(a)", "eager tensors"),
    Helper("ops.numpy_ops.np_array_ops.size", "(x, axis=None)", "eager tensors"),
    Helper(
        "ops.custom_gradient._eager_mode_decorator",
        "(f, args, kwargs)",
        "functions of `tf.custom_gradient`, given anything",
    ),
    Helper(
        "ops.script_ops._internal_py_func",
        "(func, inp, Tout, stateful=None, use_eager_py_func=False, is_grad_func=False, name=None)",
        "functions of `tf.py_function`, given eager tensors, variables, arrays and numbers, with"
        " dtypes of results",
    ),
    Helper(
        "ops.parallel_for.control_flow_ops.vectorized_map",
        "(fn, elems, fallback_to_while_loop=True, warn=True)",
        "functions of users that are shown to be pure, and eager tensors in lists, tuples, dicts",
    ),
    *(
        Helper(
            f"ops.functional_ops.{name}",
            "(fn, elems, initializer=None, parallel_iterations=10, back_prop=True,"
            f" swap_memory=False, {more}name=None)",
            _LOOPS,
        )
        for name, more in (
            ("foldl", ""),
            ("foldr", ""),
            ("scan", "infer_shape=True, reverse=False, "),
        )
    ),
    Helper(
        "ops.map_fn.map_fn",
        "(fn, elems, dtype=None, parallel_iterations=None, back_prop=True, swap_memory=False,"
        " infer_shape=True, name=None, fn_output_signature=None)",
        f"pure functions of users without branches that call TensorFlow alone, and {_LOOPS}",
    ),
    Helper(
        "util.tf_should_use._add_should_use_warning",
        "(x, error_in_function=False, warn_in_eager=False)",
        "results that nobody needs to use in eager mode",
    ),
    Helper("util.traceback_utils.is_traceback_filtering_enabled", "()", "anything"),
    Helper("eager.context.executing_eagerly", "()", "eager calls"),
    Helper("framework.ops.executing_eagerly_outside_functions", "()", "eager calls"),
    Helper("framework.ops.inside_function", "()", "calls in no other graph than `tf.Graph`"),
    Helper(
        "util.tf_inspect.getfullargspec",
        "(obj)",
        "functions without annotations, keyword-only parameters and wrappers",
    ),
    Helper(
        "util.tf_decorator.make_decorator",
        "(target, decorator_func, decorator_name=None, decorator_doc='', decorator_argspec=None)",
        _WRAPPED,
    ),
    Helper(
        "module.module._flatten_module",
        "(module, recursive, predicate, attribute_traversal_key, attributes_to_ignore, with_path,"
        " expand_composites, module_path=(), seen=None, recursion_stack=None)",
        "modules, with the attributes that they have",
    ),
)
"""Functions, with their modules below `tensorflow.python`."""

METHODS = (
    Helper(
        "distribute.distribute_lib.ReplicaContextBase.all_reduce",
        "(self, reduce_op, value, options=None)",
        f"{_STRUCTURES}, of eager tensors that no tape follows, by the default strategy",
    ),
    Helper(
        "distribute.distribute_lib.StrategyExtendedV2.update",
        "(self, var, fn, args=(), kwargs=None, group=True)",
        "plain functions, by the default strategy, outside scopes of variable creators",
    ),
    Helper("framework.dtypes.DType.__eq__", "(self, other)", "dtypes"),
    Helper("framework.dtypes.DType.__ne__", "(self, other)", "dtypes"),
    Helper("framework.dtypes.DType.base_dtype", "(self)", "dtypes (a property)"),
    Helper(
        "framework.tensor.Tensor.__getattr__",
        "(self, name)",
        "eager tensors, and names that are no attributes of arrays either",
    ),
    Helper("framework.tensor_shape.TensorShape.dims", "(self)", "shapes (a property)"),
    Helper(
        "framework.tensor_shape.TensorShape.__init__",
        "(self, dims)",
        "a shape, `None`, or a list, tuple or array of sizes",
    ),
    Helper("framework.tensor_shape.TensorShape.rank", "(self)", "shapes (a property)"),
    Helper("framework.tensor_shape.TensorShape.as_list", "(self)", "shapes of known rank"),
    Helper("framework.tensor_shape.TensorShape.is_fully_defined", "(self)", "shapes"),
    Helper("framework.tensor_shape.TensorShape.num_elements", "(self)", "shapes"),
    Helper(
        "framework.tensor_shape.TensorShape.concatenate",
        "(self, other)",
        "shapes, and a shape, or a list or tuple of sizes",
    ),
    Helper(
        "util.tf_decorator.TFDecorator.__init__",
        "(self, decorator_name, target, decorator_doc='', decorator_argspec=None)",
        _WRAPPED,
    ),
    Helper(
        "ops.tensor_array_ops.TensorArray.__init__",
        "(self, dtype, size=None, dynamic_size=None, clear_after_read=None, tensor_array_name=None,"
        " handle=None, flow=None, infer_shape=True, element_shape=None,"
        " colocate_with_first_write_call=True, name=None)",
        "sizes that are numbers or eager tensors",
    ),
    Helper("ops.tensor_array_ops.TensorArray.stack", "(self, name=None)", "full arrays"),
    Helper(
        "ops.tensor_array_ops.TensorArray.read",
        "(self, index, name=None)",
        _ELEMENTS,
    ),
    Helper("ops.tensor_array_ops.TensorArray.unstack", "(self, value, name=None)", "eager tensors"),
    Helper(
        "ops.tensor_array_ops.TensorArray.write",
        "(self, index, value, name=None)",
        f"{_ELEMENTS} of the dtype and the shape of the array",
    ),
    Helper(
        "ops.tensor_array_ops._EagerTensorArray._write",
        "(self, index, value)",
        f"{_ELEMENTS} of the dtype and the shape of the array",
    ),
    Helper("util.tf_should_use._TFShouldUseHelper.__del__", "(self)", "after a use"),
    Helper("framework.ops.name_scope_v2.__enter__", "(self)", "eager calls"),
    Helper("trackable.autotrackable.AutoTrackable.__setattr__", "(self, name, value)", "anything"),
    Helper(
        "framework.ops.name_scope_v2.__exit__",
        "(self, type_arg, value_arg, traceback_arg)",
        "scopes that were entered by the replaced `__enter__`",
    ),
)
"""Methods and properties, with their modules below `tensorflow.python`."""

WRAPPER = Helper("util.tf_should_use.ShouldUseWrapper.__getattribute__", "(self, key)", "anything")
"""The method of the objects that `tf.TensorArray.write` returns. TensorFlow makes their class."""

_BOUND = "what signatures without positional-only parameters have bound"

STANDARD = (
    Helper(
        "inspect.Signature.bind",
        "(self, /, *args, **kwargs)",
        "signatures without positional-only parameters, and what can be bound",
    ),
    Helper("inspect.BoundArguments.apply_defaults", "(self)", _BOUND),
    Helper("inspect.BoundArguments.args", "(self)", f"{_BOUND} (a property)"),
    Helper("inspect.BoundArguments.kwargs", "(self)", f"{_BOUND}, with defaults (a property)"),
)
"""Methods of Python's standard library, by which decorators bind arguments."""

_SAME = "plain values that the attribute has already, or while nothing is tracked"

TF_KERAS = (
    Helper("engine.base_layer.Layer.__setattr__", "(self, name, value)", _SAME),
    Helper("engine.training.Model.__setattr__", "(self, name, value)", _SAME),
)
"""Methods of tf_keras, with their modules below `tf_keras.src`."""
