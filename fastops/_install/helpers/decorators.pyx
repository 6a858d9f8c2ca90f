# distutils: language = c++
"""Answers for functions that make decorators, and that look up the signature each time.

Signatures are cached by the code of the function. An entry holds while the defaults and annotations
of the function are unchanged. The first comment line of each answer lists the parameters of the
function.
"""

from cpython.object cimport PyObject

from fastops._core.declined cimport DECLINED
from fastops._cpp.python cimport Py_None
from fastops._install.answer cimport MAX_PARAMS, Answer, register
from fastops._specialize.cache cimport Cache
from fastops._specialize.policy cimport MAX_DECORATED

import inspect
import sys
from types import FunctionType, MethodType

from tensorflow.python.framework.dtypes import DType
from tensorflow.python.util import tf_decorator as _tf_decorator
from tensorflow.python.util import tf_inspect


cdef int CO_VARARGS = inspect.CO_VARARGS
cdef int CO_VARKEYWORDS = inspect.CO_VARKEYWORDS
cdef object _FunctionType = FunctionType
cdef object _MethodType = MethodType
cdef object _TFDecorator = _tf_decorator.TFDecorator
cdef object _signature = inspect.signature
cdef object _frame = sys._getframe
cdef object _getfullargspec = tf_inspect._getfullargspec
cdef object _FullArgSpec = inspect.FullArgSpec
cdef frozenset _PLAIN = frozenset((type(None), bool, int, float, str, bytes, type, DType))

# By the identity of the code, and whether it is bound: the result of `_made_of`, and the signature.
cdef Cache _signatures = Cache(MAX_DECORATED)


cdef bint _is_own(object function):
    """Whether no attribute of a function overrides its signature."""
    own = function.__dict__
    return not own or not (
        "__wrapped__" in own or "__signature__" in own or "_tf_decorator" in own
        or "_partialmethod" in own or "__partialmethod__" in own
    )


cdef tuple _made_of(object function):
    """Return the objects that determine the signature of a function.

    None if the signature should not be cached: the cache would keep other objects alive.
    """
    if not _is_own(function):
        return None
    defaults, named = function.__defaults__, function.__kwdefaults__
    if defaults:
        for value in defaults:
            if type(value) not in _PLAIN:
                return None
    if named:
        for value in named.values():
            if type(value) not in _PLAIN:
                return None
    return (
        function.__code__,
        defaults,
        tuple(named.items()) if named else None,
        tuple(function.__annotations__.items()),
    )


cdef bint _same(tuple left, tuple right):
    """Whether two results of `_made_of` consist of the same objects."""
    cdef Py_ssize_t i
    if left[0] is not right[0]:
        return False
    if left[1] is not right[1] and (
        left[1] is None or right[1] is None or len(left[1]) != len(right[1])
        or not all([value is same for value, same in zip(left[1], right[1])])
    ):
        return False
    for i in range(2, 4):
        if left[i] is None or right[i] is None:
            if left[i] is not right[i]:
                return False
            continue
        if len(left[i]) != len(right[i]):
            return False
        for (name, value), (other_name, other_value) in zip(left[i], right[i]):
            if name != other_name or value is not other_value:
                return False
    return True


cdef object _signature_of(object target):
    """Return the signature of a function or method, like `inspect.signature`; or None."""
    cdef bint bound = type(target) is _MethodType
    cdef tuple made_of, known
    cdef PyObject* stored
    function = target.__func__ if bound else target
    if type(function) is not _FunctionType:
        return None
    made_of = _made_of(function)
    if made_of is None:
        return None
    key = id(made_of[0]), bound
    stored = _signatures.find(key)
    if stored != NULL:
        known = <tuple>stored
        if _same(known[0], made_of):
            return known[1]
    signature = _signature(target)
    _signatures.replace(key, (made_of, signature))
    return signature


cdef int _decorate(object decorator, object name, object target, object doc) except -1:
    """Do the work of `TFDecorator.__init__`, for a function or method with a known signature."""
    decorator._decorated_target = target
    decorator._decorator_name = name
    decorator._decorator_doc = doc
    decorator._decorator_argspec = None
    decorator.__name__ = target.__name__
    decorator.__qualname__ = target.__qualname__
    decorator.__doc__ = doc or target.__doc__ or ""
    decorator.__signature__ = _signature_of(target)
    return 0


cdef object _init(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, decorator_name, target, decorator_doc="", decorator_argspec=None
    cdef PyObject* values[MAX_PARAMS]
    if not self.bind(args, n, keywords, values) or values[4] != Py_None:
        return DECLINED
    target = <object>values[2]
    if type(target) is not _FunctionType and type(target) is not _MethodType:
        return DECLINED
    try:
        if _signature_of(target) is None:
            return DECLINED
    except Exception:
        return DECLINED
    _decorate(<object>values[0], <object>values[1], target, <object>values[3])
    return None


cdef object _make_decorator(Answer self, PyObject* const* args, Py_ssize_t n,
                            PyObject* keywords):
    # target, decorator_func, decorator_name=None, decorator_doc="", decorator_argspec=None
    cdef PyObject* values[MAX_PARAMS]
    if not self.bind(args, n, keywords, values) or values[4] != Py_None:
        return DECLINED
    target, function, name = <object>values[0], <object>values[1], <object>values[2]
    if type(target) is not _FunctionType and type(target) is not _MethodType:
        return DECLINED
    try:
        signature = _signature_of(target)
    except Exception:
        return DECLINED
    if signature is None:
        return DECLINED
    if name is None:
        name = _frame(0).f_code.co_name  # the caller's frame: compiled code has none
    decorator = _TFDecorator(name, target, <object>values[3], None)
    function._tf_decorator = decorator
    function.__name__ = target.__name__
    function.__qualname__ = target.__qualname__
    function.__module__ = target.__module__
    for key, value in target.__dict__.items():
        if key not in function.__dict__:
            function.__dict__[key] = value
    function.__doc__ = decorator.__doc__
    function.__wrapped__ = target
    function.__original_wrapped__ = target
    function.__signature__ = signature
    return function


cdef object _full_argument_specification(Answer self, PyObject* const* args, Py_ssize_t n,
                                         PyObject* keywords):
    # obj
    if n != 1 or keywords != NULL or tf_inspect._getfullargspec is not _getfullargspec:
        return DECLINED
    function = <object>args[0]
    if type(function) is not _FunctionType or not _is_own(function):
        return DECLINED
    code = function.__code__
    # A read of annotations may run their code, since CPython 3.14.
    if getattr(function, "__annotate__", None) is not None:
        return DECLINED
    if function.__annotations__ or function.__kwdefaults__ or code.co_kwonlyargcount:
        return DECLINED
    names = code.co_varnames
    count = code.co_argcount
    positional = list(names[:count])
    starred = double_starred = None
    if code.co_flags & CO_VARARGS:
        starred = names[count]
        count += 1
    if code.co_flags & CO_VARKEYWORDS:
        double_starred = names[count]
    defaults = function.__defaults__ or None
    return _FullArgSpec(positional, starred, double_starred, defaults, [], None, {})


register("helpers", "tf_inspect.getfullargspec", _full_argument_specification)
register("helpers", "TFDecorator.__init__", _init)
register("helpers", "tf_decorator.make_decorator", _make_decorator)
