"""Finds the names that code looks up in modules and classes, and makes guards of them.

A stand-in mirrors a function, and some of the functions that it calls. The guard of the stand-in
holds while the names in the code of all these functions lead to TensorFlow's own functions, classes
and modules.
"""

import enum
import sys
import types
from contextlib import suppress
from functools import cache, partial

from tensorflow.python import pywrap_tfe
from tensorflow.python.framework.dtypes import DType
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.framework.tensor_shape import TensorShape
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from fastops._core import bytecode
from fastops._install import restated
from fastops._install.moved import running_name
from fastops._install.reads import MISSING, Binding, name_in, reads_of
from fastops._install.replacement import Replacement, guard_of, put_guard
from fastops._specialize.guards.names import Guard, upstream
from fastops._specialize.policy import MAX_CALL_DEPTH, MAX_SHARED_GUARDS

PACKAGES = frozenset({"keras", "tensorflow", "tf_keras"})
"""Guards compare names in modules of these packages."""

PASSED_OVER = {
    **dict.fromkeys(
        (
            *("tensorflow.python.eager.execute", "tensorflow.python.framework.op_def_library"),
            *(
                "tensorflow.python.framework.func_graph",
                "tensorflow.python.framework.sparse_tensor",
            ),
            *("tensorflow.python.framework.indexed_slices", "tensorflow.python.ops.gen_sparse_ops"),
            "tensorflow.python.ops.linalg.sparse.gen_sparse_csr_matrix_ops",
            "tensorflow.python.ops.linalg.sparse.sparse_csr_matrix_ops",
            *("tensorflow.python.ops.ragged.ragged_tensor", "tensorflow.python.ops.sparse_ops"),
            *("tensorflow._api.v2.sparse", "keras.src.backend.tensorflow.sparse"),
        ),
        "of graphs, and of sparse and ragged tensors, which no stand-in takes",
    ),
    **dict.fromkeys(
        (
            *("tensorflow.python.framework.flexible_dtypes", "tensorflow.python.types.core"),
            *("tensorflow.python.framework.weak_tensor", "tensorflow.python.ops.weak_tensor_ops"),
        ),
        "of promoted dtypes: while these are on, no stand-in takes a call",
    ),
    **dict.fromkeys(
        (
            *("tensorflow.python.platform.tf_logging", "tensorflow.python.util.deprecation"),
            *("tensorflow.python.profiler.trace", "tensorflow.python.util.decorator_utils"),
            *("tensorflow.python.util.dispatch", "tensorflow.python.util.traceback_utils"),
        ),
        "of logs, profiles, dispatch by type and tracebacks, which decide no result",
    ),
}
"""Modules whose names are not compared, and why."""

BELOW = frozenset(
    {
        *("tensorflow.python.framework.constant_op", "tensorflow.python.framework.dtypes"),
        *("tensorflow.python.framework.tensor", "tensorflow.python.framework.tensor_shape"),
        "tensorflow.python.framework.tensor_conversion_registry",
        "tensorflow.python.ops.numpy_ops.np_dtypes",
        *("tensorflow.python.util._pywrap_utils", "tensorflow.python.util.compat"),
        *("tensorflow.python.util.nest", "tensorflow.python.util.nest_util"),
    }
)
"""Modules that almost all code reads. Before Python 3.12, where each dict has a version of its own,
only guards of functions in these modules check their versions in each call. Other guards compare
their names only after something else has changed."""

_VALUES = tuple(
    kind
    for kind in (EagerTensor, ResourceVariable, TensorShape, DType)
    if issubclass(type(kind), type)
)
"""Classes of the values on which mirrored code calls methods."""

_CONCRETE = {
    base: kind for kind in _VALUES for base in kind.__mro__ if base.__module__ in sys.modules
}
_CONCRETE.pop(object, None)
"""By base class, the class in `_VALUES` that inherits from it."""

_COMPARED = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.ModuleType,
    property,
    staticmethod,
    classmethod,
    DType,
    enum.Enum,
    Replacement,
)
"""Classes of values that guards compare. Other values are settings, which may change."""

_CALLED = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, property)

# ---------------------------------------------------------------------------------------------
# The objects that the names lead to
# ---------------------------------------------------------------------------------------------


_TOGETHER = {
    "tensorflow.python.util.nest": (
        *("tensorflow.python.util.nest", "tensorflow.python.util.nest_util"),
        "tensorflow.python.util._pywrap_utils",
    ),
}


