# The C++ helpers beside this file.
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t
from libcpp cimport bool
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastops._tf.eager cimport EagerContext, TFE_TensorHandle
from fastops._tf.protos cimport AttrDef, DataType, NodeDef, OpDef
from fastops._tf.status cimport Status
from fastops._tf.tensor cimport Tensor, TensorValue


cdef extern from "tensorflow/core/common_runtime/device.h" namespace "tensorflow":
    cdef cppclass Device:
        pass


cdef extern from "handle.h" namespace "fastops":
    enum InputState "fastops::InputState":
        kReady "fastops::InputState::kReady"
        kForeign "fastops::InputState::kForeign"
        kRemote "fastops::InputState::kRemote"
        kOtherDevice "fastops::InputState::kOtherDevice"
        kNotReady "fastops::InputState::kNotReady"
        kPoisoned "fastops::InputState::kPoisoned"

    bool IsEagerTensor(PyObject*)
    # Borrows the tensor of one that is ready.
    InputState Inspect(TFE_TensorHandle*, const Device* host, const Tensor**)
    DataType HandleDtype(TFE_TensorHandle*)
    # Borrowed; null for what is not an EagerTensor on the host, computed.
    const Tensor* HostTensor(PyObject*)
    object Wrap(Tensor, Device*, EagerContext*)


cdef extern from "runtime.h" namespace "fastops":
    cdef cppclass Runtime:
        PyObject* py_context
        EagerContext* context
        Device* host
        bool only_host
        const char* host_name
        void Clear()
        bool Capture(PyObject*)
        bool Current(PyObject*)

    bool IsCustom(const Runtime&, const string&)
    bool PlacedOnHost(const Runtime&, const NodeDef&, const string&)
    bool Remote(const Runtime&)
    bool Async(const Runtime&)
    bool Observed(const Runtime&)
    bool OneDnnEnabled()
    const char* UnknownKernels()


cdef extern from "opdef.h" namespace "fastops":
    enum InputKind "fastops::InputArg::Kind":
        kSingle "fastops::InputArg::kSingle"
        kHomogeneous "fastops::InputArg::kHomogeneous"
        kHeterogeneous "fastops::InputArg::kHeterogeneous"

    cdef cppclass InputArg:
        string name
        string type_attr
        string number_attr
        string list_attr
        InputKind kind
        DataType fixed
        DataType fallback
        int attr

    enum Structure "fastops::OpFacts::Structure":
        kNone "fastops::OpFacts::kNone"
        kTensor "fastops::OpFacts::kTensor"
        kList "fastops::OpFacts::kList"
        kTuple "fastops::OpFacts::kTuple"

    cdef cppclass OpFacts:
        const OpDef* definition "def"
        vector[InputArg] inputs
        int num_lists
        bool stateful
        Structure structure

    cdef cppclass DataTypeVector "tensorflow::DataTypeVector":
        size_t size()
        DataType& operator[](size_t)

    bool IsHandleType(DataType)
    bool Describe(const string&, OpFacts*)
    const AttrDef* FindAttr(const OpFacts&, const string&)
    int OutputTypes(const NodeDef&, const OpFacts&, DataTypeVector*)
    int OutputLength(const NodeDef&, const OpFacts&, int)


cdef extern from "kernel.h" namespace "fastops":
    cdef cppclass PreparedKernel:
        @staticmethod
        unique_ptr[PreparedKernel] Make(
            const Runtime&, NodeDef, int, bool, bool, Status*
        ) except +
        # 0, 1 with a status, or -1 with a Python exception
        int Run(const TensorValue*, bool, PyObject**, Status*, int64_t*) except +
        bool RunUnwrapped(const TensorValue*, Tensor*, int64_t*) except +
        int num_outputs()


cdef extern from "capi.h" namespace "fastops":
    cdef cppclass CachedOp:
        CachedOp(EagerContext*, const NodeDef&, int)
        # 0, 1 with a status, or -1 with a Python exception
        int Run(TFE_TensorHandle**, int, const char*, PyObject**, Status*) except +
        int num_outputs()


cdef extern from "options.h" namespace "fastops":
    enum Path "fastops::Path":
        kAuto "fastops::Path::kAuto"
        kDirect "fastops::Path::kDirect"
        kCapi "fastops::Path::kCapi"
        kTensorflow "fastops::Path::kTensorflow"

    enum OnFallback "fastops::OnFallback":
        kIgnore "fastops::OnFallback::kIgnore"
        kWarn "fastops::OnFallback::kWarn"
        kLog "fastops::OnFallback::kLog"
        kRaise "fastops::OnFallback::kRaise"

    cdef cppclass Options:
        Path path
        OnFallback on_fallback
        bool onednn

    cdef cppclass Thread:
        Options options
        PyObject* underway
        PyObject* recorder
        PyObject* measurement

    Thread& ThisThread()
    Thread& DefaultThread()


