from libcpp cimport bool
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastops._tf.protos cimport AttrDef, DataType, NodeDef, OpDef


cdef extern from "declarations.h" namespace "fastops":
    enum InputKind "fastops::InputArg::InputKind":
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
        vector[DataType] allowed
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
    bool FindsAttributes()
    bool HasLengths(const OpFacts&)
    bool MayBeLength(const OpFacts&, const string&, int)
    int OutputTypes(const NodeDef&, const OpFacts&, DataTypeVector*)
    int OutputLength(const NodeDef&, const OpFacts&, int)