def functions_in(value):
    """Return the functions of the packages in a callable: itself, wrapped ones, and closures."""
    own, pending = [], [value]
    while pending:
        function = upstream(pending.pop())
        if type(function) is not types.FunctionType or function in own or not _is_own(function):
            continue
        own.append(function)
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # the cell is empty
                pending.append(cell.cell_contents)
        pending.append(vars(function).get("__wrapped__"))
    return own


def _is_own(function):
    package = str(function.__globals__.get("__name__")).partition(".")[0]
    return package in PACKAGES or package == "inspect"


class _Names:
    """Collects the names that some code looks up, and the objects that they lead to.

    Attributes
    ----------
    settled : bool
        Whether all these objects are TensorFlow's and Keras's own.
    """

    def __init__(self):
        self.settled = True
        self._below = []  # functions that mirrored code calls, with their depth of calls
        self._each = set()
        self._found = {}  # by identity of a dict or class: the holder, and its values by name
        self._passed = {}  # by the identities of code and of its globals: the code, kept alive

    def add_piece(self, piece):
        """Add the code that a piece mirrors."""
        raise NotImplementedError

    def add(self, code, namespace, depth=0):
        """Add code with its global variables. `depth`: the calls between mirrored code and it."""
        key = id(code), id(namespace)  # to hash a code object means to hash all its constants
        if key in self._passed:
            return
        self._passed[key] = code
        mirrored = depth == 0 and namespace.get("__name__") not in PASSED_OVER
        is_known = is_of_known_module(namespace)
        reads = reads_of(code, namespace, mirrored, _KINDS, _classify, is_known)
        self.settled = self.settled and not reads.foreign
        self._merge(reads.names)
        self._each.update(reads.called)
        self._below += [(function, max(depth, not mirrored) + 1) for function in reads.below]
        for piece in reads.pieces:
            self.add_piece(piece)
        for inner, globals_there in reads.generated:
            self.add(inner, globals_there)

    def _add_below(self):
        """Add the code of the queued functions."""
        while self._below:
            pending, self._below = self._below, []
            for value, depth in pending:
                if depth <= MAX_CALL_DEPTH:
                    for function in functions_in(value):
                        self.add(function.__code__, function.__globals__, depth)

    def _merge(self, names):
        for holder, values in names:
            found = self._found.get(id(holder))
            if found is None:
                self._found[id(holder)] = (holder, dict(values))
            else:
                found[1].update(values)

    def _note(self, holder, name):
        """Add a name that mirrored code reads."""
        found = name_in(holder, name, _classify)
        self.settled = self.settled and not found.foreign
        if found.compared:
            self._merge([(holder, {name: found.value})])
            if found.called:
                self._each.add(id(holder))


class _PieceNames(_Names):
    """The names in the code that a piece mirrors, without those in other pieces that it names.

    Parameters
    ----------
    parts : iterable of str
        The functions whose code the piece mirrors.

    Attributes
    ----------
    pieces : list of str
        The other pieces.
    """

    def __init__(self, parts):
        super().__init__()
        self.pieces = []
        self._codes = []
        self._definitions = []  # in the form that `Guard` expects
        for part in parts:
            self._add_part(*part.split(":"))
        self._add_below()
        self._guard = Guard(self._compared)

    def add_piece(self, piece):
        """Note another piece."""
        self.pieces.append(piece)

    def is_current(self):
        """Tell whether the names still lead to the same objects, and these to the same code."""
        return (
            self.settled
            and all(function.__code__ is code for function, code in self._codes)
            and bool(self._guard)
        )

    def merge_into(self, names):
        """Add these names to others."""
        names.settled = names.settled and self.settled
        names._merge(self._found.values())
        names._each |= self._each

    def _add_part(self, module, definition):
        module = running_name(module)
        if module not in sys.modules:
            return
        value, holder = sys.modules[module], None
        for name in definition.split("."):
            holder = value
            value = _attribute(holder, name)
            if value is not MISSING:
                names = holder if isinstance(holder, type) else vars(holder)
                self._definitions.append((names, {name: upstream(value)}, True))
        if isinstance(holder, type):
            self._note(_CONCRETE.get(holder, holder), definition.rpartition(".")[2])
        if value is not MISSING and restated.name_of(upstream(value)) is None:
            self.settled = False
        for function in functions_in(value):
            self._codes.append((function, function.__code__))
            self.add(function.__code__, function.__globals__)

    def _compared(self):
        found = [(holder, names, True) for holder, names in self._found.values()]
        return self._definitions + found, True


