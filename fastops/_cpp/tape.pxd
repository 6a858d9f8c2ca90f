from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libcpp cimport bool
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastops._cpp.plan cimport Made
from fastops._cpp.runtime cimport Runtime
from fastops._tf.tensor cimport Tensor


cdef extern from "declarations.h" namespace "fastops":
    cdef cppclass RecordedOp:
        RecordedOp(const string& name) except +

    # Never freed.
    const RecordedOp* RecordedOpNamed(const string& name)

    # Everything is borrowed. None stands for a tensor that the gradient does not need.
    cdef cppclass TapeRecord:
        const RecordedOp* op
        PyObject* op_name
        PyObject* attrs
        int num_inputs
        int num_outputs
        bool keeps_inputs
        bool keeps_outputs
        PyObject** inputs()
        PyObject** outputs()

    # New reference. Null with a Python exception.
    ctypedef PyObject* (*GradientOfRecord)(
        TapeRecord* record, PyObject** grads, int num_grads, const vector[int64_t]& unneeded
    ) except NULL

    GradientOfRecord gradient_of_record

    bool LoneTapeRecords()
    bool CanKeep(const Tensor&)
    # New reference. Null with a Python exception.
    PyObject* NewKeptValue(Tensor&&, const Runtime*) except NULL
    # These take EagerTensors and kept values. Borrowed.
    PyObject* Unkept(PyObject*) except NULL
    const Tensor* TapeTensorOf(PyObject*)
    const void* TapeDevice(PyObject*)

    bool RecordOnTapes(const RecordedOp& op, PyObject* op_name, PyObject* attrs, PyObject** inputs,
                       int num_inputs, PyObject** outputs, int num_outputs)
    bool RecordCustomOnTapes(const RecordedOp& op, PyObject* op_name, PyObject* maker,
                             bool described, PyObject** kept, int num_kept, PyObject** inputs,
                             int num_inputs, PyObject** outputs, int num_outputs)
    const void* SpaceOfTensorFlow()

    # What tapes record of a replay. Names, attributes, constants and the kind are borrowed.
    cdef cppclass ReplaySteps:
        vector[PyObject*] constants
        vector[int] shown
        int first_made
        int first_constant
        const Runtime* runtime
        PyObject* kind
        void AddOp(const RecordedOp*, PyObject* name, PyObject* attrs, const vector[int]& inputs,
                   const vector[int]& outputs) except +
        void AddCustom(const RecordedOp*, PyObject* name, PyObject* maker, const vector[int]& kept,
                       const vector[int]& inputs, const vector[int]& outputs) except +

    bool RecordCall(ReplaySteps*, PyObject* owner, PyObject** values, Made*) except +
    bool ExpandCalls(PyObject* tape) except *
    int64_t num_expanded_calls "fastops::CallRecord::num_expanded"

    # The tensors are EagerTensors and others, of which `ObjectAt` makes EagerTensors. Borrowed.
    # Only `fastops._core.tapes` calls `ObjectAt` and `Describe`, since each module has kept values
    # of its own.
    cdef cppclass WalkShape:
        WalkShape()
        bool Read(PyObject* tape, const vector[PyObject*]& targets,
                  const vector[PyObject*]& sources, size_t most)
        bool AddMore(const vector[PyObject*]& tensors)
        const char* data()
        size_t size()
        size_t num_tensors()
        bool IsObject(size_t)
        const Tensor* TensorAt(size_t)
        PyObject* ObjectAt(size_t) except NULL
        size_t num_bytes()
        size_t num_records()
        size_t num_calls()
        void Describe(vector[PyObject*]* attrs, vector[PyObject*]* op_names,
                      vector[PyObject*]* kinds) except +
