// Declarations from TensorFlow and from this folder that need none of TensorFlow's headers. Parsing
// those headers takes ten times as long as compiling a module. A module that needs the definitions
// includes definitions.h.
#ifndef FASTOPS_CPP_DECLARATIONS_H_
#define FASTOPS_CPP_DECLARATIONS_H_

#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

struct TFE_TensorHandle;

// From lib_pywrap_tensorflow_common: pywrap_tensor.cc, pywrap_tfe.h.
extern "C" PyTypeObject* EagerTensorType;
PyObject* TFE_Py_TapeSetNew(PyObject* persistent, PyObject* watch_accessed_variables);
void TFE_Py_TapeSetRemove(PyObject* tape);
PyObject* TFE_Py_TapeWatchedVariables(PyObject* tape);
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
class RecordedOp;
class RowPlan;
class RowReader;
class RowSource;
class SeedLog;
class SeedPairs;
class SeededKernel;
class WalkShape;
struct Runtime;

// TensorFlow's numbers of dtypes. opdef.h checks them against TensorFlow's header.
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

// One input argument of an op. `attr` is the index of its type attribute; -1 for a fixed type.
struct InputArg {
  enum InputKind { kSingle, kHomogeneous, kHeterogeneous };
  std::string name, type_attr, number_attr, list_attr;
  InputKind kind = kSingle;
  tensorflow::DataType fixed = DT_INVALID;
  tensorflow::DataType fallback = DT_INVALID;  // the attribute's default
  std::vector<tensorflow::DataType> allowed;   // by the attribute; empty: all
  int attr = -1;
};

// The facts from an op's OpDef in the running TensorFlow, in the form that calls need.
struct OpFacts {
  // The result of a call: none, a tensor, a list of tensors, or a namedtuple of these.
  enum Structure { kNone, kTensor, kList, kTuple };
  const tensorflow::OpDef* def = nullptr;  // owned by TensorFlow's registry, never freed
  std::vector<InputArg> inputs;
  int num_lists = 0;
  bool stateful = false;
  Structure structure = kNone;
};

// A call of an op on a tape. Tapes that are nested share it. The GIL is held wherever it is used.
struct TapeRecord {
  int references;
  const RecordedOp* op;
  PyObject* op_name;
  // Names and values, alternating. The record of a custom gradient has an object here whose method
  // `made` returns the gradient function, given a list of the inputs.
  PyObject* attrs;
  int num_inputs, num_outputs;
  bool keeps_inputs, keeps_outputs;  // whether its gradient needs any of them
  bool described;  // whether equal attributes, and tensors of equal kinds, mean the same gradient
  PyObject* tensors[1];  // inputs and outputs; None for one that is not needed

  PyObject** inputs() { return tensors; }
  PyObject** outputs() { return tensors + num_inputs; }
};

// Computes the gradients of a record's inputs. `grads` are those of its outputs, None for one that
// is missing, and `unneeded` the numbers of inputs whose gradients are not needed. Returns a new
// reference to a tensor, None, or a list or tuple of these; null with a Python exception.
using GradientOfRecord = PyObject* (*)(TapeRecord* record, PyObject** grads, int num_grads,
                                       const std::vector<int64_t>& unneeded);

}  // namespace fastops

#endif  // FASTOPS_CPP_DECLARATIONS_H_
