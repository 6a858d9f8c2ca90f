// The parts of TensorFlow that differ between its versions or are not public: functions that no
// header in the wheel declares, private members, layouts. Only this file and onednn/symbols.h may
// rely on such parts. The latter has those that concern oneDNN.
//
// onednn/symbols.h explains Source, Name and Checked. tests/house/test_symbols.py reads them in
// this file, too.
#ifndef FASTOPS_CPP_COMPAT_H_
#define FASTOPS_CPP_COMPAT_H_

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "declarations.h"
#include "tensorflow/c/c_api_internal.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/tape.h"
#include "tensorflow/c/eager/tfe_context_internal.h"
#include "tensorflow/c/eager/tfe_tensorhandle_internal.h"
#include "tensorflow/core/common_runtime/eager/context.h"
#include "tensorflow/core/common_runtime/eager/kernel_and_device.h"
#include "tensorflow/core/common_runtime/eager/tensor_handle.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/lib/gtl/compactptrset.h"
#include "tensorflow/core/lib/gtl/flatmap.h"
#include "tensorflow/core/lib/random/philox_random.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/util/guarded_philox_random.h"
#include "tensorflow/python/client/session_ref.h"
#include "tensorflow/python/eager/pywrap_gradient_exclusions.h"
#include "tensorflow/python/eager/pywrap_tfe.h"

namespace tensorflow {
// Source: tensorflow/python/eager/pywrap_tensor.cc
// Name: ConvertToEagerTensor
// Checked: 2.19, 2.20, 2.21, 2.22
// Exported by lib_pywrap_tensorflow_common.so. Its header, pywrap_tensor.h, needs NumPy's.
TFE_TensorHandle* ConvertToEagerTensor(TFE_Context* context, PyObject* value, DataType dtype,
                                       const char* device_name);

// Source: tensorflow/python/eager/pywrap_tensor.cc
// Name: ConvertToEagerTensorUncached
// Checked: 2.19, 2.20, 2.21, 2.22
// Like ConvertToEagerTensor, but without the cache of Python numbers. Exported by
// lib_pywrap_tensorflow_common.so, but declared in no header.
TFE_TensorHandle* ConvertToEagerTensorUncached(TFE_Context* context, PyObject* value,
                                               DataType dtype, const char* device_name);

// Source: tensorflow/core/common_runtime/eager/context.cc
// Name: GetCEagerContext
// Checked: 2.19, 2.20, 2.21, 2.22
// Exported by libtensorflow_cc.so.2. Its declaration has moved between headers.
EagerContext* GetCEagerContext();
}  // namespace tensorflow

namespace tsl {
// Source: third_party/xla/xla/tsl/util/determinism.cc
// Name: OpDeterminismRequired
// Checked: 2.19, 2.20, 2.21, 2.22
// Exported by libtensorflow_framework.so.2. The wheel does not ship its header.
bool OpDeterminismRequired();
}  // namespace tsl

// What TensorFlow's tapes are made of: pywrap_tfe_src.cc has these classes and functions, and no
// header declares them. lib_pywrap_tensorflow_common.so exports the functions.

// Source: tensorflow/python/eager/pywrap_tensor.cc
// Name: PyEagerTensor_ID
// Checked: 2.19, 2.20, 2.21, 2.22
// The number by which tapes know a tensor. Its header, pywrap_tensor.h, needs NumPy's.
int64_t PyEagerTensor_ID(const PyObject* tensor);

// Source: tensorflow/python/eager/pywrap_tfe_src.cc
// Name: PyBackwardFunction
// Checked: 2.19, 2.20, 2.21, 2.22
// Gets the gradients of the outputs, and the numbers of the inputs whose gradients are not needed.
using PyBackwardFunction = std::function<PyObject*(PyObject*, const std::vector<int64_t>&)>;

