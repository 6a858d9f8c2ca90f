from fastops._cpp.options cimport Thread

# The state of the calling thread, and the state that new threads start with. Always use these two
# functions: C++ code that calls ThisThread or DefaultThread gets the state of its own extension
# module, not that of the process.
cdef Thread* this_thread() noexcept
cdef Thread* default_thread() noexcept
