"""Shows that Python code of users is pure: what recordings compare decides what it computes.

A declaration says of user code that it depends only on what recordings compare, and that it changes
nothing that outlives the call but variables. Here the bytecode is read to show the same. The proof
rests on one rule: every value that the code can reach is *plain* (below), and every instruction
makes plain values of plain values.

==========================  =======================================================================
Plain values                What the code can do with them
==========================  =======================================================================
tensors, variables, arrays  operators, and the few attributes in `plain.ATTRIBUTES`
numbers, strings, dtypes,   the same
shapes, None, members of
enumerations
containers of plain values  the same; items are read but not assigned
functions that compute      calls (`fastops._specialize.libraries.computes`)
functions of users, and     calls: their code is shown to be pure when it runs
objects with `__call__`
named tuples, dataclasses   calls, which make an instance of the arguments
layers of Keras             calls; attributes, see below
`tf.random.Generator`       the methods that draw numbers
generators of seeds         drawing: their state is in variables
==========================  =======================================================================

Modules, objects and classes of users, and layers hold plain values. Code may only read an attribute
of such an *owner*, so that the value is known here. It may give owners names, which no other
statement binds, and pass them to `isinstance`, `getattr` and `hasattr`.

The witness of a recording asks for the proof whenever user code is called in it, with its
arguments. The guards of recordings (`fastops._specialize.guards`) compare all values that are
looked at here, in each call. So the proof has to hold only for the values of the recorded call, and
what a branch by such a value leaves out need not be pure.
"""

import builtins
import contextlib
import inspect
import operator
import types
import weakref
from dataclasses import dataclass
from string import Formatter

import tensorflow as tf
from tensorflow.python.framework.ops import name_scope_v2

from fastops._core import bytecode
from fastops._core.reasons import advice, text_of
from fastops._specialize.guards.names import upstream
from fastops._specialize.libraries import is_own
from fastops._specialize.recording import instructions
from fastops._specialize.recording.instructions import (
    ASSIGNING,
    ATTRIBUTE,
    BRANCH,
    CALL,
    COMPARISON,
    CONSTANT,
    GLOBAL,
    IDENTITY,
    ITEM,
    LOAD,
    NOT,
    REFUSED,
    SET_ITEM,
    STORE,
    SUPER,
    WITH,
)
from fastops._specialize.recording.plain import (
    ATTRIBUTES,
    ATTRIBUTES_OF_CLASSES,
    MISSING,
    Judge,
    UnprovenError,
    has_attribute,
    has_own_identity,
    is_called,
    is_kind,
    is_member,
    is_record,
    is_simple,
    item_of,
    truth_of,
)

_OF_LISTS = frozenset({"append", "extend", "insert", "pop", "reverse"})
"""Methods that code may call of a list that it has made itself."""

_OF_STRINGS = frozenset(
    {
        *("capitalize", "count", "endswith", "find", "format", "join", "lower", "lstrip"),
        *("partition", "replace", "rpartition", "rsplit", "rstrip", "split", "startswith"),
        *("strip", "title", "upper"),
    }
)
"""Methods that code may call of a text that it names."""

_COMPARING = (max, min, sorted)
"""Builtins that compare: see `Proof.identified`."""

_SHAPES = frozenset({"dtype", "ndim", "rank", "shape"})
"""Attributes whose values have no elements that a comparison could compare by identity."""

_COMPARABLE = frozenset({bool, int, float, str, type(None)})
_COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Proof:
    """The proof for the user code of one recorded call.

    Attributes
    ----------
    identified : bool
        Whether the code names a tensor. Comparisons of containers ask first whether an element is
        the same object. So they could tell a later argument from one that only has equal values.
    comparing : str or None
        Where containers may be compared.
    assigning : str or None
        Where an operator such as ``+=`` may change its left operand. It does so in the recorded
        call, too, and what outlives the call is compared after it.
    functions : dict of int to callable
        The functions of libraries that the code may call, by their identity. A stand-in may run in
        the place of such a function, so the witness does not see all of them.
    """

    def __init__(self):
        self.identified = False
        self.functions = {}
        self.assigning = self.comparing = None

    def objection(self, frame):
        """Return why the code of a frame that begins is not shown to be pure; None if it is."""
        if _fills_record(frame):
            return None
        reader = _ProofReader(self, frame)
        try:
            reader.read()
        except UnprovenError as error:
            return f"{reader.here}: {error}"
        if self.comparing is not None and self.identified:
            return f"{self.comparing}: {advice('compares_containers')}"
        return None

    def blamed_for(self, changed):
        """Return the text about a value that a call has changed, with the line that may do so."""
        if self.assigning is None:
            return changed
        return f"{changed}: {self.assigning}: {advice('changes_in_place')}"


