"""Reads the bytecode of a function as steps that are the same in all supported versions of Python.

Each step tells what an instruction takes or changes beside the stack. An instruction that is not
listed here refuses the proof that a function is pure (`proof.py`), as does a Python whose bytecode
has not been reviewed.
"""

import dis
import functools
import inspect
from typing import NamedTuple

from fastops._core.bytecode import INPLACE, SUBSCRIPT
from fastops._specialize.policy import MAX_CODES

LOAD = "load"
"""Pushes a local variable, or a variable of an outer function."""
GLOBAL = "global"
"""Pushes a global variable or a builtin."""
ATTRIBUTE = "attribute"
"""Replaces the object on top of the stack by one of its attributes."""
STORE = "store"
"""Binds or deletes a local variable."""
CONSTANT = "constant"
"""Pushes a constant."""
LIST = "list"
"""Makes a list."""
DICT = "dict"
"""Makes a dict."""
ITEM = "item"
"""Replaces a container and a key by the item."""
SET_ITEM = "set item"
"""Assigns to an item. The stack has the container and the key."""
ASSIGNING = "assigning"
"""An operator such as ``+=``, which may change its left operand."""
IDENTITY = "identity"
"""The operators ``is`` and ``is not``, which are the value."""
COMPARISON = "comparison"
"""Comparisons and ``in``, which are the value: containers compare elements by identity first."""
NOT = "not"
"""The operator ``not``."""
CALL = "call"
"""A call. The value is the number of positional arguments; None if it has others."""
SUPER = "super"
"""Replaces nothing: pushes an attribute of ``super()``. The value is a `SuperAttribute`."""
BRANCH = "branch"
"""May jump to `Step.target`, when the object on top of the stack is the value: see `jumps`."""
OTHER = "other"
"""Works on the stack alone."""
WITH = "with"
"""Takes a context manager from the stack, and enters it."""
REFUSED = "refused"
"""Changes or reads something else. The value is the id of a reason, and a name or None."""


class Step(NamedTuple):
    """What an instruction takes or changes beside the stack.

    Attributes
    ----------
    kind : str
        One of the constants above.
    value : object
        The name or the constant. If the step is refused: the id of a reason, and a name or
        None.
    line : int
        The line in the source.
    is_target : bool
        Whether other instructions jump here, so that the step before is not always the one that ran
        before.
    target : int or None
        The index of the step to which this one may jump.
    falls : bool
        Whether the next step may run after this one.
    """

    kind: str
    value: object
    line: int
    is_target: bool
    target: int | None = None
    falls: bool = True


class SuperAttribute(NamedTuple):
    """An attribute of ``super()``, or of ``super(Class, instance)``.

    Attributes
    ----------
    kind : tuple
        The kind and the value of the step that pushes the class.
    instance : str
        The name of the variable that holds the instance.
    name : str
        The name of the attribute.
    """

    kind: tuple
    instance: str
    name: str


SILENT = frozenset(
    {
        *("CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN", "PRECALL", "PUSH_NULL", "RESUME"),
        "TO_BOOL",
    }
)

# fmt: off
_OTHER = frozenset(
    {
        *("BINARY_ADD", "BINARY_AND", "BINARY_FLOOR_DIVIDE", "BINARY_LSHIFT"),
        *("BINARY_MATRIX_MULTIPLY", "BINARY_MODULO", "BINARY_MULTIPLY", "BINARY_OP", "BINARY_OR"),
        *("BINARY_POWER", "BINARY_RSHIFT", "BINARY_SLICE", "BINARY_SUBTRACT"),
        *("BINARY_TRUE_DIVIDE", "BINARY_XOR", "BUILD_SET"),
        *("BUILD_SLICE", "BUILD_STRING", "BUILD_TUPLE", "CONVERT_VALUE"),
        *("COPY", "COPY_FREE_VARS", "DICT_MERGE", "DICT_UPDATE", "DUP_TOP", "DUP_TOP_TWO"),
        *("END_FOR", "FORMAT_SIMPLE", "FORMAT_VALUE", "FORMAT_WITH_SPEC", "GEN_START"),
        *("GET_ITER", "KW_NAMES"),
        *("LIST_APPEND", "LIST_EXTEND", "LIST_TO_TUPLE", "LOAD_ASSERTION_ERROR", "LOAD_CLOSURE"),
        "LOAD_COMMON_CONSTANT",  # an exception, or a builtin to compare a global with
        *("LOAD_FAST_AND_CLEAR", "MAKE_CELL", "MAKE_FUNCTION", "MAP_ADD"),
        "POP_BLOCK",
        "POP_EXCEPT",  # leaves a handler: its beginning is refused unless a with statement has it
        *("POP_ITER", "POP_TOP", "RAISE_VARARGS", "RERAISE", "RETURN_GENERATOR", "RETURN_VALUE"),
        *("ROT_FOUR", "ROT_N"),
        *("ROT_THREE", "ROT_TWO", "SET_ADD", "SET_FUNCTION_ATTRIBUTE", "SET_UPDATE", "SWAP"),
        *("UNARY_INVERT", "UNARY_NEGATIVE", "UNARY_POSITIVE"),
        *("UNPACK_EX", "UNPACK_SEQUENCE"),
    }
)
# fmt: on

