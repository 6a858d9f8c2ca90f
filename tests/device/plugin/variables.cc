// Kernels of the device that change variables. TensorFlow's libraries for Python lack the C
// interface for them, so these are C++ classes.

#include <cmath>
#include <cstring>

#include "launch.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"

namespace fastops_test {

std::string OpOf(TF_OpKernelContext* context) {
  return reinterpret_cast<tensorflow::OpKernelContext*>(context)->op_kernel().type_string();
}

namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::Var;

SP_Stream StreamOf(OpKernelContext* context) {
  Status status;
  SP_Stream stream = TF_GetStream(reinterpret_cast<TF_OpKernelContext*>(context), status);
  status.Check();
  return stream;
}

const void* Begin(const Tensor& tensor) { return tensor.tensor_data().data(); }

void Check(const Tensor& tensor) { CheckAlive(Begin(tensor), tensor.TotalBytes()); }

// Changes a variable, in place if there is no other reference to its tensor.
//
// The functions get the elements of the variable and of the inputs, in order.
template <typename T>
class Update : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    Count("kernel " + type_string());
    const int variables = Variables();
    std::vector<tensorflow::core::RefCountPtr<Var>> found(variables);
    for (int i = 0; i < variables; ++i) {
      OP_REQUIRES_OK(context, LookupResource(context, HandleFromInput(context, i), &found[i]));
    }
    std::vector<std::unique_ptr<tensorflow::mutex_lock>> locks;
    std::vector<T*> changed;
    SP_Stream stream = StreamOf(context);
    for (const auto& variable : found) {
      locks.push_back(std::make_unique<tensorflow::mutex_lock>(*variable->mu()));
      Tensor* tensor = variable->tensor();
      OP_REQUIRES(context, variable->is_initialized,
                  absl::FailedPreconditionError("the variable is not initialized"));
      if (!tensor->RefCountIsOne()) {
        Tensor copy;
        OP_REQUIRES_OK(context, context->allocate_temp(tensor->dtype(), tensor->shape(), &copy));
        Check(*tensor);
        Check(copy);
        stream->Enqueue([from = Begin(*tensor), to = Begin(copy), bytes = copy.TotalBytes()] {
          if (bytes != 0) std::memcpy(Own(to), Own(from), bytes);
        });
        *tensor = copy;
      }
      Check(*tensor);
      changed.push_back(static_cast<T*>(const_cast<void*>(Begin(*tensor))));
    }
    std::vector<const T*> values;
    for (int i = variables; i < context->num_inputs(); ++i) {
      Check(context->input(i));
      values.push_back(static_cast<const T*>(Begin(context->input(i))));
    }
    const int64_t count = found[0]->tensor()->NumElements();
    const tensorflow::TensorShape& last = context->input(context->num_inputs() - 1).shape();
    OP_REQUIRES(context, found[0]->tensor()->shape() == last,
                absl::InvalidArgumentError(absl::StrCat(
                    "Cannot update variable with shape ", found[0]->tensor()->shape().DebugString(),
                    " using a Tensor with shape ", last.DebugString(), ", shapes must be equal.")));
    if (count == 0) return;
    stream->Enqueue([this_one = Copy(), changed, values, count] {
      const auto own = [](const T* shown) {
        return reinterpret_cast<T*>(Own(const_cast<T*>(shown)));
      };
      std::vector<T*> to;
      std::vector<const T*> from;
      for (T* shown : changed) to.push_back(own(shown));
      for (const T* shown : values) from.push_back(own(shown));
      this_one(to, from, count);
    });
  }

 protected:
  using Function =
      std::function<void(const std::vector<T*>&, const std::vector<const T*>&, int64_t)>;
  virtual Function Copy() const = 0;
  virtual int Variables() const { return 1; }
};

template <typename T, int kSign>
class Assign : public Update<T> {
 public:
  using Update<T>::Update;

 protected:
  typename Update<T>::Function Copy() const override {
    return [](const auto& to, const auto& from, int64_t count) {
      for (int64_t i = 0; i < count; ++i) to[0][i] += kSign * from[0][i];
    };
  }
};

template <typename T>
class GradientDescent : public Update<T> {
 public:
  using Update<T>::Update;

 protected:
  typename Update<T>::Function Copy() const override {
    return [](const auto& to, const auto& from, int64_t count) {
      for (int64_t i = 0; i < count; ++i) to[0][i] -= from[0][0] * from[1][i];
    };
  }
};

// Inputs: var, m, v; then beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad.
template <typename T>
class Adam : public Update<T> {
 public:
  using Update<T>::Update;

 protected:
  int Variables() const override { return 3; }
  typename Update<T>::Function Copy() const override {
    return [](const auto& to, const auto& from, int64_t count) {
      const T rate = *from[2] * std::sqrt(1 - *from[1]) / (1 - *from[0]);
      for (int64_t i = 0; i < count; ++i) {
        const T gradient = from[6][i];
        to[1][i] += (1 - *from[3]) * (gradient - to[1][i]);
        to[2][i] += (1 - *from[4]) * (gradient * gradient - to[2][i]);
        to[0][i] -= rate * to[1][i] / (std::sqrt(to[2][i]) + *from[5]);
      }
    };
  }
};

#define ON_DEVICE(op, attr, type) \
  Name(op).Device(kType).HostMemory("resource").TypeConstraint<type>(attr)
#define REGISTER(type)                                                                        \
  REGISTER_KERNEL_BUILDER(ON_DEVICE("AssignAddVariableOp", "dtype", type), Assign<type, 1>);  \
  REGISTER_KERNEL_BUILDER(ON_DEVICE("AssignSubVariableOp", "dtype", type), Assign<type, -1>); \
  REGISTER_KERNEL_BUILDER(Name("ResourceApplyGradientDescent")                                \
                              .Device(kType)                                                  \
                              .HostMemory("var")                                              \
                              .TypeConstraint<type>("T"),                                     \
                          GradientDescent<type>);                                             \
  REGISTER_KERNEL_BUILDER(Name("ResourceApplyAdam")                                           \
                              .Device(kType)                                                  \
                              .HostMemory("var")                                              \
                              .HostMemory("m")                                                \
                              .HostMemory("v")                                                \
                              .TypeConstraint<type>("T"),                                     \
                          Adam<type>);

REGISTER(float)
REGISTER(double)
using int64 = int64_t;
REGISTER_KERNEL_BUILDER(ON_DEVICE("AssignAddVariableOp", "dtype", int64), Assign<int64, 1>);
REGISTER_KERNEL_BUILDER(ON_DEVICE("AssignSubVariableOp", "dtype", int64), Assign<int64, -1>);

}  // namespace
}  // namespace fastops_test
