from libc.stdint cimport int64_t

# What bounds the knowledge about calls: one line for each limit, with what it bounds. The parts
# below `_specialize`, such as `_core`, have limits of their own.
cpdef enum:
    # How much is kept of what was learned: numbers of entries of caches, if nothing else is said.
    MAX_FUNCTION_SIGNATURES = 256      # of one function
    MAX_OBJECT_SIGNATURES = 64         # of one object, in one state
    MAX_OBJECT_STATES = 4              # of one object: sets of attributes that it switches between
    MAX_TEMPLATES = 4                  # of one class: contents whose objects share recordings
    MAX_VARIANTS = 4                   # recordings of one signature that differ by tensor values
    MAX_SESSION_RUNS = 256             # sets of feeds and fetches of one session
    MAX_CLASSES = 1024                 # classes about which something is remembered
    MAX_SHARED_GUARDS = 256            # guards that recordings of the same library code share
    MAX_VARIABLE_KINDS = 256           # kinds of variables that are made from a template
    MAX_BATCH_KINDS = 64               # kinds of datasets of arrays
    MAX_ORDERS_BYTES = 16777216        # of the orders of rows that datasets of arrays have drawn
    MAX_LAYER_CLASSES = 4096           # classes of layers, and signatures of their methods `call`
    MAX_DECORATED = 4096               # functions whose signatures TensorFlow's decorators ask for
    MAX_OPTIONAL_SPECS = 64            # structures of optional values
    MAX_EQUATIONS = 1024               # equations of einsum, with those of their gradients
    MAX_STATIC_STEPS = 4096            # kinds of steps: whether input sizes decide output sizes
    MAX_OP_SETS = 16                   # sets of `Op` objects that the replays of objects share
    MAX_BACKEND_SETTINGS = 64          # settings of Keras for which the backend keeps functions
    MAX_CALL_OPTIONS = 16              # call options objects of a function, one for each thread
    MAX_CLOSURES = 1024                # functions that custom gradients make
    MAX_BODIES = 64                    # functions called for elements, with kinds of elements
    MAX_BODY_TRACES = 4                # of one function: traces that differ in constants
    MAX_WALKS = 256                    # shapes of walks over tapes
    MAX_RECORDED_OPS = 1024            # kinds of records whose gradient functions are replayed
    MAX_CODES = 4096                   # code objects and classes of users that were read
    MAX_LIBRARY_CODES = 8192           # code objects of libraries that were read
    MAX_MODULES = 4096                 # names of modules: whether they belong to known libraries
    # How much is recorded.
    MAX_FUNCTION_OPS = 512             # of one call of a function
    MAX_OBJECT_OPS = 32768             # of one call of an object's method, or one walk over a tape
    MAX_UNSHARED_OPS = 256             # with more ops, steps of simple ops share kernels
    MAX_VALUE_BYTES = 65536            # of one value that is compared, or of one constant result
    MAX_CONSTANT_BYTES = 1048576       # of one constant that is an input of an op
    MAX_WAITING_BYTES = 16777216       # of the values that the assignments of one call wait with
    MAX_WALK_RECORDS = 2048            # of one tape whose walks are recorded
    MAX_WALK_BYTES = 16777216          # of the tensors that the records of one walk keep
    MAX_OP_TENSORS = 32                # of one record whose gradient function is replayed
    MAX_GUARDED_PLACES = 50000         # places of one object that are compared
    MAX_SHARED_PARTS = 256             # objects in one object that shares recordings
    MAX_CALL_DEPTH = 3                 # calls below a function in which names are compared
    MAX_PLAIN_DEPTH = 8                # of nested values that code of users reads, or closures hold
    MAX_READ_DEPTH = 4                 # calls below a function of users whose code is read
    MAX_HELD_DEPTH = 4                 # of nested values in which a function has its variables
    MAX_NESTING = 64                   # of structures that are flattened and packed
    MAX_COUNTED_TRACES = 32            # of the newest traces of a function: their nodes are counted
    MAX_BATCH_BYTES = 1048576          # of one batch of arrays; tf.data is faster for larger ones
    MAX_BLOCK_BYTES = 1048576          # of the batches that are cut at once
    MAX_ELEMENT_ROWS = 256             # of one element of a dataset that the calling thread makes
    MAX_ELEMENT_BYTES = 65536          # of one element that the calling thread makes
    MAX_COPIED_ROWS = 16384            # of one element that the calling thread copies from rows
    MAX_COPIED_BYTES = 4194304         # of one element that the calling thread copies from rows
    MAX_MAPPED_NS = 100000             # of the functions that are mapped over one element
    MAX_MAPPED_ROW_NS = 4000           # of the functions that are mapped over one of its rows
    MAX_HELD_BYTES = 67108864          # of arrays that are put in order when a graph iterates
    # When to use what was learned.
    MIN_ALIKE_VARIABLES = 2            # of one kind, before fastops makes the others like them
    # When to give up.
    MAX_FUNCTION_FAILURES = 8          # failed recordings of one function
    MAX_BRANCH_REPEATS = 12            # recordings in a row of known branches, while others miss
    MAX_OBJECT_FAILURES = 4            # failed recordings of one object
    MAX_FUNCTION_CASE_FAILURES = 1     # failed recordings of one signature of a function
    MAX_OBJECT_CASE_FAILURES = 2       # failed recordings of one signature of an object
    MAX_REFUSED_OBJECTS = 8            # objects of one class that were given up
    MAX_STATE_CHANGES = 16             # of one object, without a usable recording in between
    MAX_GUARD_MISSES = 8               # in a row, after which the recordings are dropped
    MAX_KERNEL_SEARCHES = 4            # runs of one recording that look for its kernels
    MAX_DOUBLINGS = 20                 # of a bar, by recordings or plans that were of no use
    MAX_MAPPED_TRIALS = 4              # runs of mapped functions that show whether these are slow
    MAX_BODY_FAILURES = 4              # traces of one function that no later call could use
    MAX_WAIT = 4                       # times the bar; then the calls inside get accounts, too
    # How much profiles and verification keep and show.
    MAX_PROFILED_TIMES = 200000        # times of calls of one function in a profile
    MAX_PROFILED_FRAMES = 2000000      # begins and ends of Python functions in a profile
    MAX_DIFFERENCES = 100              # calls that differ, which verification keeps
    MAX_VERIFIED_GRADIENTS = 16        # sources, and targets, for which gradients are compared
    MAX_COMPARED_DEPTH = 8             # of nested results that verification compares
    MAX_SHOWN_ARGUMENTS = 12           # of a call that is described
    MAX_SHOWN_ITEMS = 6                # of a list or tuple among them
    MAX_SHOWN_OPS = 40                 # of a recording that is described
    MAX_SHOWN_TEXT = 80                # characters of an argument
    # When to run without the GIL.
    LONG_RUN_NS = 20000                # kernels that take longer let other threads run
    # When to time a plan against TensorFlow's executor, which runs nodes in parallel.
    TIMED_PLAN_NS = 100000             # plans that take longer
    MIN_TIMED_CALLS = 3                # calls of each that are timed

