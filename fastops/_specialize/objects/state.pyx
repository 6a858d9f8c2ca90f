# distutils: language = c++
"""The states of objects, with the calls that were recorded in them.

Programs make objects anew: a metric for each epoch, a loss for each step. If an object of a class
has died, the recordings of later ones are shared: another object uses them if its contents are
equal (`fastops._specialize.guards.template`), with its own variables.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject

from fastops._cpp.signature cimport Signature
from fastops._specialize.cache cimport Cache
from fastops._specialize.guards.template cimport ObjectTemplate
from fastops._specialize.guards.watch cimport Watch
from fastops._specialize.objects.case cimport MethodCase
from fastops._specialize.policy cimport MAX_OBJECT_SIGNATURES, MAX_TEMPLATES

cdef extern from "definitions.h":
    pass

from fastops._specialize.guards.places import Places, code_of_users
from fastops._specialize.guards.template import UnsharedError


@cython.final
cdef class SharedRecordings:
    """The recordings of all objects whose contents are those of a template.

    Attributes
    ----------
    template : ObjectTemplate
        The contents.
    cases : Cache
        By signature and scopes, the `MethodCase` without the variables of an object.
    """

    def __init__(self, ObjectTemplate template not None):
        self.template, self.cases = template, Cache(MAX_OBJECT_SIGNATURES)


@cython.final
cdef class ClassRecordings:
    """What is known about the objects of a class, once one of them has died.

    Attributes
    ----------
    outlived : bool
        Whether an object has died.
    brief : bool
        Whether the object that has died last was called at most twice. Then calls are recorded even
        if they are the first ones of an object.
    accounts : Cache
        The accounts of objects that have died before their calls were replayed.
    shared : list of SharedRecordings
        The recordings for each of the latest templates.
    """

    def __init__(self):
        self.accounts, self.shared = Cache(MAX_OBJECT_SIGNATURES), []

    cdef ObjectState find(self, PyObject* root):
        cdef SharedRecordings shared
        cdef ObjectState state = ObjectState.__new__(ObjectState)
        for shared in self.shared:
            state.watch = shared.template.bind(root, &state.parts)
            if state.watch is not None:
                state.shared = shared
                return state
        return None

    cdef int publish(self, PyObject* root, ObjectState state, MethodCase case,
                     dict names) except -1:
        cdef ObjectState fitting
        cdef size_t i
        # The addresses in a signature may be those of other variables later.
        if not self.outlived or case.identified or case.adds_losses or case.warned:
            return 0
        if code_of_users(case.codes):
            return 0
        fitting = self.find(root)
        if fitting is None:
            try:
                self.shared.insert(0, SharedRecordings(ObjectTemplate(state.watch, names)))
            except UnsharedError:
                return 0
            del self.shared[MAX_TEMPLATES:]
            fitting = self.find(root)
            if fitting is None:
                return 0
        numbers = {}
        for i in range(fitting.parts.size()):
            if fitting.parts[i] != NULL:
                numbers[<size_t>fitting.parts[i]] = <int>i
        if case.globals.has_any(set(numbers)) or case.contents.has_any(set(numbers)):
            return 0
        fitting.shared.cases.replace((case.key, case.scopes), case.unbound(numbers))
        return 0


@cython.final
cdef class ObjectState:
    """One state of an object, with the calls that were recorded in it.

    Parameters
    ----------
    root : object
        The object.
    unasked : dict of type to set of str
        See `fastops._specialize.guards.places.Places`.
    unasked_of : dict of int to set of str, optional
        See there, too.
    """

    def __cinit__(self):
        self.cases, self.batches = Cache(MAX_OBJECT_SIGNATURES), Cache(MAX_OBJECT_SIGNATURES)

    def __init__(self, root, unasked, unasked_of=None):
        self.places = Places([root], unasked, None, unasked_of)
        self.watch = Watch(self.places)
        self.variables, self.tables = self.places.variables, self.places.tables
        self.seen = self.places.seen

    cdef ObjectState completed(self, root, unasked, unasked_of):
        cdef ObjectState state
        if self.places is not None:
            return self
        state = ObjectState(root, unasked, unasked_of)
        state.cases, state.batches = self.cases, self.batches
        state.shared, state.parts = self.shared, self.parts
        state.losses = self.losses
        return state

    cdef MethodCase case_of(self, const Signature& signature, tuple scopes):
        cdef MethodCase case = self.last, unbound, batch
        cdef PyObject* stored
        if (
            case is not None
            and PyList_GET_SIZE(case.variants) != 0
            and signature.Is(PyBytes_AS_STRING(case.key), PyBytes_GET_SIZE(case.key))
            and case.scopes == scopes
        ):
            return case
        key = PyBytes_FromStringAndSize(signature.data(), signature.size()), scopes
        stored = self.cases.find(key)
        case = None if stored == NULL else <MethodCase>stored
        if case is None or PyList_GET_SIZE(case.variants) == 0:
            batch = self.batch_of(signature, scopes)
            if batch is not None and PyList_GET_SIZE(batch.variants) != 0:
                return batch
        if case is None:
            if self.shared is not None:
                stored = self.shared.cases.find(key)
            if stored == NULL:
                return None
            unbound = <MethodCase>stored  # another thread may drop it meanwhile
            case = unbound.bound(&self.parts)
            if not case.holds():
                self.shared.cases.drop(key)
                return None
            case = self.cases.put(key, case)
        self.last = case
        return case

    cdef MethodCase batch_of(self, const Signature& signature, tuple scopes):
        cdef PyObject* stored
        if len(self.batches) == 0:
            return None
        stored = self.batches.find((<bytes>signature.OfAnyBatch(), scopes))
        return None if stored == NULL else <MethodCase>stored

    cdef list all_cases(self):
        return self.cases.values() + self.batches.values()
