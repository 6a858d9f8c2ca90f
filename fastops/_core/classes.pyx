"""The versions of classes, and setting attributes without using them up.

CPython gives a class a version when an attribute is looked up in it, and drops the version when an
attribute is set. Caches of the interpreter and guards of fastops compare the version. From CPython
3.13 on a class gets at most 1,000 versions in its life. Without one, the interpreter caches none of
its attributes, and a guard compares objects in each call. `install`, `uninstall` and recordings set
attributes of TensorFlow's classes and restore them, so they give back the versions that they drop.
"""

from cpython.object cimport PyObject, PyTypeObject

from fastops._cpp.classes cimport ClassVersion
from fastops._cpp.python cimport _PyType_Lookup

cdef extern from *:
    """
    // Gives back the version of a class, which the next change of the class drops. Returns whether
    // the class has a version: if not, its subclasses have none either.
    // Read: CPython 3.13, 3.14 (object.h), and of 3.13 set_version_unlocked, assign_version_tag and
    // type_modified_unlocked. In 3.14 a number above the maximum marks a class without a cache.
    static inline bool fastops_give_back(PyTypeObject* type) {
    #if PY_VERSION_HEX >= 0x030d0000 && PY_VERSION_HEX < 0x030f0000 && !defined(Py_GIL_DISABLED)
      constexpr int kMostVersions = 1000;
      if (type->tp_version_tag == 0) return false;
      if (type->tp_versions_used > 0 && type->tp_versions_used <= kMostVersions) {
        --type->tp_versions_used;
      }
      return true;
    #else
      return false;
    #endif
    }
    """
    bint fastops_give_back(PyTypeObject*)

cdef PyObject* _CLASS = <PyObject*>"__class__"


cpdef unsigned int version_of(kind) except? 0:
    """Return the version of a class, which its changes drop; 0 if the class gets none."""
    cdef PyTypeObject* of = <PyTypeObject*>kind
    if ClassVersion(of) == 0:
        _PyType_Lookup(of, _CLASS)  # assigns a version
    return ClassVersion(of)


cpdef int set_attribute(holder, str name, value) except -1:
    """Set an attribute of a module, or of a class, which then has a new version."""
    if isinstance(holder, type):
        _give_back(holder)
    setattr(holder, name, value)
    return 0


cdef int _give_back(kind) except -1:
    if fastops_give_back(<PyTypeObject*>kind):
        for subclass in type.__subclasses__(kind):
            _give_back(subclass)
    return 0