_of_parts: dict = {}  # by functions whose code a piece mirrors: their `_PieceNames`


def _names_of(parts):
    """Return the `_PieceNames` of a piece. Many guards cover the same pieces."""
    known = _of_parts.get(parts)
    if known is None or not known.is_current():
        known = _of_parts[parts] = _PieceNames(parts)
    return known


class Lookups(_Names):
    """Collects the names that some code looks up, with those of all pieces that it names.

    Parameters
    ----------
    cold : bool
        Whether the guard may be slow, because the guarded call takes long.
    """

    def __init__(self, cold=False):
        super().__init__()
        self._cold = cold
        self._own = set()  # the modules of the first piece
        self._pieces = set()

    def add_piece(self, piece):
        """Add the code that a piece mirrors."""
        if piece in self._pieces:
            return
        parts = tuple(restated.table()["rests_on"][piece])
        if not self._pieces:
            self._own.update(_TOGETHER.get(piece.partition(":")[0], (piece.partition(":")[0],)))
            more = BEHIND.get(READS if piece.startswith(_OF_VARIABLES) else piece, ())
            parts += more
            self._own.update(part.partition(":")[0] for part in more)
        self._pieces.add(piece)
        names = _names_of(parts)
        names.merge_into(self)
        for inner in names.pieces:
            self.add_piece(inner)

    def add_class(self, kind, methods):
        """Add the methods of a class, and the code of the named ones."""
        for base in kind.__mro__:
            for name, value in vars(base).items():
                if base is not object and isinstance(value, (types.FunctionType, property)):
                    self._note(kind, name)
        for name in methods:
            for function in functions_in(_attribute(kind, name)):
                self.add(function.__code__, function.__globals__)

    def add_function(self, function):
        """Add a function that an object holds: code calls it without naming it."""
        piece = restated.name_of(function)
        if piece in restated.table()["rests_on"]:
            self.add_piece(piece)
        elif piece is not None and ".gen_" in piece:
            for inner in functions_in(function):
                self.add(inner.__code__, inner.__globals__)

    def finish(self):
        """Add the code of the queued functions, and return the arguments of `Guard`."""
        self._add_below()
        return self.entries(), self.settled

    def entries(self):
        """Return the entries that the guard compares."""
        if not bytecode.REVIEWED:
            return [({}, {"": None}, True)]  # it is not known what code reads: never holds
        return [
            (holder, names, NUMBERED_AT_ONCE or self._asks_each_time(holder))
            for holder, names in self._found.values()
        ]

    def _asks_each_time(self, holder):
        if id(holder) not in self._each:
            return False
        if isinstance(holder, type):
            return self._cold or holder is EagerTensor or holder not in _VALUES
        name = holder.get("__name__")
        return self._cold or name not in BELOW or name in self._own


NUMBERED_AT_ONCE = sys.version_info >= (3, 12)
"""Whether Python has one version number for the changes of all dicts."""

_CONVERSIONS = (
    "tensorflow.python.framework.constant_op:_constant_eager_impl",
    "tensorflow.python.framework.constant_op:_constant_impl",
    "tensorflow.python.framework.constant_op:_constant_tensor_conversion_function",
    "tensorflow.python.framework.constant_op:constant",
    "tensorflow.python.ops.array_ops:_autopacking_conversion_function",
    "tensorflow.python.ops.array_ops:_autopacking_helper",
)

BEHIND = {
    "tensorflow.python.ops.resource_variable_ops:BaseResourceVariable.value": (
        "tensorflow.python.eager.tape:variable_accessed",
        "tensorflow.python.ops.resource_variable_ops:BaseResourceVariable._read_variable_op",
        "tensorflow.python.ops.resource_variable_ops:variable_accessed",
    ),
} | dict.fromkeys(
    (
        "tensorflow.python.framework.constant_op:constant",
        "tensorflow.python.framework.ops:convert_to_tensor",
        "tensorflow.python.framework.tensor_conversion:convert_to_tensor_v2",
        "tensorflow.python.framework.tensor_conversion:convert_to_tensor_v2_with_dispatch",
        "tensorflow.python.framework.tensor_conversion_registry:convert",
    ),
    _CONVERSIONS,
)
"""By piece, functions that its code calls without naming them, such as registered converters."""