cdef extern from "timer.h" namespace "fastops":
    int64_t Nanoseconds()


cdef extern from "frame.h" namespace "fastops":
    const int FRAME_INPUTS "fastops::Frame::kInputs"
    const int FRAME_UNWRAPPED "fastops::Frame::kUnwrapped"

    cdef cppclass Frame:
        int size
        int num_unwrapped
        size_t bytes
        TensorValue* tensors
        PyObject** objects
        TFE_TensorHandle** handles
        int* list_lengths
        unsigned char* signature
        size_t signature_size
        Frame()
        void Reset(int num_inputs, int num_lists)
        InputState Add(PyObject*, Device*)
        void AddUnwrapped(Tensor)
        void BeginList(int)
        void Own(PyObject*)
        bool SameSignature(const char*, size_t)


cdef extern from "text.h" namespace "fastops":
    string Message(const Status&)
    int RaiseNotOk(const Status&, const string&, const string&) except -1


cdef extern from "traces.h":
    pass


cdef extern from "gradient.h" namespace "fastops":
    cdef cppclass Sizes:
        Sizes()
        size_t size()
        void push_back(int64_t)
        int64_t& operator[](size_t)

    bool IsLocal(PyObject*)
    Sizes ShapeOf(const Tensor&)
    bool HasShape(const Tensor&, PyObject*)
    bool IntsOf(const Tensor&, Sizes*)
    bool ReducedAxes(const Sizes&, const Sizes&, Sizes*, Sizes*)
    # New references.
    object IntTensor(const Sizes&, DataType, int)
    object OnesLike(const Tensor&)


cdef extern from "graph.h" namespace "fastops":
    Status ExecutedGraphs(
        const Runtime&, const NodeDef&, const vector[TFE_TensorHandle*]&, vector[string]*
    ) except +


cdef extern from "plan.h" namespace "fastops":
    enum StepKind "fastops::Step::Kind":
        kKernel "fastops::Step::kKernel"
        kRead "fastops::Step::kRead"
        kCopy "fastops::Step::kCopy"
        kSwitch "fastops::Step::kSwitch"
        kMerge "fastops::Step::kMerge"
        kLoop "fastops::Step::kLoop"
        kNothing "fastops::Step::kNothing"

    cdef cppclass Step:
        StepKind kind
        int number
        string name
        unique_ptr[PreparedKernel] kernel
        vector[int] inputs
        vector[int] outputs
        vector[int] shared
        vector[int] releases
        vector[int] needs
        int control
        vector[Step] enters
        vector[Step] body
        vector[Step] exits
        vector[int] entered
        vector[int] current
        vector[int] next
        int condition

    cdef cppclass Times:
        vector[int64_t] runs
        vector[int64_t] ns

    cdef cppclass Borrowed:
        Borrowed()
        size_t size()
        void push_back(const Tensor*)

    cdef cppclass Made:
        Made()
        size_t size()
        Tensor& operator[](size_t)

    cdef cppclass NativePlan "fastops::Plan":
        vector[Step] steps
        vector[int] arguments
        vector[int] results
        vector[int] transient
        bool conditional
        Times times
        void Resize(int)
        Status Fix(const PreparedKernel&, int) except +
        void Hold(int, const Tensor&)
        # Borrows the inputs.
        Status Run(
            const Borrowed&, bool release_gil, bool measured, Made*, const Step** failed
        ) except +


cdef extern from "signature.h" namespace "fastops":
    cdef cppclass KnownClasses:
        PyTypeObject* variable
        PyTypeObject* array
        PyTypeObject* array_scalar
        PyTypeObject* dtype
        PyTypeObject* iterator
        PyObject* handle
        PyObject* trainable
        PyObject* number
        PyObject* iterated
        PyObject* copy
        PyObject* describe_iterator

    KnownClasses& Known()

    cdef cppclass Signature:
        Signature()
        # False, without an exception, where only TensorFlow can tell.
        bool Read(const Runtime&, PyObject* const*, Py_ssize_t, PyObject*)
        bool Is(const char*, size_t)
        const char* data()
        size_t size()
        size_t num_leaves()
        const Tensor* leaf(size_t)
        PyObject* object(size_t)


cdef extern from "session.h" namespace "fastops":
    cdef cppclass Session "tensorflow::Session":
        pass

    # Null, without an exception, unless it is that of the graph. The last is `PyGraph`.
    Session* SessionOf(PyObject* session, PyObject* graph, PyTypeObject*)

    cdef cppclass NativeSessionVariables "fastops::SessionVariables":
        Status Add(const NodeDef&) except +
        bool Find(Session*, const vector[int]&, vector[int]* changed) except +
        Status Handle(int, const Runtime&, Tensor*) except +

    object WrapHandle(Tensor, const Runtime&)
