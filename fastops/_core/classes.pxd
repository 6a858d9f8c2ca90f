# The version of a class: no other class has had it, and each change of the class or of one of its
# bases drops it. 0: the class gets none.
cpdef unsigned int version_of(kind) except? 0
# Sets an attribute of a module, or of a class, without using up the versions of the class.
cpdef int set_attribute(holder, str name, value) except -1
