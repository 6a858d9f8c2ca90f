# Sets an attribute of a module, or of a class, without using up the versions of the class.
cpdef int set_attribute(holder, str name, value) except -1
