# tensorflow/core/framework/{attr_value,node_def,tensor_shape,op_def}.pb.h
from libc.stdint cimport int64_t
from libcpp cimport bool
from libcpp.string cimport string


cdef extern from "declarations.h" namespace "fastops" nogil:
    ctypedef enum DataType "tensorflow::DataType":
        DT_BFLOAT16
        DT_BOOL
        DT_COMPLEX64
        DT_COMPLEX128
        DT_DOUBLE
        DT_FLOAT
        DT_HALF
        DT_INT32
        DT_INT64
        DT_INVALID
        DT_RESOURCE
        DT_VARIANT


cdef extern from "declarations.h" namespace "tensorflow" nogil:
    cdef cppclass ShapeDim "tensorflow::TensorShapeProto::Dim":
        void set_size(int64_t)

    cdef cppclass TensorShapeProto:
        ShapeDim* add_dim()
        void set_unknown_rank(bool)


cdef extern from "declarations.h" namespace "tensorflow" nogil:
    cdef cppclass AttrList "tensorflow::AttrValue::ListValue":
        void add_s(const string&)
        void add_i(int64_t)
        void add_f(float)
        void add_b(bool)
        void add_type(DataType)
        TensorShapeProto* add_shape()

    cdef cppclass AttrValue:
        AttrValue()
        void set_s(const string&)
        void set_i(int64_t)
        void set_f(float)
        void set_b(bool)
        void set_type(DataType)
        TensorShapeProto* mutable_shape()
        AttrList* mutable_list "mutable_list"()


cdef extern from "declarations.h" namespace "google::protobuf" nogil:
    cdef cppclass AttrMap "google::protobuf::Map<std::string, tensorflow::AttrValue>":
        AttrValue& operator[](const string&)


cdef extern from "declarations.h" namespace "tensorflow" nogil:
    cdef cppclass NodeDef:
        NodeDef()
        bool ParseFromString(const string&)
        void set_name(const string&)
        void set_op(const string&)
        void add_input(const string&)
        AttrMap* mutable_attr()


cdef extern from "declarations.h" namespace "tensorflow" nogil:
    cdef cppclass AttrDef "tensorflow::OpDef::AttrDef":
        const string& name()
        const string& type()
        bool has_default_value()

    cdef cppclass OpDef:
        const string& name()
        int input_arg_size()
        int output_arg_size()
        int attr_size()
        const AttrDef& attr(int)
