# distutils: language = c++
"""Records on TensorFlow's tapes, and walks over them.

`_cpp/tape.h` makes the records of ops that fastops runs. They are backward functions of
TensorFlow's own tapes. A walk, TensorFlow's or that of `_cpp/backprop.h`, calls them, and they call
the function that `compute_gradients_by` has set.
"""

from cpython.exc cimport PyErr_Occurred
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t
from libcpp.utility cimport move
from libcpp.vector cimport vector

from fastops._cpp cimport tape as _tape
from fastops._cpp.backprop cimport Backprop
from fastops._cpp.python cimport Py_None
from fastops._cpp.tape cimport (
    CanKeep,
    ExpandCalls,
    LoneTapeRecords,
    NewKeptValue,
    RecordCall,
    RecordCustomOnTapes,
    RecordOnTapes,
    RecordedOp,
    RecordedOpNamed,
    SpaceOfTensorFlow,
    TapeTensorOf,
    Unkept,
    num_expanded_calls,
)
from fastops._cpp.text cimport Message
from fastops._tf.eager cimport TFE_Py_RecordGradient
from fastops._tf.status cimport Status

cdef extern from "definitions.h":
    pass

from tensorflow.python.framework import errors_impl as _errors
from tensorflow.python.ops import gen_math_ops as _gen_math_ops
from tensorflow.python.pywrap_tfe import TFE_Py_TapeSetRecordOperation as _record_operation


cdef const void* _space = SpaceOfTensorFlow()


cdef bint _records = False


cdef int compute_gradients_by(GradientOfRecord function) except -1:
    global _records
    _records = function != NULL
    if function != NULL:  # records that exist still need the last one
        _tape.gradient_of_record = function
    return 0


cdef int record_op(Schema op, tuple attrs, PyObject** inputs, int num_inputs, PyObject** outputs,
                   int num_outputs) except -1:
    cdef PyObject* done
    cdef int i
    if _records and RecordOnTapes(
        deref(recorded_op(op)), <PyObject*>op.op_name, <PyObject*>attrs, inputs, num_inputs,
        outputs, num_outputs,
    ):
        return 0
    given = tuple([<object>unkept(inputs[i]) for i in range(num_inputs)])
    results = [<object>unkept(outputs[i]) for i in range(num_outputs)]
    done = TFE_Py_RecordGradient(
        <PyObject*>op.op_name, <PyObject*>given, <PyObject*>attrs, <PyObject*>results, Py_None
    )
    if done == NULL:
        return -1
    Py_DECREF(<object>done)
    return 0


cdef const RecordedOp* recorded_op(Schema op) except NULL:
    if op.recorded == NULL:
        op.recorded = RecordedOpNamed(op.op_name_bytes)
    return op.recorded


cdef const RecordedOp* new_recorded_function(str name) except NULL:
    return new RecordedOp(name.encode())


cdef void free_recorded_function(const RecordedOp* op) noexcept:
    del op


cdef int record_custom(const RecordedOp* op, str name, object maker, bint described,
                       PyObject** kept, int num_kept, PyObject** inputs, int num_inputs,
                       PyObject** outputs, int num_outputs) except -1:
    if _records and RecordCustomOnTapes(
        deref(op), <PyObject*>name, <PyObject*>maker, described, kept, num_kept, inputs, num_inputs,
        outputs, num_outputs,
    ):
        return 0
    _record_operation(
        name,
        [<object>unkept(outputs[i]) for i in range(num_outputs)],
        [<object>unkept(inputs[i]) for i in range(num_inputs)],
        maker.made([<object>unkept(kept[i]) for i in range(num_kept)]),
        None,
    )
    return 0


cdef PyObject* _add(PyObject* gradients) except NULL:
    # The attribute is looked up in each call, as TensorFlow's function looks it up.
    total = _gen_math_ops.add_n(<object>gradients)
    Py_INCREF(total)
    return <PyObject*>total


cdef int _raise(const Status& status) except -1:
    if PyErr_Occurred() != NULL:
        return -1
    raise _errors._make_specific_exception(
        None, None, Message(status).decode(errors="replace"), status.raw_code()
    )


cdef vector[PyObject*] _items(list values) noexcept:
    cdef vector[PyObject*] items
    cdef Py_ssize_t i
    items.reserve(PyList_GET_SIZE(values))
    for i in range(PyList_GET_SIZE(values)):
        items.push_back(PyList_GET_ITEM(values, i))
    return items


cdef list walk(object tape, list targets, list sources, list seeds, int64_t* num_calls):
    cdef vector[PyObject*] found
    cdef size_t i
    num_calls[0] = 0
    if SpaceOfTensorFlow() != _space:
        return None
    _run(<PyObject*>tape, targets, sources, seeds, &found, num_calls)
    gradients = []
    for i in range(found.size()):
        gradients.append(<object>found[i])
        Py_DECREF(<object>found[i])
    return gradients


cdef int _run(PyObject* tape, list targets, list sources, list seeds, vector[PyObject*]* found,
              int64_t* num_calls) except -1:
    cdef Backprop* backprop = new Backprop(tape, _add)
    cdef Status status
    try:
        status = backprop.Run(_items(targets), _items(sources), _items(seeds), found)
        num_calls[0] = <int64_t>backprop.num_calls()
        if not status.ok():
            _raise(status)
    finally:
        del backprop
    return 0


cdef bint describe_walk(object tape, list targets, list sources, list seeds, size_t most,
                        WalkShape* shape) except -1:
    return SpaceOfTensorFlow() == _space and (
        shape.Read(<PyObject*>tape, _items(targets), _items(sources), most)
        and shape.AddMore(_items(seeds))
    )


cdef int describe_ops(const WalkShape& shape, vector[PyObject*]* attrs, vector[PyObject*]* op_names,
                      vector[PyObject*]* kinds) except -1:
    shape.Describe(attrs, op_names, kinds)
    return 0


cdef PyObject* object_at(const WalkShape& shape, size_t i) except NULL:
    return shape.ObjectAt(i)


cdef int64_t expand_calls(object tape) except -1:
    cdef int64_t before = num_expanded_calls
    ExpandCalls(<PyObject*>tape)
    return num_expanded_calls - before


cdef bint record_call(ReplaySteps* steps, object owner, PyObject** values, Made* made) except -1:
    return RecordCall(steps, <PyObject*>owner, values, made)


cdef bint may_keep() noexcept:
    return _records and LoneTapeRecords()


cdef PyObject* keep(Tensor& tensor, const Runtime* runtime) except? NULL:
    return NewKeptValue(move(tensor), runtime) if CanKeep(tensor) else NULL


cdef PyObject* unkept(PyObject* value) except NULL:
    return Unkept(value)


cdef const Tensor* tensor_at(PyObject* value) noexcept:
    return TapeTensorOf(value)