// Source: tensorflow/python/eager/pywrap_tfe_src.cc
// Name: PyTapeTensor
// Checked: 2.19, 2.20, 2.21, 2.22
// What a tape knows about the output of an op. A tensor stands for its own shape if its dtype is
// that of handles.
class PyTapeTensor {
 public:
  PyTapeTensor(int64_t id, tensorflow::DataType dtype, const tensorflow::TensorShape& shape)
      : id_(id), dtype_(dtype), shape_(shape) {}
  PyTapeTensor(int64_t id, tensorflow::DataType dtype, PyObject* tensor)
      : id_(id), dtype_(dtype), shape_(tensor) {
    Py_INCREF(tensor);
  }
  PyTapeTensor(const PyTapeTensor& other)
      : id_(other.id_), dtype_(other.dtype_), shape_(other.shape_) {
    if (shape_.index() == 1) Py_INCREF(std::get<1>(shape_));
  }
  PyTapeTensor& operator=(const PyTapeTensor&) = delete;
  ~PyTapeTensor() {
    if (shape_.index() == 1) Py_DECREF(std::get<1>(shape_));
  }
  int64_t GetID() const { return id_; }
  tensorflow::DataType GetDType() const { return dtype_; }
  // Null for a tensor that stands for its own shape.
  const tensorflow::TensorShape* shape() const { return std::get_if<0>(&shape_); }
  PyObject* OnesLike() const;
  PyObject* ZerosLike() const;

 private:
  int64_t id_;
  tensorflow::DataType dtype_;
  std::variant<tensorflow::TensorShape, PyObject*> shape_;
};

// Source: tensorflow/python/eager/pywrap_tfe_src.cc
// Name: GradientTape
// Checked: 2.19, 2.20, 2.21, 2.22
// The class of a tape, up to its base. No object of it is made.
class GradientTape
    : public tensorflow::eager::GradientTape<PyObject, PyBackwardFunction, PyTapeTensor> {
 public:
  virtual ~GradientTape();
};

// Source: tensorflow/python/eager/pywrap_tfe_src.cc
// Name: TFE_Py_Tape
// Checked: 2.19, 2.20, 2.21, 2.22
// The layout of the Python object of a tape.
struct TFE_Py_Tape {
  PyObject ob_base;
  GradientTape* tape;
  int64_t nesting_id;
};

// Source: tensorflow/python/eager/pywrap_tfe_src.cc
// Name: AccumulatorSet
// Checked: 2.19, 2.20, 2.21, 2.22
// The accumulators of forward mode that are active in a thread.
struct TFE_Py_ForwardAccumulator;
class AccumulatorSet {
 public:
  bool empty() const { return ordered_.empty(); }

 private:
  using List = std::list<TFE_Py_ForwardAccumulator*>;
  tensorflow::gtl::FlatMap<TFE_Py_ForwardAccumulator*, List::iterator> map_;
  List ordered_;
};

// Source: tensorflow/python/eager/pywrap_tfe_src.cc
// Name: GetTapeSet
// Checked: 2.19, 2.20, 2.21, 2.22
// The tapes that are active in this thread. Null while the thread ends.
tensorflow::gtl::CompactPointerSet<TFE_Py_Tape*>* GetTapeSet();

// Source: tensorflow/python/eager/pywrap_tfe_src.cc
// Name: GetAccumulatorSet
// Checked: 2.19, 2.20, 2.21, 2.22
// Null while the thread ends.
AccumulatorSet* GetAccumulatorSet();

// Source: tensorflow/python/eager/pywrap_tfe_src.cc
// Name: py_vspace
// Checked: 2.19, 2.20, 2.21, 2.22
// The functions in Python that add and make gradients: an object of PyVSpace, whose base this is.
class PyVSpace : public tensorflow::eager::VSpace<PyObject, PyBackwardFunction, PyTapeTensor> {};
extern PyVSpace* py_vspace;

