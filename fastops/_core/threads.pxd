from fastops._cpp.options cimport Thread

# What is kept for the calling thread, and what new threads start with. There is one of each in the
# process: C++ code that asked for them itself would get those of its own extension.
cdef Thread* this_thread() noexcept
cdef Thread* default_thread() noexcept
