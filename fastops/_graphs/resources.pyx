# distutils: language = c++
"""Access to the variables of a session, for kernels that run outside the session."""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

from fastops._core.preparing cimport generation
from fastops._cpp.runtime cimport Runtime
from fastops._cpp.session cimport NativeSessionVariables, SessionOf, TensorflowSession, WrapHandle
from fastops._cpp.text cimport Message
from fastops._dispatch cimport runtime
from fastops._tf.protos cimport NodeDef
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor

cdef extern from "definitions.h":
    pass

from tensorflow.python.client import pywrap_tf_session as _tf_session


@cython.final
cdef class SessionVariables:
    """The variables of a session, by the operations that name them."""

    cdef NativeSessionVariables native
    cdef dict numbers
    cdef list known  # the handle of each variable by number; None: not looked up
    cdef unsigned long long known_for

    def __init__(self):
        self.numbers = {}
        self.known = []

    def number(self, node):
        """Return the number of a variable; add the variable if it is new.

        Parameters
        ----------
        node : NodeDef
            The "VarHandleOp" node of the variable.
        """
        cdef NodeDef native
        cdef Status status
        cdef string text = node.SerializeToString()
        key = tuple([node.attr[name].SerializeToString() for name in _IDENTITY])
        if key not in self.numbers:
            if not native.ParseFromString(text):
                raise ValueError(f"{node.name} cannot be read")
            status = self.native.Add(native)
            if not status.ok():
                raise ValueError(Message(status).decode("utf-8", "replace"))
            self.known.append(None)
            self.numbers[key] = len(self.numbers)
        return self.numbers[key]

    def handles(self, session, which):
        """Look up variables.

        Parameters
        ----------
        session : tf.compat.v1.Session
            The session that has the variables.
        which : list of int
            The numbers of the variables.

        Returns
        -------
        tuple of EagerTensor or None
            A handle for each variable, the same one while the variable exists. None if one of the
            variables has no value, or is not on the session's host.
        """
        cdef Runtime* where = runtime()
        cdef TensorflowSession* native = NULL
        cdef vector[int] wanted = which
        cdef vector[int] changed
        cdef int i
        handle, graph = session._session, session._graph
        if not session._closed:  # with the GIL held: no other thread can close it now
            native = SessionOf(
                <PyObject*>handle, <PyObject*>graph, <PyTypeObject*>_tf_session.PyGraph
            )
        if native == NULL or where.context == NULL:
            return None
        complete = self.native.Find(native, wanted, &changed)
        for i in changed:
            self.known[i] = None
        if not complete:
            return None
        if self.known_for != generation:
            self.known = [None] * len(self.known)
            self.known_for = generation
        for i in wanted:
            if self.known[i] is None:
                self.known[i] = self.handle(where, i)
            if self.known[i] is None:
                return None
        return tuple([self.known[i] for i in wanted])

    cdef object handle(self, Runtime* where, int number):
        cdef Tensor tensor
        cdef Status status = self.native.Handle(number, where[0], &tensor)
        if not status.ok():
            return None
        return WrapHandle(move(tensor), where[0])


cdef tuple _IDENTITY = ("container", "shared_name", "dtype", "shape")
