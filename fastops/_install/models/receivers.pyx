# distutils: language = c++
"""The objects whose method a stand-in handles, and the classes whose calls are not replayed."""

cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE

from fastops._core.preparing cimport flushes
from fastops._cpp.classes cimport ClassVersion
from fastops._specialize.cache cimport Cache
from fastops._specialize.objects.receiver cimport Receiver, receive
from fastops._specialize.objects.state cimport ClassRecordings
from fastops._specialize.policy cimport Budget, MAX_CLASSES, MAX_REFUSED_OBJECTS

cdef extern from "definitions.h":
    pass

from fastops._core.reasons import text_of as _text_of
from fastops._install.models.declared import changes as _declarations
from fastops._install.models.declared import is_declared
from fastops._specialize.libraries import is_keras, module_of
from fastops._specialize.recording.plain import METACLASSES
from fastops._specialize.recording.proof import objection_to_class
from fastops._specialize.recording.recording import as_refusal

cdef str _FOREIGN = _text_of("foreign_code")
cdef str _UNUSUAL = "a class without a module, or with a metaclass of its own"


@cython.final
cdef class Receivers:
    """The objects whose method a stand-in handles.

    Calls of a class are recorded if it is one of Keras's, if a user has declared it, or if its code
    is shown to be pure. After too many objects of a class were given up, calls of its other objects
    are not recorded.

    Parameters
    ----------
    method : str or None
        The name of the method in which users write what a call does; None if TensorFlow's code does
        it for all classes.
    """

    def __init__(self, str method):
        self.method = method
        self.known, self.refused, self.classes = {}, Cache(MAX_CLASSES), Cache(MAX_CLASSES)
        self.others, self.known_declarations = {}, 0
        self.known_after = flushes

    cdef Receiver find(self, PyObject* root):
        cdef Receiver receiver
        cdef PyObject* stored
        if self.known_after != flushes:
            self.known.clear()
            self.classes.clear()
            self.refused.clear()
            self.known_after = flushes
        stored = PyDict_GetItem(self.known, <size_t>root)
        if stored == NULL:
            return self.find_new(root)
        receiver = <Receiver>stored
        if receiver.reason is not None and self.known_declarations != _declarations[0]:
            self.reconsider()
            return self.find_new(root)
        return receiver

    cdef Receiver find_new(self, PyObject* root):
        kind = <object>Py_TYPE(<object>root)
        if self.refuses(kind):
            return None
        return receive(self.known, root, self.recordings_of(kind))

    cdef ClassRecordings recordings_of(self, object kind):
        # By address, so that no class is kept alive. Another class at the address of one that has
        # died goes on with its accounts and budget, which decide no result.
        cdef PyObject* stored = self.classes.find(<size_t><PyObject*>kind)
        if stored != NULL:
            return <ClassRecordings>stored
        return self.classes.put(<size_t><PyObject*>kind, ClassRecordings())

    cdef bint refuses(self, object kind) except -1:
        """Whether calls of a class are not replayed."""
        cdef PyObject* budget
        if self.known_declarations != _declarations[0]:
            self.known_declarations = _declarations[0]
            self.others.clear()
        version = ClassVersion(<PyTypeObject*>kind)
        if version != 0 and self.others.get(version):
            return True
        why = self.objection(kind)
        if why is not None:
            if len(self.others) >= MAX_CLASSES:
                self.others.clear()
            self.others[version] = why
            return True
        budget = self.refused.find(<size_t><PyObject*>kind)
        return budget != NULL and (<Budget>budget).is_spent()

    cdef str objection(self, object kind):
        if is_keras(kind) or is_declared(kind):
            return None
        if type(kind) not in METACLASSES or not module_of(kind):
            return _UNUSUAL
        return None if self.method is None else objection_to_class(kind, self.method)

    cdef int reconsider(self) except -1:
        cdef Receiver receiver
        for key, receiver in list(self.known.items()):
            if receiver.reason is not None:
                del self.known[key]
        self.refused.clear()
        return 0

    cdef object fail(self, Receiver receiver, error):
        refused = as_refusal(error)
        kind = type(receiver.reference())
        if refused.sentence == _FOREIGN and not is_keras(kind) and not is_declared(kind):
            receiver.reasons[refused.sentence] = 1
            receiver.details[refused.sentence] = refused.detail
            receiver.close(refused.sentence, refused.detail)
        else:
            receiver.fail(refused.sentence, refused.detail)
        # Another object of Keras's class may call another function of the user.
        if receiver.reason is not None and not (
            refused.sentence == _FOREIGN and is_keras(kind)
        ):
            self.budget_of(receiver).fail()
        return refused

    cdef Budget budget_of(self, Receiver receiver):
        kind = type(receiver.reference())
        cdef PyObject* stored = self.refused.find(<size_t><PyObject*>kind)
        if stored != NULL:
            return <Budget>stored
        return self.refused.put(<size_t><PyObject*>kind, Budget(MAX_REFUSED_OBJECTS))