# Nanoseconds of a clock that never goes back. Tests may set another clock.
cdef int64_t now() except? -1

# Whether this thread is in a call that covers the calls inside it. `cover` sets this, and returns
# the previous value.
cdef bint is_covered() noexcept
cdef bint cover(bint value) noexcept


# Whether calls have waited too long for a recording of this expected cost.
cdef bint is_overdue(int64_t waited_ns, int64_t cost_ns) noexcept


# The expected cost of a recording or plan, in proportion to a size that is known before.
cdef class Estimate:
    cdef readonly str name
    cdef readonly double start      # the starting figure: nanoseconds for a unit of size
    cdef public double per_unit     # the current one

    cdef int64_t of(self, double size) noexcept
    cdef void learn(self, double size, int64_t ns) noexcept


# How many failures are allowed.
cdef class Budget:
    cdef readonly int failures     # since the last success
    cdef int most
    cdef bint proven
    cdef bint lifted

    # Counts a failure. True if no more are allowed.
    cdef bint fail(self) noexcept
    # Counts a success: the count of failures restarts, and twice as many are allowed.
    cdef void succeed(self) noexcept
    # Allows any number of failures from now on.
    cdef void lift(self) noexcept
    cdef bint is_spent(self) noexcept


# The time of calls that a recording or plan could have saved.
cdef class Account:
    cdef readonly long long calls
    cdef readonly int64_t shortest_ns   # time of the shortest call
    cdef readonly int drops             # of recordings or plans that were of no use

    cdef void charge(self, int64_t ns) noexcept
    cdef int64_t spent(self) noexcept
    cdef bint is_due(self, int64_t cost_ns) noexcept
    cdef bint is_due_by_share(self, int64_t cost_ns, double saved_ns, double least) noexcept
    cdef void begin(self, int64_t cost_ns, double saved_ns, bint anew) noexcept
    cdef void restart(self) noexcept
    cdef void drop(self) noexcept
    cdef void forgive(self) noexcept
