"""Which code belongs to known libraries, and which functions in C are pure."""

_OF_KERAS = frozenset({"keras", "tf_keras"})

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


def is_own(name):
    """Tell whether a module, by its name, belongs to a known library and is not a test of one."""
    return (
        name.partition(".")[0] in _PACKAGES
        and not name.endswith("_test")
        and not name.startswith(("keras.src.testing", "tf_keras.src.testing"))
    )


def is_of_keras(name):
    """Tell whether a module, by its name, belongs to Keras or tf_keras."""
    return name.partition(".")[0] in _OF_KERAS


def is_keras(kind):
    """Tell whether a class belongs to Keras or tf_keras, and all its bases to known libraries."""
    return is_of_keras(kind.__module__) and all(
        base is object or is_own(base.__module__) for base in kind.__mro__
    )


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
