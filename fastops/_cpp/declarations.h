// What every module may know of TensorFlow and of the classes here, without TensorFlow's headers:
// to read those takes ten times as long as to compile the module. Who looks into what is only
// declared here includes definitions.h.
#ifndef FASTOPS_CPP_DECLARATIONS_H_
#define FASTOPS_CPP_DECLARATIONS_H_

#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

struct TFE_TensorHandle;

// Of lib_pywrap_tensorflow_common: pywrap_tensor.cc, pywrap_tfe.h.
extern "C" PyTypeObject* EagerTensorType;
PyObject* TFE_Py_TapeSetIsEmpty();
void TFE_Py_TapeSetStopOnThread();
void TFE_Py_TapeSetRestartOnThread();
void TFE_Py_TapeWatch(PyObject* tape, PyObject* tensor);
void TFE_Py_TapeVariableAccessed(PyObject* variable);
void TFE_Py_VariableWatcherVariableAccessed(PyObject* variable);

namespace tensorflow {
class Device;
class EagerContext;
class NodeDef;
class OpDef;
class Tensor;
enum DataType : int;
}  // namespace tensorflow

namespace fastops {

class CachedOp;
class Frame;
class PlacedKernel;
class PlacedKernels;
class PreparedKernel;
struct Runtime;

// TensorFlow's numbers of dtypes; opdef.h holds them against its own.
#define FASTOPS_DTYPES(APPLY) \
  APPLY(DT_INVALID, 0)        \
  APPLY(DT_FLOAT, 1)          \
  APPLY(DT_DOUBLE, 2)         \
  APPLY(DT_INT32, 3)          \
  APPLY(DT_COMPLEX64, 8)      \
  APPLY(DT_INT64, 9)          \
  APPLY(DT_BOOL, 10)          \
  APPLY(DT_BFLOAT16, 14)      \
  APPLY(DT_COMPLEX128, 18)    \
  APPLY(DT_HALF, 19)          \
  APPLY(DT_RESOURCE, 20)      \
  APPLY(DT_VARIANT, 21)

#define FASTOPS_DTYPE(name, number) constexpr auto name = static_cast<tensorflow::DataType>(number);
FASTOPS_DTYPES(FASTOPS_DTYPE)
#undef FASTOPS_DTYPE

inline bool IsEagerTensor(PyObject* object) { return Py_TYPE(object) == EagerTensorType; }

// Sizes of dimensions, or numbers of axes.
using Sizes = std::vector<int64_t>;

// One input argument of an op. `attr` indexes the op's type attributes, -1 for a fixed type.
struct InputArg {
  enum Kind { kSingle, kHomogeneous, kHeterogeneous };
  std::string name, type_attr, number_attr, list_attr;
  Kind kind = kSingle;
  tensorflow::DataType fixed = DT_INVALID;
  tensorflow::DataType fallback = DT_INVALID;  // the attribute's default
  std::vector<tensorflow::DataType> allowed;   // by the attribute; any where there are none
  int attr = -1;
};

// What the running TensorFlow's OpDef says of an op, in the form that a call needs.
struct OpFacts {
  // What a call returns: nothing, a tensor, a list of them, or a namedtuple of these.
  enum Structure { kNone, kTensor, kList, kTuple };
  const tensorflow::OpDef* def = nullptr;  // owned by TensorFlow's registry, never freed
  std::vector<InputArg> inputs;
  int num_lists = 0;
  bool stateful = false;
  Structure structure = kNone;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_DECLARATIONS_H_