def _fills_record(frame):
    """Tell whether a frame fills the fields of a record: see `is_record`.

    An object that outlives the call, and is filled again, is compared after the call.
    """
    code = frame.f_code
    if code.co_name != "__init__" or not code.co_argcount:
        return False
    kind = type(frame.f_locals.get(code.co_varnames[0]))
    return is_record(kind) and getattr(kind.__init__, "__code__", None) is code


class _Frame:
    """What is known of a call before it is made."""

    def __init__(self, function):
        self.f_code, self.f_globals = function.__code__, function.__globals__
        self.f_builtins, self.f_locals = vars(builtins), {}
        cells = function.__closure__ or ()
        for name, cell in zip(self.f_code.co_freevars, cells, strict=True):
            with contextlib.suppress(ValueError):  # the cell is empty
                self.f_locals[name] = cell.cell_contents


_glances: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def objection_to_class(kind, method="call"):
    """Return why a method of a class cannot be shown to be pure; None if it may be.

    The attributes of the instance are not known, so the proof itself must wait for a call.
    """
    function = upstream(getattr(kind, method, None))
    if type(function) is not types.FunctionType:
        return text_of("not_python")
    if is_own(str(function.__globals__.get("__name__"))):
        return None
    if function not in _glances:
        reader = _Glance(Proof(), _Frame(function))
        try:
            _glances[function] = reader.read()
        except UnprovenError as error:
            _glances[function] = f"{reader.here}: {error}"
        except Exception as error:  # a value that the code names has raised it
            _glances[function] = f"{reader.here}: {error!r}"
    return _glances[function]


@dataclass(slots=True)
class _Pushed:
    """An object on the stack of the code.

    Attributes
    ----------
    value : object
        The object; `MISSING` if it is not known.
    title : str
        How the code writes it.
    plain : bool
        Whether it is plain.
    simple : bool
        Whether it has no elements that a comparison could compare by identity.
    objection : UnprovenError or None
        Why code may use it for no more than a question such as `isinstance`.
    name : str or None
        The name of a variable, if the code has made the list or dict that it holds.
    enters : bool
        Whether it is a name scope of TensorFlow, which code may enter but not use as a value.
    """

    value: object = MISSING
    title: str = ""
    plain: bool = True
    simple: bool = False
    objection: UnprovenError | None = None
    name: str | None = None
    enters: bool = False


_UNKNOWN = _Pushed()


