from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from fastops._core.schema cimport Schema
from fastops._cpp.plan cimport Made
from fastops._cpp.runtime cimport Runtime
from fastops._cpp.tape cimport GradientOfRecord, RecordedOp, ReplaySteps, WalkShape
from fastops._tf.tensor cimport Tensor

# Records a call of an op on the tapes and accumulators of this thread. All tensors are EagerTensors
# or kept values.
cdef int record_op(Schema op, tuple attrs, PyObject** inputs, int num_inputs, PyObject** outputs,
                   int num_outputs) except -1
# Stands for a function with a custom gradient. It must outlive its records.
cdef const RecordedOp* new_recorded_function(str name) except NULL
cdef void free_recorded_function(const RecordedOp* op) noexcept
# Records a call of a function with a custom gradient. `op` stands for the function, and `name` is
# its name. `kept` are the tensors that the gradient needs. All tensors are EagerTensors or kept
# values. `maker.made` returns the gradient function, given the kept tensors. `described`: calls
# with the same maker, and kept tensors of the same kinds, have the same gradients.
cdef int record_custom(const RecordedOp* op, str name, object maker, bint described,
                       PyObject** kept, int num_kept, PyObject** inputs, int num_inputs,
                       PyObject** outputs, int num_outputs) except -1
# Sets the function that computes the gradients of records. With null, TensorFlow makes the records
# from now on.
cdef int compute_gradients_by(GradientOfRecord function) except -1
# Walks over a tape, which is TensorFlow's object, and returns the gradients of the sources; None if
# TensorFlow has to walk. All items are EagerTensors on this machine. `num_calls` is set to the
# number of replayed calls that the walk has passed op by op.
cdef list walk(object tape, list targets, list sources, list seeds, int64_t* num_calls)
# Describes such a walk over at most `most` records. Returns False if it has no description.
cdef bint describe_walk(object tape, list targets, list sources, list seeds, size_t most,
                        WalkShape* shape) except -1

# Replaces the records of replayed calls on a tape by those of their ops, which TensorFlow's walk
# needs. Returns how many there were.
cdef int64_t expand_calls(object tape) except -1

# Records a replayed call as one record on the only tape of this thread. `values` has the given
# values, and those that Python sees; `made` all others that the replay has made. Returns False if
# the ops have to be recorded one by one. The caller checks `may_keep`.
cdef bint record_call(ReplaySteps* steps, object owner, PyObject** values, Made* made) except -1
# Appends the attributes (the maker, if it has a custom gradient) and the names of the ops that a
# walk passes, and what stands for its calls. Borrowed.
cdef int describe_ops(const WalkShape& shape, vector[PyObject*]* attrs, vector[PyObject*]* op_names,
                      vector[PyObject*]* kinds) except -1
# The EagerTensor of a tensor of a walk. Borrowed.
cdef PyObject* object_at(const WalkShape& shape, size_t i) except NULL

# What stands for an op in records.
cdef const RecordedOp* recorded_op(Schema op) except NULL
# Whether records may keep values that Python has not seen, instead of EagerTensors.
cdef bint may_keep() noexcept
# Makes a kept value of a tensor, which is moved, as a new reference; null if it must be wrapped.
cdef PyObject* keep(Tensor& tensor, const Runtime* runtime) except? NULL
# The EagerTensor of a kept value, or the EagerTensor itself. Borrowed.
cdef PyObject* unkept(PyObject* value) except NULL
# The tensor of an EagerTensor on this machine, or of a kept value. Borrowed.
cdef const Tensor* tensor_at(PyObject* value) noexcept