namespace fastops {

// TensorFlow keeps some members private, and its accessors block or lock. The standard lets an
// explicit template instantiation name private members ([temp.explicit]/13). Headers declare these
// members, so that the compiler checks them in each version, and they have no entry.
template <typename Owner, typename Tag, auto Member>
struct Expose {
  friend auto& Access(const Owner& owner, Tag) { return owner.*Member; }
};

#define FASTOPS_EXPOSE(Owner, Name, member) \
  struct Name {};                           \
  auto& Access(const Owner&, Name);         \
  template struct Expose<Owner, Name, &Owner::member>

// These members show whether a tensor is computed. `TensorHandle::Tensor()` would block until it
// is, which can deadlock while the GIL is held.
FASTOPS_EXPOSE(tensorflow::TensorHandle, HandleData, data_);
FASTOPS_EXPOSE(tensorflow::LocalTensorHandleData, LocalControl, ctrl_);
FASTOPS_EXPOSE(tensorflow::LocalTensorHandleData, LocalTensor, tensor_);
// The executors of threads that have their own, and the executor of all other threads.
FASTOPS_EXPOSE(tensorflow::EagerContext, ContextThreadExecutors, thread_local_executor_);
FASTOPS_EXPOSE(tensorflow::EagerContext, ContextExecutor, default_executor_);

// The records of a tape, and what it watches.
using TapeOfOps = tensorflow::eager::GradientTape<PyObject, PyBackwardFunction, PyTapeTensor>;
FASTOPS_EXPOSE(TapeOfOps, TapeTensors, tensor_tape_);
FASTOPS_EXPOSE(TapeOfOps, TapeOps, op_tape_);
FASTOPS_EXPOSE(TapeOfOps, TapeUsage, tensor_usage_);
FASTOPS_EXPOSE(TapeOfOps, TapeNextOp, next_op_id_);

inline TapeOfOps& TapeOf(PyObject* tape) { return *reinterpret_cast<TFE_Py_Tape*>(tape)->tape; }

// Null unless the handle's tensor is local.
inline const tensorflow::LocalTensorHandleData* LocalData(const tensorflow::TensorHandle& handle) {
  return std::get_if<tensorflow::LocalTensorHandleData>(&Access(handle, HandleData()));
}

// True for a tensor that was computed before it got its handle. Others may be pending.
inline bool NeverPending(const tensorflow::LocalTensorHandleData& data) {
  return Access(data, LocalControl()).index() == 0;  // NonBlockingControl
}

inline const tensorflow::Tensor& TensorOf(const tensorflow::LocalTensorHandleData& data) {
  return Access(data, LocalTensor());
}

// Makes a kernel that runs a function as an eager call does. The constructor in TensorFlow 2.19 has
// no parameter `function_runs_at_most_once`.
template <typename Kernel = tensorflow::KernelAndDeviceFunc>
Kernel* NewFunctionKernel(tensorflow::FunctionLibraryRuntime* library,
                          tensorflow::ProcessFunctionLibraryRuntime* process,
                          std::vector<tensorflow::Device*> input_devices,
                          std::unordered_map<int, tensorflow::DtypeAndPartialTensorShape> resources,
                          std::function<void(std::function<void()>)>* runner,
                          std::unique_ptr<tensorflow::CollectiveExecutor::Handle> collective,
                          tensorflow::Device* host, const std::string& name, bool soft_placement) {
  auto make = [&](auto... function_runs_at_most_once) {
    return new Kernel(
        library, process, std::move(input_devices), /*composite_devices=*/{}, std::move(resources),
        runner, std::move(collective), host, name, /*outputs_on_op_device=*/false,
        /*allow_small_function_optimizations=*/false, /*allow_control_flow_sync_execution=*/false,
        /*shape_inference_on_tfe_dialect_import=*/true, /*int_args_and_retvals_on_device=*/false,
        function_runs_at_most_once..., /*xla_compile_device_type=*/std::nullopt, soft_placement,
        /*rendezvous_factory=*/tensorflow::Rendezvous::Factory(), /*get_op_id=*/nullptr);
  };
  constexpr bool is_told =
      std::is_constructible_v<Kernel, decltype(library), decltype(process), decltype(input_devices),
                              absl::flat_hash_map<std::string, const std::vector<std::string>*>,
                              decltype(resources), decltype(runner), decltype(collective),
                              decltype(host), decltype(name), bool, bool, bool, bool, bool,
                              /*function_runs_at_most_once*/ bool, std::nullopt_t, bool,
                              tensorflow::Rendezvous::Factory, std::nullptr_t>;
  if constexpr (is_told) {
    return make(false);
  } else {
    return make();
  }
}

inline auto& ThreadExecutors(const tensorflow::EagerContext& context) {
  return Access(context, ContextThreadExecutors());
}

inline const tensorflow::EagerExecutor& DefaultExecutor(const tensorflow::EagerContext& context) {
  return Access(context, ContextExecutor());
}

// Source: tensorflow/python/client/tf_session_wrapper.cc
// Name: PyGraph
// Checked: 2.19, 2.20, 2.21, 2.22
// The layout of the Python object of a graph. The wheel has no header for it. `graph` is the first
// member of PyGraphData, which follows the object's header.
struct GraphObject {
  PyObject ob_base;
  PyObject* dict;
  PyObject* weakrefs;
  TF_Graph* graph;
};

// Source: pybind11/detail/common.h
// Name: pybind11::detail::instance
// Checked: 2.19, 2.20, 2.21, 2.22
// The layout of the Python object of a session. It is pybind11's instance in its simple layout: a
// pointer to the value, and two words for its holder.
struct SessionObject {
  PyObject ob_base;
  TF_Session* session;
  void* holder[2];
  PyObject* weakrefs;
  bool owned : 1;
  bool simple_layout : 1;
};

// The session that runs the graph. TF_Session has a SessionRef around it, which counts the runs.
FASTOPS_EXPOSE(tensorflow::SessionRef, CountedSession, session_);

// The session of an open `TF_Session` object. Null if the session does not run this graph, or if
// the types show that the objects do not have the layouts above. `graph_type` is PyGraph, the base
// of the graph's class. The GIL is held, which keeps the session open: closing a session starts in
// Python.
inline tensorflow::Session* SessionOf(PyObject* session, PyObject* graph,
                                      PyTypeObject* graph_type) {
  const PyTypeObject* type = Py_TYPE(session);
  if (std::strcmp(type->tp_name, "tensorflow.python.client._pywrap_tf_session.TF_Session") != 0 ||
      type->tp_basicsize != sizeof(SessionObject) ||
      type->tp_weaklistoffset != offsetof(SessionObject, weakrefs) ||
      graph_type->tp_dictoffset != offsetof(GraphObject, dict) ||
      graph_type->tp_weaklistoffset != offsetof(GraphObject, weakrefs) ||
      !PyObject_TypeCheck(graph, graph_type)) {
    return nullptr;
  }
  const auto* object = reinterpret_cast<const SessionObject*>(session);
  if (!object->simple_layout || object->session == nullptr ||
      object->session->graph != reinterpret_cast<const GraphObject*>(graph)->graph) {
    return nullptr;
  }
  const auto* counter = dynamic_cast<const tensorflow::SessionRef*>(object->session->session);
  return counter == nullptr ? nullptr : Access(*counter, CountedSession()).get();
}

// The generator of random kernels: its lock, and its state. No generator is const.
FASTOPS_EXPOSE(tensorflow::GuardedPhiloxRandom, GeneratorMutex, mu_);
FASTOPS_EXPOSE(tensorflow::GuardedPhiloxRandom, GeneratorState, generator_);

inline tensorflow::mutex& MutexOf(tensorflow::GuardedPhiloxRandom& guarded) {
  return const_cast<tensorflow::mutex&>(Access(guarded, GeneratorMutex()));
}

inline tensorflow::random::PhiloxRandom& StateOf(tensorflow::GuardedPhiloxRandom& guarded) {
  return const_cast<tensorflow::random::PhiloxRandom&>(Access(guarded, GeneratorState()));
}

// Source: tensorflow/core/kernels/random_op.cc
// Name: PhiloxRandomOp, RandomUniformIntOp, RandomGammaOp
// Source: tensorflow/core/kernels/random_shuffle_op.cc
// Name: RandomShuffleOp
// Source: tensorflow/core/kernels/multinomial_op.cc
// Name: MultinomialOp
// Checked: 2.19, 2.20, 2.21, 2.22
// The layout of a random kernel up to its generator. No object of this class is made. The kernel of
// RandomPoissonV2 (RandomPoissonOp, random_poisson_op.cc) has not been read: `GeneratorOf` compares
// the bytes of every kernel.
class RandomKernel : public tensorflow::OpKernel {
 public:
  tensorflow::GuardedPhiloxRandom generator;
};

// Source: tensorflow/core/kernels/candidate_sampler_ops.cc
// Name: BaseCandidateSamplerOp
// Checked: 2.19, 2.20, 2.21, 2.22
// The same for a kernel that samples candidates.
class SamplerKernel : public tensorflow::OpKernel {
 public:
  int32_t num_true;
  int32_t num_sampled;
  bool unique;
  std::unique_ptr<char> sampler;
  tensorflow::GuardedPhiloxRandom generator;
};

// Returns the generator of a random kernel with these seeds, which has not drawn yet. Returns null
// if it is not where it should be.
inline tensorflow::GuardedPhiloxRandom* GeneratorOf(tensorflow::OpKernel* kernel, bool sampler,
                                                    int64_t seed, int64_t seed2) {
  auto* guarded = sampler ? &static_cast<SamplerKernel*>(kernel)->generator
                          : &static_cast<RandomKernel*>(kernel)->generator;
  const tensorflow::random::PhiloxRandom expected(seed, seed2);
  return std::memcmp(&StateOf(*guarded), &expected, sizeof(expected)) == 0 ? guarded : nullptr;
}

}  // namespace fastops

#endif  // FASTOPS_CPP_COMPAT_H_