class _ProofReader(Judge):
    """Reads the code of one call.

    Attributes
    ----------
    known : dict of str to object
        The values of parameters, of variables of outer functions, and of those local variables to
        which the code assigns once.
    unknown : set of str
        The variables that the code has loaded before their values were known.
    again : bool
        Whether a step matters to an earlier one.
    stack : list of _Pushed
        The objects that the last instructions have pushed.
    """

    def __init__(self, proof, frame):
        super().__init__(proof, frame.f_code)
        self.frame = frame
        self.known, self.unknown, self.stack = {}, set(), []
        self.again = False

    def read(self):
        code, flags = self.code, self.code.co_flags
        if not bytecode.REVIEWED:
            raise UnprovenError("python_version")
        if self.frame.f_builtins is not vars(builtins) or type(self.frame.f_globals) is not dict:
            raise UnprovenError("own_globals")
        if flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            raise UnprovenError("asynchronous")
        if flags & inspect.CO_GENERATOR and not instructions.is_generator_expression(code):
            raise UnprovenError("generator")
        stores = [step.value for step in instructions.steps_of(code) if step.kind == STORE]
        parameters = instructions.parameters_of(code)
        starred = instructions.starred_parameters_of(code)
        values = self.frame.f_locals
        for name in (*parameters, *code.co_freevars):
            if name == ".0" or name not in values:  # the iterator of a comprehension is new
                continue
            value = values[name]
            if name in starred:  # a new tuple or dict, which the function may change
                value = tuple(value.values() if isinstance(value, dict) else value)
            plain = self.judge(value, f"its variable {name}", named=name in code.co_freevars)
            if name not in stores and name not in starred:
                self.known[name] = value
            elif not plain:
                raise UnprovenError("binds_parameter", name)
        self.once = {name for name in stores if stores.count(name) == 1}.difference(parameters)
        self.lists = instructions.lists_made_in(code)
        self.containers = instructions.containers_made_in(code)
        self.follow(instructions.steps_of(code))
        if self.drawing is not None and not self.has_seeds:
            self.check_seeds(*self.drawing)

    def follow(self, steps):
        """Read the steps that may run, again if later ones matter to earlier ones."""
        reached = instructions.entries_of(steps)
        self.again = True
        while self.again:
            self.again = False
            self.read_reached(steps, reached)

    def check_seeds(self, line, title):
        """Check a draw by code that names no generator of seeds."""
        self.line = line
        raise UnprovenError("draws_unseeded", title)

    def read_reached(self, steps, reached):
        before = None
        for number, step in enumerate(steps):
            if number not in reached:
                before = None
                self.let_go()
                continue
            self.line = step.line
            if step.is_target:
                before = None
                self.let_go()
            falls, target = step.falls, step.target
            if step.kind == BRANCH:
                goes = self.decide(step.value)
                falls, target = goes is not True, None if goes is False else target
            else:
                self.take(step, before)
            before = step
            if falls:
                reached.add(number + 1)
            if target is not None:
                self.again |= target < number and target not in reached
                reached.add(target)

    def take(self, step, before):
        """Read a step that is not a branch."""
        kind, value = step.kind, step.value
        if kind == ATTRIBUTE:
            self.read_attribute(value, before)
        elif kind == GLOBAL:
            self.push(self.global_value(value), value, named=True)
        elif kind == LOAD:
            self.load(value)
        elif kind == CONSTANT:
            simple = not isinstance(value, (tuple, frozenset))
            self.stack.append(_Pushed(value, "a constant", simple=simple))
        elif kind == STORE:
            self.store(value)
        elif kind == ITEM:
            key, container = self.pop(), self.pop()
            self.use(key)
            self.use(container)
            title = f"{container.title}[{key.value!r}]"
            self.push(item_of(container.value, key.value), title, named=False)
        elif kind == SET_ITEM:
            self.set_item()
        elif kind == CALL:
            self.call(value)
        elif kind == SUPER:
            self.read_super(value)
        elif kind == NOT:
            truth = truth_of(self.pop().value)
            self.answer(MISSING if truth is None else not truth)
        elif kind == IDENTITY:
            self.identify(value)
        elif kind == COMPARISON:
            self.compare(value)
        elif kind == WITH:
            self.enter(self.pop(), before)
        elif kind == REFUSED:
            raise UnprovenError(*value)
        else:
            self.let_go()
            if kind == ASSIGNING:
                self.proof.assigning = self.here

    # -----------------------------------------------------------------------------------------
    # The stack
    # -----------------------------------------------------------------------------------------

    def push(self, value, title, named):
        """Push an object that the code names."""
        if value is MISSING:
            self.stack.append(_UNKNOWN)
            return
        plain, objection = False, None
        try:
            plain = self.judge(value, title, named)
        except UnprovenError as error:
            if not (isinstance(value, type) or value is getattr or value is hasattr):
                raise
            objection = error
        self.stack.append(_Pushed(value, title, plain, is_simple(value), objection))

    def push_scope(self, title):
        """Push a name scope."""
        objection = UnprovenError("object_as_value", title)
        self.stack.append(_Pushed(title=title, objection=objection, enters=True))

    def load(self, name):
        """Push the value of a variable."""
        if name in self.known:
            self.push(self.known[name], name, named=False)
            return
        self.unknown.add(name)
        self.stack.append(_Pushed(name=name) if name in self.containers else _UNKNOWN)

    def pop(self):
        """Return what the last instruction has pushed."""
        return self.stack.pop() if self.stack else _UNKNOWN

    def answer(self, value):
        """Push the answer to a question, such as a comparison."""
        self.stack.append(_Pushed(value, "an answer", simple=True))

    def let_go(self):
        """Forget the stack: code may use all objects there as values."""
        for pushed in self.stack:
            self.use(pushed)
            if any(pushed.value is function for function in _COMPARING):
                self.proof.comparing = self.here
        self.stack.clear()

    def use(self, pushed):
        """Check that code may use an object as a value."""
        if pushed.objection is not None:
            raise pushed.objection
        if not pushed.plain:
            raise UnprovenError("object_as_value", pushed.title)

    # -----------------------------------------------------------------------------------------
    # Steps
    # -----------------------------------------------------------------------------------------

    def global_value(self, name):
        names = self.frame.f_globals
        if name in names:
            return names[name]
        return vars(builtins).get(name, MISSING)  # if it is missing, the code raises NameError

    def read_attribute(self, name, before):
        owner = self.pop()
        if owner.objection is not None:
            raise owner.objection
        if name == "name_scope" and _has_name_scope(owner.value):
            self.push_scope(f"{owner.title}.{name}")
            return
        if owner.value is not MISSING and (not owner.plain or is_owner(owner.value)):
            title = f"{owner.title}.{name}"
            self.push(self.attribute(owner.value, name, title), title, named=True)
            return
        if not (type(owner.value) is str and _is_of_text(owner.value, name)):
            self.check_attribute(name, before)
        self.stack.append(_Pushed(simple=name in _SHAPES))

    def check_attribute(self, name, before):
        """Check that code may read an attribute of a value that is not known."""
        if name in ATTRIBUTES:
            return
        if (
            name in _OF_LISTS
            and before is not None
            and before.kind == LOAD
            and before.value in self.lists
        ):
            return
        for other in instructions.steps_of(self.code):
            if other.kind == REFUSED and other.line == self.line:  # as in layer.count += 1
                raise UnprovenError(*other.value)
        if name in _OF_LISTS or name in ("add", "clear", "remove", "sort", "update"):
            raise UnprovenError("changes_list", name)
        if name in ("numpy", "item", "tolist"):
            raise UnprovenError("takes_numbers", name)
        raise UnprovenError("attribute_of_value", name)

    def read_super(self, step):
        source, name = step.kind
        kind = self.known.get(name, MISSING) if source == LOAD else self.global_value(name)
        instance = self.known.get(step.instance, MISSING)
        if (
            self.global_value("super") is not super
            or not isinstance(kind, type)
            or instance is MISSING
            or isinstance(instance, type)
        ):
            raise UnprovenError("super_arguments", step.name)
        found = self.attribute_of_super(kind, instance, step.name)
        self.push(found, f"super().{step.name}", named=True)

    def store(self, name):
        pushed = self.pop()
        if pushed.value is not MISSING and name in self.once and pushed.objection is None:
            self.again |= name in self.unknown and name not in self.known
            self.known[name] = pushed.value
        else:
            self.use(pushed)

    def set_item(self):
        key, container = self.pop(), self.pop()
        self.use(key)
        self.let_go()
        if container.name is None:
            raise UnprovenError("assigns_item")

    def call(self, count):
        """Read a call with a number of positional arguments; None: it has others."""
        if count is None or len(self.stack) <= count:
            self.let_go()
            return
        callee = self.stack[-count - 1].value
        given = self.stack[len(self.stack) - count :]
        if callee is isinstance and count == 2:
            self.leave_question(count, is_kind(given[0].value, given[1].value))
        elif (callee is min or callee is max) and all(pushed.simple for pushed in given):
            self.leave_question(count, MISSING)
        elif callee is len and count == 1:
            self.use(given[0])
            value = given[0].value
            known = type(value) in (list, tuple, dict)
            self.leave_question(count, len(value) if known else MISSING)
        elif callee is hasattr and count == 2:
            self.check_asked(given[0], given[1].value)
            self.leave_question(count, has_attribute(given[0].value, given[1].value))
        elif callee is getattr and count in (2, 3):
            self.get_attribute(given)
        elif callee is name_scope_v2:
            for pushed in given:
                self.use(pushed)
            del self.stack[-count - 1 :]
            self.push_scope("a name scope")
        else:
            self.let_go()

    def enter(self, manager, before):
        """Read a with statement, given its context manager and the step that has pushed it."""
        if not manager.enters:
            raise UnprovenError("with_statement")
        self.let_go()

    def check_asked(self, owner, name):
        """Refuse to ask for an attribute that only some tensors or variables have."""
        value = owner.value
        known = value is not MISSING and not isinstance(value, tf.Tensor | tf.Variable)
        if not known and name not in ATTRIBUTES_OF_CLASSES:
            raise UnprovenError("attribute_in_doubt", f"{owner.title}.{name}")

    def leave_question(self, count, answer):
        """Replace a function and its arguments by the answer."""
        del self.stack[len(self.stack) - count - 1 :]
        self.answer(answer)

    def get_attribute(self, given):
        owner, name = given[0], given[1].value
        if type(name) is not str or owner.value is MISSING:
            raise UnprovenError("computed_name")
        title = f"{owner.title}.{name}"
        if len(given) == 3:
            there = has_attribute(owner.value, name)
            if there is MISSING:
                raise UnprovenError("attribute_in_doubt", title)
            if not there:
                default = given[2]
                del self.stack[-4:]
                self.stack.append(default)
                return
        found = self.attribute(owner.value, name, title)
        del self.stack[-len(given) - 1 :]
        self.push(found, title, named=True)

    def identify(self, operation):
        """Read `is` or `is not`."""
        right, left = self.pop(), self.pop()
        value = right.value
        if value is None or value is Ellipsis or type(value) is bool or is_member(value):
            known = left.value is not MISSING
        else:
            known = has_own_identity(value) and has_own_identity(left.value)
            if not known:
                raise UnprovenError("compares_identity")
        self.answer((left.value is value) is (operation == "is") if known else MISSING)

    def compare(self, operation):
        right, left = self.pop(), self.pop()
        self.use(left)
        self.use(right)
        if not (right.simple or (left.simple and operation in _COMPARISONS)):
            self.proof.comparing = self.here
        answer = MISSING
        if {type(left.value), type(right.value)} <= _COMPARABLE and operation in _COMPARISONS:
            with contextlib.suppress(TypeError):
                answer = _COMPARISONS[operation](left.value, right.value)
        elif type(right.value) is tuple and operation in ("in", "not in"):
            if {type(left.value), *map(type, right.value)} <= _COMPARABLE:
                answer = (left.value in right.value) is (operation == "in")
        elif is_member(left.value) and is_member(right.value) and operation in ("==", "!="):
            answer = (left.value is right.value) is (operation == "==")
        self.answer(answer)

    def decide(self, when):
        """Return whether a branch jumps; None if it may do either."""
        pushed = self.pop()
        if instructions.keeps_object(when):
            self.use(pushed)
        if instructions.keeps_object(when) or pushed.value is MISSING:
            self.let_go()
            return None
        value = pushed.value
        if not instructions.asks_for_none(when):
            value = truth_of(value)
            if value is None:
                self.let_go()
                return None
        return instructions.jumps(when, value)