_CALLS = frozenset({"CALL", "CALL_FUNCTION", "CALL_METHOD"})
_CALLS_BY_NAME = frozenset({"CALL_FUNCTION_EX", "CALL_FUNCTION_KW", "CALL_KW"})

_NONE, _SOME, _ANY = "none", "some", "any"
_BRANCHES = {
    **{
        f"POP_JUMP_{direction}IF_{text}": when
        for direction in ("", "FORWARD_", "BACKWARD_")
        for text, when in (
            *(("TRUE", True), ("FALSE", False), ("NONE", _NONE), ("NOT_NONE", _SOME)),
        )
    },
    **dict.fromkeys(("FOR_ITER", "JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP"), _ANY),
}
"""By instruction that may jump, when it does. `_ANY`: the object stays on the stack in one case."""

_JUMPS = frozenset({"JUMP_ABSOLUTE", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_FORWARD"})
_LEAVES = frozenset({"RAISE_VARARGS", "RERAISE", "RETURN_CONST", "RETURN_VALUE"})

_INTRINSICS = {3, 5, 6}  # the error of a generator; unary plus; a tuple of a list
_REFUSED = {
    **dict.fromkeys(
        ("DELETE_GLOBAL", "DELETE_NAME", "STORE_GLOBAL", "STORE_NAME"), "assigns_global"
    ),
    **dict.fromkeys(("DELETE_ATTR", "STORE_ATTR"), "assigns_attribute"),
    "DELETE_SUBSCR": "deletes_item",
    "STORE_SLICE": "assigns_item",
    **dict.fromkeys(("DELETE_DEREF", "STORE_DEREF"), "assigns_outer"),
    **dict.fromkeys(("IMPORT_FROM", "IMPORT_NAME", "IMPORT_STAR"), "imports"),
    "LOAD_SPECIAL": "with_statement",
    **dict.fromkeys(
        (
            *("CHECK_EG_MATCH", "CHECK_EXC_MATCH", "JUMP_IF_NOT_EXC_MATCH"),
            *("PREP_RERAISE_STAR", "PUSH_EXC_INFO", "SETUP_CLEANUP", "SETUP_FINALLY"),
        ),
        "handles_exceptions",
    ),
    **dict.fromkeys(
        (
            *("ASYNC_GEN_WRAP", "BEFORE_ASYNC_WITH", "CLEANUP_THROW", "END_ASYNC_FOR", "END_SEND"),
            *("GET_AITER", "GET_ANEXT", "GET_AWAITABLE", "SEND", "SETUP_ASYNC_WITH"),
        ),
        "asynchronous",
    ),
    **dict.fromkeys(("GET_YIELD_FROM_ITER", "YIELD_FROM", "YIELD_VALUE"), "generator"),
    "LOAD_BUILD_CLASS": "defines_class",
    **dict.fromkeys(("LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD"), "super_arguments"),
}
"""By instruction, the id of the reason for which it is refused. Other instructions are refused by
their names, for the reason ``"instruction"``."""


@functools.lru_cache(maxsize=MAX_CODES)
def steps_of(code):
    """Return the steps of some code, without those of the code of functions that it defines.

    Parameters
    ----------
    code : types.CodeType
        The code.

    Returns
    -------
    tuple of Step
        In the order of the bytecode.
    """
    lines = {}
    for start, end, line in code.co_lines():
        lines.update(dict.fromkeys(range(start, end, 2), line))
    steps, line, is_target = [], code.co_firstlineno, False
    begins = {}  # by offset: the index of the first step there or after
    listed = list(dis.Bytecode(code))  # it also tells where handlers begin
    for number, instruction in enumerate(listed):
        line = lines.get(instruction.offset) or line
        is_target |= instruction.is_jump_target
        begins[instruction.offset] = len(steps)
        if instruction.opname in SILENT:
            continue
        target = None
        if instruction.opcode in _JUMPING:
            target = instruction.argval
        falls = instruction.opname not in _JUMPS | _LEAVES
        parts = _of_with(instruction, listed[number + 1 : number + 3])
        for kind, value in _parts(instruction, code) if parts is None else parts:
            steps.append(Step(kind, value, line, is_target, target, falls))
            is_target = False
        _join_super(steps, instruction, code)
    steps = [
        step if step.target is None else step._replace(target=begins[step.target]) for step in steps
    ]
    return tuple(steps)


_JUMPING = frozenset({*dis.hasjrel, *dis.hasjabs})


def _of_with(instruction, following):
    """Return the steps of an instruction of a with statement; None for other instructions.

    Parameters
    ----------
    instruction : dis.Instruction
        The instruction.
    following : list of dis.Instruction
        The next ones.
    """
    name, next_name = instruction.opname, following[0].opname if following else None
    if name in ("BEFORE_WITH", "SETUP_WITH"):
        return [(WITH, None)] if next_name == "POP_TOP" else [_BINDS]
    # Python 3.14 loads `__exit__` from a copy of the context manager, and then `__enter__`.
    if name == "COPY" and next_name == "LOAD_SPECIAL" and following[0].argrepr == "__exit__":
        return []
    if name == "LOAD_SPECIAL" and instruction.argrepr == "__exit__":
        return [(WITH, None)]
    if name == "LOAD_SPECIAL" and instruction.argrepr == "__enter__":
        drops = [after.opname for after in following] == ["CALL", "POP_TOP"]
        return [(OTHER, None)] if drops else [_BINDS]
    if name == "WITH_EXCEPT_START" or (
        name == "PUSH_EXC_INFO" and next_name == "WITH_EXCEPT_START"
    ):
        return [(OTHER, None)]  # the handler that leaves the context manager
    return None


_BINDS = REFUSED, ("with_statement", None)
"""The step of a with statement that uses what the context manager returns."""


def _join_super(steps, instruction, code):
    """Join the last steps to one if together they push an attribute of ``super()``."""
    name = instruction.opname
    if name == "LOAD_SUPER_ATTR":
        attribute, called = instruction.argval, []
        has_arguments = bool(instruction.arg & 2)
    elif name in ("LOAD_ATTR", "LOAD_METHOD") and len(steps) > 2 and steps[-2].kind == CALL:
        attribute, called = steps[-1].value, [steps[-2]]
        has_arguments = steps[-2].value == 2
        if not has_arguments and steps[-2].value != 0:
            return
    else:
        return
    pushed = 2 if has_arguments or name == "LOAD_SUPER_ATTR" else 0
    count = 1 + pushed + len(called) + 1
    last = steps[-count:]
    if (
        len(last) < count
        or (last[0].kind, last[0].value) != (GLOBAL, "super")
        or any(step.is_target for step in last[1:])
    ):
        return
    if pushed:
        kind, instance = last[1], last[2]
        if instance.kind != LOAD:
            return
        kind, instance = (kind.kind, kind.value), instance.value
    elif code.co_argcount and "__class__" in code.co_freevars:
        kind, instance = (LOAD, "__class__"), code.co_varnames[0]
    else:
        return
    value = SuperAttribute(kind, instance, attribute)
    steps[-count:] = [last[0]._replace(kind=SUPER, value=value)]


def jumps(when, value):
    """Tell whether a step of the kind `BRANCH` jumps, given the object on top of the stack.

    Parameters
    ----------
    when : object
        The value of the step, which does not keep the object.
    value : object
        The object. Python must be able to decide whether it is true without running other code.

    Returns
    -------
    bool
    """
    if when == _NONE:
        return value is None
    if when == _SOME:
        return value is not None
    return bool(value) is when


def entries_of(steps):
    """Return the indices of the steps that no other step leads to: the first one, and handlers."""
    targets = {step.target for step in steps}
    return {0} | {
        number for number, step in enumerate(steps) if step.is_target and number not in targets
    }


def keeps_object(when):
    """Tell whether a step of the kind `BRANCH` may leave the object on the stack."""
    return when == _ANY


def asks_for_none(when):
    """Tell whether a step of the kind `BRANCH` compares with None only."""
    return when in (_NONE, _SOME)


def _parts(instruction, code):
    """Return the steps of an instruction: pairs of a kind and a value."""
    name, value = instruction.opname, instruction.argval
    cells = code.co_cellvars + code.co_freevars
    if name in ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"):
        # In Python 3.13 such an instruction also pushes the cell of a variable, for a closure.
        return [(OTHER, None) if value in cells else (LOAD, value)]
    if name == "LOAD_DEREF":
        return [(LOAD, value)]
    if name in ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"):
        return [(OTHER, None) if one in cells else (LOAD, one) for one in value]
    if name == "STORE_FAST_LOAD_FAST":
        loads = (OTHER, None) if value[1] in cells else (LOAD, value[1])
        return [(STORE, value[0]), loads]
    if name == "STORE_FAST_STORE_FAST":
        return [(STORE, one) for one in value]
    if name in ("STORE_FAST", "STORE_FAST_MAYBE_NULL"):
        return [(STORE, value)]
    if name == "STORE_DEREF" and value not in code.co_freevars:
        return [(STORE, value)]
    if name == "DELETE_FAST" or (name == "DELETE_DEREF" and value not in code.co_freevars):
        return [(OTHER, None), (STORE, value)]  # takes nothing from the stack
    if name == "LOAD_GLOBAL":
        return [(GLOBAL, value)]
    if name in ("LOAD_ATTR", "LOAD_METHOD"):
        return [(ATTRIBUTE, value)]
    if name in ("LOAD_CONST", "LOAD_SMALL_INT", "RETURN_CONST"):
        return [(CONSTANT, value)]
    if name == "BUILD_LIST":
        return [(LIST, None)]
    if name in ("BUILD_MAP", "BUILD_CONST_KEY_MAP"):
        return [(DICT, None)]
    if name == "BINARY_SUBSCR" or (name == "BINARY_OP" and instruction.arg == SUBSCRIPT):
        return [(ITEM, None)]
    if name == "STORE_SUBSCR":
        return [(SET_ITEM, None)]
    if name.startswith("INPLACE_") or (name == "BINARY_OP" and instruction.arg in INPLACE):
        return [(ASSIGNING, None)]
    if name == "IS_OP":
        return [(IDENTITY, "is not" if instruction.arg else "is")]
    if name == "COMPARE_OP":
        return [(COMPARISON, value)]
    if name == "CONTAINS_OP":
        return [(COMPARISON, "not in" if instruction.arg else "in")]
    if name == "UNARY_NOT":
        return [(NOT, None)]
    if name in _CALLS:
        return [(CALL, instruction.arg)]
    if name in _CALLS_BY_NAME:
        return [(CALL, None)]
    if name in _BRANCHES:
        return [(BRANCH, _BRANCHES[name])]
    if name in _JUMPS:
        return [(OTHER, None)]
    if name == "CALL_INTRINSIC_1" and instruction.arg in _INTRINSICS:
        return [(OTHER, None)]
    if name == "YIELD_VALUE" and is_generator_expression(code):
        return [(OTHER, None)]
    if name in _OTHER:
        return [(OTHER, None)]
    if name not in _REFUSED:
        return [(REFUSED, ("instruction", name))]
    return [(REFUSED, (_REFUSED[name], value if isinstance(value, str) else None))]


def is_generator_expression(code):
    """Tell whether code is that of a generator expression."""
    return code.co_name == "<genexpr>" and code.co_varnames[:1] == (".0",)


def lists_made_in(code):
    """Return the local variables to which code assigns only lists that it makes itself."""
    return _made_in(code, (LIST,))


def containers_made_in(code):
    """Return the local variables to which code assigns only lists and dicts that it makes."""
    return _made_in(code, (LIST, DICT))


def _made_in(code, kinds):
    made, others = set(), set(parameters_of(code))
    before = None
    for step in steps_of(code):
        if step.kind == STORE:
            is_made = before is not None and before.kind in kinds and not step.is_target
            (made if is_made else others).add(step.value)
        before = step
    return made - others


def parameters_of(code):
    """Return the names of the parameters of code."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS)
    count += bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[:count]


def starred_parameters_of(code):
    """Return the names of the parameters for all other arguments, such as ``*args``."""
    return frozenset(parameters_of(code)[code.co_argcount + code.co_kwonlyargcount :])