@cache
def _methods_of(kind):
    """Return the names of the methods and properties of a class that are written in Python."""
    return frozenset(
        name
        for base in kind.__mro__
        for name, value in vars(base).items()
        if type(upstream(value)) is types.FunctionType
    )


_KINDS = tuple((kind, _methods_of(kind)) for kind in _VALUES)


def _classify(holder, name, present):
    """Return the `Binding` for a value that a module's dict or a class has now."""
    value, of_package = upstream(present), _is_compared(holder)
    piece = restated.name_of(value) if type(value) is types.FunctionType else None
    compared = isinstance(value, _COMPARED)
    return Binding(
        value,
        compared=compared and of_package,
        called=isinstance(value, _CALLED),
        # Settings are not compared, since they may change. But a mock is a patch.
        foreign=(of_package or not compared) and _is_foreign(holder, name, value),
        piece=piece if piece in restated.table()["rests_on"] else None,
        known=piece is not None,
        generated=piece is not None and ".gen_" in piece,
        kept=of_package,
    )


def _attribute(holder, name):
    """Return the value of a name in a module's dict, a module or a class."""
    if isinstance(holder, type):
        for base in holder.__mro__:
            if name in vars(base):
                return vars(base)[name]
        return MISSING
    if type(holder) is not dict:
        try:
            holder = vars(holder)
        except TypeError:
            return MISSING
    return holder.get(name, MISSING)


def _is_compared(holder):
    name = holder.__module__ if isinstance(holder, type) else str(holder.get("__name__"))
    return name.partition(".")[0] in PACKAGES and name not in PASSED_OVER


def _is_foreign(holder, name, value):
    """Tell whether a value was put there by code other than TensorFlow and Keras."""
    if value is MISSING:
        return False
    if type(value) is types.MethodType:
        value = value.__func__
    if type(value) is types.FunctionType:
        own = restated.name_of(value)
        if own is None:
            return not _is_of_library(value)
        module, _, definition = own.partition(":")
        if isinstance(holder, type):
            return False
        known = restated.table()["digests"].get(str(holder.get("__name__")), {})
        if name in known and module == holder.get("__name__") and definition != name:
            return True
        public = vars(value).get("_tf_api_names")
        return (
            public is not None
            and str(holder.get("__name__")).startswith(("tensorflow._api.", "tensorflow.compat"))
            and name not in {title.rpartition(".")[2] for title in public}
        )
    return type(value).__module__.startswith("unittest.mock")


def _is_of_library(function):
    """Tell whether a function belongs to a library that TensorFlow and Keras are built on."""
    module = sys.modules.get(str(function.__globals__.get("__name__")))
    return getattr(module, "__spec__", None) is not None and (
        module.__name__.partition(".")[0] in _LIBRARIES
    )


_LIBRARIES = frozenset(sys.stdlib_module_names) - {"unittest"} | {
    *("absl", "google", "ml_dtypes", "namex", "numpy", "optree", "tree", "wrapt"),
}
_KNOWN = PACKAGES | _LIBRARIES

# ---------------------------------------------------------------------------------------------
# Guards
# ---------------------------------------------------------------------------------------------


_RUN = "TFE_Py_FastPathExecute"


def _of_piece(piece):
    lookups = Lookups(cold=piece in _COLD)
    lookups.add_piece(piece)
    if piece.startswith(_RUNNING_OPS):
        lookups._note(vars(pywrap_tfe), _RUN)
    return lookups.finish()


_RUNNING_OPS = (
    "keras.src.backend.tensorflow.",
    "tensorflow.python.ops.",
    "tensorflow.python.eager.",
)

_COLD = frozenset(
    {
        "keras.src.trainers.data_adapters.array_data_adapter:ArrayDataAdapter.get_tf_dataset",
        "tensorflow.python.eager.backprop:GradientTape.gradient",
        "tensorflow.python.eager.backprop:GradientTape.watch",
        "tensorflow.python.ops.variables:VariableMetaclass.__call__",
    }
)
"""Pieces whose calls take so long that a slower guard does not matter."""


def _of_generated(namespace):
    """Return the arguments of `Guard` for the generated functions of a module."""
    lookups = Lookups()
    lookups._note(namespace, "pywrap_tfe")
    lookups._each.add(id(namespace))
    lookups._note(vars(pywrap_tfe), _RUN)
    return lookups.finish()


