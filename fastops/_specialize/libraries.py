"""Which code belongs to known libraries, and which functions in C are pure."""

import os
import sys
from functools import cache, lru_cache

from fastops._specialize.policy import MAX_MODULES

_OF_KERAS = frozenset({"keras", "tf_keras"})

_COMMON_NAMES = frozenset(
    {"absl", "optree", "tree", "wrapt", "annotationlib", "keyword", "numbers", "string"}
)
"""Those of the packages below whose names a program may use for a module of its own."""

_FOLDERS = frozenset({"site-packages", "dist-packages"})
"""The names of the folders that packages are installed in."""

_PACKAGES = frozenset(
    {
        *(
            "absl",
            "fastops",
            "keras",
            "ml_dtypes",
            "numpy",
            "optree",
            "tensorflow",
            "tf_keras",
            "tree",
            "wrapt",
        ),
        *(
            "abc",
            "annotationlib",
            "collections",
            "contextlib",
            "copy",
            "copyreg",
            "dataclasses",
            "enum",
            "importlib",
        ),
        *("functools", "genericpath", "inspect", "itertools", "keyword", "math", "numbers"),
        *("operator", "posixpath", "re", "reprlib", "string", "textwrap", "threading", "types"),
        *("typing", "typing_extensions", "weakref", "_collections_abc", "_weakrefset"),
    }
)
"""Packages whose functions depend only on their arguments, on globals, and on what these hold."""

_OF_C = frozenset(
    {
        *("_abc", "_codecs", "_collections", "_contextvars", "_functools", "_imp", "_operator"),
        *("_sre", "_struct", "_thread", "_weakref", "google", "sys"),
    }
)
"""Modules written in C whose functions depend only on their arguments."""

_IMPURE = frozenset(
    {
        *("__import__", "breakpoint", "compile", "eval", "exec", "input", "open", "print"),
        *("from_dlpack", "frombuffer", "fromfile", "tofile"),  # functions of NumPy
    }
)
"""Functions of these modules and packages that read or change state outside the process."""


@lru_cache(maxsize=MAX_MODULES)
def is_own(name):
    """Tell whether a module, by its name, belongs to a known library and is not a test of one."""
    package = name.partition(".")[0]
    return (
        package in _PACKAGES
        and not name.endswith("_test")
        and not name.startswith(("keras.src.testing", "tf_keras.src.testing"))
        and not (package in _COMMON_NAMES and _is_of_program(package))
    )


def _is_of_program(package):
    """Tell whether a module of the program itself has the name of a package."""
    path = getattr(sys.modules.get(package), "__file__", None)
    if path is None:  # it is not imported, is built into Python, or is a folder without code
        return False
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.basename(path).startswith("__init__."):
        folder = os.path.dirname(folder)
    return os.path.basename(folder) not in _FOLDERS and folder not in _folders()


@cache
def _folders():
    """Return the folders of Python's library and of TensorFlow."""
    tensorflow = sys.modules.get("tensorflow")
    found = [os.path.dirname(os.path.abspath(os.__file__))]
    if tensorflow is not None:
        found.append(os.path.dirname(os.path.dirname(os.path.abspath(tensorflow.__file__))))
    return frozenset(found)


def is_of_keras(name):
    """Tell whether a module, by its name, belongs to Keras or tf_keras."""
    return name.partition(".")[0] in _OF_KERAS


def is_keras(kind):
    """Tell whether a class belongs to Keras or tf_keras, and all its bases to known libraries."""
    return is_of_keras(module_of(kind)) and all(
        base is object or is_own(module_of(base)) for base in bases_of(kind)
    )


bases_of = type.__dict__["__mro__"].__get__
"""Returns the bases of a class, and itself, without running code of its metaclass."""

attributes_of = type.__dict__["__dict__"].__get__
"""Returns the attributes of a class itself, without running code of its metaclass."""


def module_of(kind):
    """Return the name of the module of a class; an empty text if it has none."""
    name = attributes_of(kind).get("__module__")
    return name if type(name) is str else ""


def is_pure(function):
    """Tell whether a function written in C is known to be pure."""
    module = getattr(function, "__module__", None)
    if module is None:  # a method
        bound = getattr(function, "__self__", None)
        module = (bound if isinstance(bound, type) else type(bound)).__module__
    if function.__name__ in _IMPURE:
        return False
    if module == "builtins":
        return True
    package = module.partition(".")[0]
    return (package in _PACKAGES or package in _OF_C) and not module.startswith("numpy.random")


