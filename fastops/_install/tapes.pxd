# What a variable of a library's holds; None where that is not known.
ctypedef object (*held_t)(object variable)

# Names the class of such variables, by instances of which tapes are asked.
cdef int set_holder(object kind, held_t held) except -1
