from cpython.object cimport PyObject, PyTypeObject
from libcpp cimport bool
from libcpp.string cimport string

from fastops._cpp.runtime cimport Runtime
from fastops._tf.tensor cimport Tensor


cdef extern from "declarations.h" namespace "fastops":
    enum ClassUse "fastops::ClassUse":
        kRefused "fastops::ClassUse::kRefused"
        kIdentity "fastops::ClassUse::kIdentity"
        kNamedTuple "fastops::ClassUse::kNamedTuple"

    cdef cppclass KnownClasses:
        PyTypeObject* variable
        PyTypeObject* array
        PyTypeObject* array_scalar
        PyTypeObject* dtype
        PyTypeObject* iterator
        PyTypeObject* lazy_iterator
        PyTypeObject* shape
        PyObject* composites
        PyObject* scalars
        PyObject* objects
        PyObject* handle
        PyObject* static_shape
        PyObject* trainable
        PyObject* cached
        PyObject* caching
        PyObject* number
        PyObject* iterated
        PyObject* dims
        PyObject* copy
        PyObject* describe_iterator
        ClassUse (*use_of)(PyTypeObject*) noexcept
        PyObject* tracing_names

    KnownClasses& Known()

    # Policies: what a signature takes.
    cdef cppclass OfTraces:
        pass
    cdef cppclass OfRecordings:
        pass
    cdef cppclass OfMethods:
        pass

    cdef cppclass Signature:
        Signature()
        # Returns false, without an exception, if the policy refuses an argument.
        bool Read[Policy](
            const Runtime&, PyObject* const*, Py_ssize_t, PyObject*, PyTypeObject*
        )
        void Append(const Tensor*, PyObject*)
        bool Is(const char*, size_t)
        const char* data()
        size_t size()
        string OfAnyBatch()
        size_t num_leaves()
        const Tensor* leaf(size_t)
        PyObject* object(size_t)
        PyObject* variable(size_t)
        size_t num_identities()
        PyObject* identity(size_t)
        size_t num_holders()
        PyObject* holder(size_t)

    # The call that a signature stands for, as text; empty if the bytes are no signature.
    string Print[Policy](const char*, size_t, const Runtime&) except +