_COMPUTING = {
    "tensorflow.python.framework": "constant_op tensor_conversion tensor_util",
    "tensorflow.python.ops": """
        array_ops array_ops_stack bincount_ops bitwise_ops check_ops clip_ops cond confusion_matrix
        control_flow_assert control_flow_case control_flow_switch_case embedding_ops functional_ops
        gen_array_ops gen_bitwise_ops gen_image_ops gen_linalg_ops gen_manip_ops gen_math_ops
        gen_nn_ops gen_special_math_ops gen_spectral_ops gen_string_ops histogram_ops
        image_ops_impl linalg_ops manip_ops map_fn math_ops nn_impl nn_ops numerics sets_impl
        sort_ops special_math_ops string_ops while_loop
    """,
    "tensorflow.python.ops.linalg": "linalg_impl",
    "tensorflow.python.ops.numpy_ops": "np_array_ops np_math_ops",
    "tensorflow.python.ops.signal": """
        dct_ops fft_ops mel_ops mfcc_ops reconstruction_ops shape_ops spectral_ops window_ops
    """,
    "tensorflow.python.util": "nest",
    "keras.src.activations": "activations",
    "keras.src.legacy": "backend",
    "keras.src.layers.merging": """
        add average concatenate dot maximum minimum multiply subtract
    """,
    "keras.src.losses": "losses",
    "keras.src.metrics": """
        accuracy_metrics hinge_metrics probabilistic_metrics reduction_metrics regression_metrics
    """,
    "keras.src.ops": "core image linalg math nn numpy",
    "tf_keras.src": "activations losses",
    "tf_keras.src.layers.merging": """
        add average concatenate dot maximum minimum multiply subtract
    """,
}
"""By package, the modules whose functions only compute: they keep nothing from call to call, and
change nothing but their results. What the ops do is noted when a call is recorded."""

_MODULES = frozenset(
    f"{package}.{name}" for package, names in _COMPUTING.items() for name in names.split()
)

_DRAWING = "keras.src.random.random"
_OF_SETTINGS = "epsilon floatx image_data_format"

_COMPUTING_FUNCTIONS = {
    "keras.src.backend.config": _OF_SETTINGS,
    _DRAWING: """
        beta binomial categorical dropout gamma normal randint shuffle truncated_normal uniform
    """,
    "tensorflow.python.ops.nn_ops": "dropout_v2 stateless_dropout",
    "tensorflow.python.ops.random_ops": """
        categorical random_gamma random_normal random_poisson_v2 random_shuffle random_uniform
        truncated_normal
    """,
    "tensorflow.python.ops.stateless_random_ops": """
        stateless_categorical stateless_random_normal stateless_random_uniform
        stateless_truncated_normal
    """,
    "tf_keras.src.backend": """
        abs all any arange argmax argmin batch_dot batch_flatten binary_crossentropy bias_add cast
        categorical_crossentropy clip concatenate constant conv1d conv2d cos cumprod cumsum dot
        dtype elu equal exp expand_dims eye flatten gather greater greater_equal hard_sigmoid
        int_shape l2_normalize less less_equal log max maximum mean min minimum ndim not_equal
        one_hot ones ones_like permute_dimensions pool2d pow prod relu repeat repeat_elements
        reshape resize_images reverse round shape sigmoid sign sin softmax softplus softsign
        sparse_categorical_crossentropy sqrt square squeeze stack std stop_gradient sum switch tanh
        temporal_padding tile transpose var zeros zeros_like
    """,
    "tf_keras.src.backend_config": _OF_SETTINGS,
}
"""By module, functions that only compute, in modules that also have others. What Keras draws with a
generator of seeds changes the state of that generator, which is a variable. The seeds that
TensorFlow makes for random ops are noted when a call is recorded."""

_FUNCTIONS = frozenset(
    (module, name) for module, names in _COMPUTING_FUNCTIONS.items() for name in names.split()
)

_NOT_COMPUTING = (
    *("random", "dropout", "fractional", "sample", "shuffle", "nce_loss", "empty", "placeholder"),
    *("custom_gradient", "convert_to_numpy", "get_value", "set_value", "update", "variable"),
    *("eval", "gradients", "name_scope", "truncated_normal", "rnn", "Operation"),
)
"""Parts of the names of functions in these modules that do not only compute."""


def computes(function):
    """Tell whether a function of TensorFlow or Keras only computes its results.

    Parameters
    ----------
    function : callable
        A function that its module has under its name.
    """
    module, name = function.__module__, function.__name__
    return (module, name) in _FUNCTIONS or (
        module in _MODULES and not any(part in name for part in _NOT_COMPUTING)
    )


def draws(function):
    """Tell whether a function that `computes` draws with a generator of seeds."""
    return function.__module__ == _DRAWING


BOOKKEEPING = frozenset(
    {
        *("_self_extra_variables", "_self_last_wrapped_dict_snapshot", "_self_non_string_key"),
        *("_self_external_modification", "_self_name_based_restores", "_self_setattr_tracking"),
        *("_self_saveable_object_factories", "_self_tracked_trackables", "_self_update_uid"),
        *("_self_unconditional_checkpoint_dependencies", "_self_unconditional_dependency_names"),
        "_self_unconditional_deferred_dependencies",
    }
)
"""Attributes of TensorFlow's trackable objects that only checkpoints read."""

OF_MODULES = frozenset({"_self_tracked_trackables"})
"""Those of these attributes that calls of modules read: the layers in a layer of tf_keras."""

OF_SCOPES = {"tf_keras.src.backend": frozenset({"_GRAPH_LEARNING_PHASES"})}
"""By module, the globals that guards leave out, since the state of a thread has what calls read."""