def _of_codes(codes, functions):
    lookups = Lookups(cold=True)
    # Stand-ins read variables, so TensorFlow's code for reads is not among the code that ran.
    lookups.add_piece(READS)
    for kind, methods in _of_variables.items():
        lookups.add_class(kind, methods)
    for code, namespace in codes:
        lookups.add(code, namespace)
    for function in functions:
        lookups.add_function(function)
    return lookups.finish()


def _of_function(function):
    lookups = Lookups()
    piece = restated.name_of(function)
    lookups._own.add(str(piece).partition(":")[0])
    if piece in restated.table()["rests_on"]:
        lookups.add_piece(piece)
    for inner in functions_in(function):
        lookups.add(inner.__code__, inner.__globals__)
    guarded, settled = lookups.finish()
    return guarded, settled and piece is not None


def _of_class(kind, methods):
    lookups = Lookups()
    lookups.add_piece(READS)
    lookups.add_class(kind, methods)
    return lookups.finish()


_OF_VARIABLES = "tensorflow.python.ops.resource_variable_ops:BaseResourceVariable."

READS = f"{_OF_VARIABLES}value"
"""The piece for reads of variables. Its guard holds while TensorFlow's way to read is unchanged."""


@cache
def of_piece(piece):
    """Return the guard of the stand-in for a piece."""
    return Guard(partial(_of_piece, piece))


_of_modules: dict = {}


def of_generated(namespace):
    """Return the guard of the generated functions of a module, given its dict."""
    guard = _of_modules.get(id(namespace))
    if guard is None:
        guard = _of_modules[id(namespace)] = Guard(partial(_of_generated, namespace))
    return guard


def of_function(function):
    """Return the guard of a function, and of functions of the same module that it calls."""
    return Guard(partial(_of_function, function))


_of_variables: dict = {}


def of_class(kind, *methods):
    """Return a guard of the methods of a class of variables, and of the code of the named ones.

    From then on, guards of recordings also cover that class.
    """
    _of_variables[kind] = methods
    return Guard(partial(_of_class, kind, methods))


_of_codes_of_libraries: dict = {}
"""By the identities of code, of its global variables and of functions: the guard, and the code and
the functions (kept alive)."""


def of_codes(codes, functions=()):
    """Return a guard of code that has run. Recordings of the same library code share one guard.

    Parameters
    ----------
    codes : iterable of tuple
        Pairs of code and its global variables.
    functions : iterable of callable
        Functions of libraries that objects hold, so that the code may call them without naming
        them. A stand-in may have run in the place of such a function.
    """
    codes, functions = list(codes), list(functions)
    if not all(is_of_known_module(namespace) for _, namespace in codes):
        return Guard(partial(_of_codes, codes, functions))
    key = (
        len(_of_variables),
        frozenset((id(code), id(namespace)) for code, namespace in codes),
        frozenset(map(id, functions)),
    )
    entry = _of_codes_of_libraries.get(key)
    if entry is None:
        if len(_of_codes_of_libraries) >= MAX_SHARED_GUARDS:
            _of_codes_of_libraries.clear()
        guard = Guard(partial(_of_codes, codes, functions))
        entry = _of_codes_of_libraries[key] = guard, codes, functions
    return entry[0]


def is_of_known_module(namespace):
    """Tell whether global variables are those of an imported module of a library."""
    name = str(namespace.get("__name__"))
    module = sys.modules.get(name)
    return name.partition(".")[0] in _KNOWN and getattr(module, "__dict__", None) is namespace


def guard(target, original, replacement):
    """Give a replacement the guard that it needs, if any.

    Parameters
    ----------
    target : fastops._install.target.Target
        The patch point.
    original, replacement : object
        The value there before and after the patch.
    """
    stand_in = _stand_in(replacement)
    if stand_in is None or guard_of(stand_in) is not None:
        return
    piece = restated.table()["pieces"].get(target.layer, {}).get(target.name)
    if target.layer == "functions":
        put_guard(stand_in, of_generated(upstream(original).__globals__))
    elif piece is not None and target.layer != "models":
        put_guard(stand_in, of_piece(piece))


def _stand_in(value):
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, staticmethod):
        value = value.__func__
    return value if isinstance(value, Replacement) else None


def is_upstream(function):
    """Tell whether a value is a Python function of TensorFlow or Keras."""
    return type(function) is types.FunctionType and restated.name_of(function) is not None