def _is_of_text(text, name):
    """Tell whether code may call a method of a text that it names."""
    return name in _OF_STRINGS and not (name == "format" and _names_attributes(text))


def _names_attributes(text):
    """Tell whether a format reads attributes or items of values, which no guard would compare."""
    try:
        parts = list(Formatter().parse(text))
    except ValueError:  # the call raises it, too
        return False
    names = [name for _, name, _, _ in parts if name is not None]
    return any("." in name or "[" in name for name in names) or any(
        "{" in (spec or "") for _, _, spec, _ in parts
    )


def _has_name_scope(value):
    """Tell whether a value is a module with the name scope that TensorFlow gives it."""
    kind = type(value)
    return (
        issubclass(kind, tf.Module)
        and kind.__getattribute__ is object.__getattribute__
        and kind.name_scope is tf.Module.name_scope
        and type(vars(value).get("_name_scope")) is name_scope_v2
    )


def is_owner(value):
    """Tell whether the attributes of a plain value are known."""
    return is_member(value) or is_called(value) or is_record(value)


class _Glance(_ProofReader):
    """Reads code whose arguments are not known, until they decide what runs."""

    def check_attribute(self, name, before):
        return

    def check_asked(self, owner, name):
        return

    def read_super(self, step):
        self.let_go()

    def get_attribute(self, given):
        self.stack[:] = [_UNKNOWN]

    def identify(self, operation):
        self.stack[:] = [_UNKNOWN]

    def enter(self, manager, before):
        if before is None or (before.kind, before.value) != (ATTRIBUTE, "name_scope"):
            super().enter(manager, before)
        self.let_go()

    def check_seeds(self, line, title):
        return

    def follow(self, steps):
        first = next(
            (number for number, step in enumerate(steps) if step.kind == BRANCH), len(steps)
        )
        self.read_reached(steps[:first], instructions.entries_of(steps))
