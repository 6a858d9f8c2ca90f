// A library of custom ops, as a user of TensorFlow would write one: for load_op_library.

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::tstring;

REGISTER_OP("FastopsTestScale")
    .Input("x: float")
    .Output("y: float")
    .Attr("factor: float = 2.0")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* context) {
      context->set_output(0, context->input(0));
      return absl::OkStatus();
    });

// Writes into its input if TensorFlow allows it, and fails if a value is negative.
class Scale : public tensorflow::OpKernel {
 public:
  explicit Scale(OpKernelConstruction* construction) : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("factor", &factor_));
    OP_REQUIRES(construction, factor_ != 13, absl::UnimplementedError("no kernel for 13"));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->forward_input_or_allocate_output({0}, 0, x.shape(), &y));
    for (int64_t i = 0; i < x.NumElements(); ++i) {
      const float value = x.flat<float>()(i);
      OP_REQUIRES(context, value >= 0,
                  absl::OutOfRangeError(absl::StrCat("x is negative at ", i, ": \"", value, "\"")));
      y->flat<float>()(i) = factor_ * value;
    }
  }

 private:
  float factor_;
};

REGISTER_KERNEL_BUILDER(Name("FastopsTestScale").Device(tensorflow::DEVICE_CPU), Scale);

// An op without a kernel.
REGISTER_OP("FastopsTest>Pair").Output("left: float").Output("right: float").SetIsStateful();

REGISTER_OP("FastopsTestMix")
    .Input("values: N * T")
    .Input("rest: Rest")
    .Output("scaled: N * T")
    .Output("sum: T")
    .Output("same: Rest")
    .Attr("N: int >= 1")
    .Attr("T: {float, double}")
    .Attr("Rest: list(type) >= 0")
    .Attr("factors: list(float)")
    .Attr("mode: {'up', 'down'} = 'up'")
    .Attr("times: int = 1")
    .Attr("negate: bool = false")
    .SetShapeFn(tensorflow::shape_inference::UnknownShape);

// An op with lists of inputs and outputs, and attributes of several kinds. All values have the same
// shape.
template <typename T>
class Mix : public tensorflow::OpKernel {
 public:
  explicit Mix(OpKernelConstruction* construction) : OpKernel(construction) {
    std::string mode;
    std::vector<float> factors;
    int times;
    bool negate;
    OP_REQUIRES_OK(construction, construction->GetAttr("factors", &factors));
    OP_REQUIRES_OK(construction, construction->GetAttr("mode", &mode));
    OP_REQUIRES_OK(construction, construction->GetAttr("times", &times));
    OP_REQUIRES_OK(construction, construction->GetAttr("negate", &negate));
    for (float factor : factors) {
      factor_ *= mode == "up" ? factor * times : T(1) / (factor * times);
    }
    if (negate) factor_ = -factor_;
  }

  void Compute(OpKernelContext* context) override {
    tensorflow::OpInputList values, rest;
    tensorflow::OpOutputList scaled, same;
    OP_REQUIRES_OK(context, context->input_list("values", &values));
    OP_REQUIRES_OK(context, context->input_list("rest", &rest));
    OP_REQUIRES_OK(context, context->output_list("scaled", &scaled));
    OP_REQUIRES_OK(context, context->output_list("same", &same));
    Tensor* sum = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(values.size(), values[0].shape(), &sum));
    sum->flat<T>().setZero();
    for (int i = 0; i < values.size(); ++i) {
      Tensor* output = nullptr;
      OP_REQUIRES(context, values[i].shape() == values[0].shape(),
                  absl::InvalidArgumentError("values differ in shape"));
      OP_REQUIRES_OK(context, scaled.allocate(i, values[i].shape(), &output));
      output->flat<T>() = values[i].flat<T>() * factor_;
      sum->flat<T>() += output->flat<T>();
    }
    for (int i = 0; i < rest.size(); ++i) same.set(i, rest[i]);
  }

 private:
  T factor_ = 1;
};

REGISTER_KERNEL_BUILDER(
    Name("FastopsTestMix").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), Mix<float>);
REGISTER_KERNEL_BUILDER(
    Name("FastopsTestMix").Device(tensorflow::DEVICE_CPU).TypeConstraint<double>("T"), Mix<double>);

REGISTER_OP("FastopsTestCounter")
    .Input("step: int64")
    .Output("count: int64")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape);

// An op whose kernel has state.
class Counter : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    Tensor* count = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, {}, &count));
    const int64_t step = context->input(0).scalar<int64_t>()();
    OP_REQUIRES(context, step > 0, absl::FailedPreconditionError("time goes by"));
    count->scalar<int64_t>()() = count_ += step;
  }

 private:
  std::atomic<int64_t> count_{0};
};

REGISTER_KERNEL_BUILDER(Name("FastopsTestCounter").Device(tensorflow::DEVICE_CPU), Counter);

REGISTER_OP("FastopsTestLater")
    .Input("x: float")
    .Output("y: float")
    .SetShapeFn(tensorflow::shape_inference::UnchangedShape);

class Later : public tensorflow::AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    context->device()->tensorflow_cpu_worker_threads()->workers->Schedule([context, done] {
      context->set_output(0, context->input(0));
      done();
    });
  }
};

REGISTER_KERNEL_BUILDER(Name("FastopsTestLater").Device(tensorflow::DEVICE_CPU), Later);

REGISTER_OP("FastopsTestContext")
    .Input("x: T")
    .Output("found: string")
    .Attr("T: type")
    .SetShapeFn(tensorflow::shape_inference::UnknownShape);

// Returns information from the kernel's context.
class Context : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    std::vector<std::string> found = {
        absl::StrCat("op: ", type_string()),
        absl::StrCat("device: ", context->device()->attributes().name()),
        absl::StrCat("threads: ", context->device()->tensorflow_cpu_worker_threads()->num_threads),
        absl::StrCat("input: ", tensorflow::DataTypeString(context->input_dtype(0)), " ",
                     context->input(0).shape().DebugString()),
        absl::StrCat("input in host memory: ", context->input_alloc_attr(0).on_host()),
        absl::StrCat("output expected: ",
                     tensorflow::DataTypeString(context->expected_output_dtype(0))),
    };
    const std::pair<const char*, const void*> pointers[] = {
        {"resource manager", context->resource_manager()},
        {"function library", context->function_library()},
        {"step container", context->step_container()},
        {"cancellation manager", context->cancellation_manager()},
        {"runner", context->runner()},
        {"session state", context->session_state()},
        {"collective executor", context->collective_executor()},
        {"rendezvous", context->rendezvous()},
        {"tensor store", context->tensor_store()},
        {"slice reader cache", context->slice_reader_cache()},
        {"device context", context->op_device_context()},
        {"Eigen's device", &context->eigen_cpu_device()},
    };
    for (const auto& [name, pointer] : pointers) {
      found.push_back(absl::StrCat(name, ": ", pointer != nullptr ? "there" : "not there"));
    }
    Tensor temporary;
    OP_REQUIRES_OK(context, context->allocate_temp(tensorflow::DT_FLOAT, {1000}, &temporary));
    std::atomic<int64_t> covered{0};
    context->device()->tensorflow_cpu_worker_threads()->workers->ParallelFor(
        1000, 10'000, [&](int64_t begin, int64_t end) { covered += end - begin; });
    found.push_back(absl::StrCat("parallel: ", covered.load()));
    Tensor* output = nullptr;
    const int64_t size = found.size();
    OP_REQUIRES_OK(context, context->allocate_output(0, {size}, &output));
    std::copy(found.begin(), found.end(), output->flat<tstring>().data());
  }
};

REGISTER_KERNEL_BUILDER(Name("FastopsTestContext").Device(tensorflow::DEVICE_CPU), Context);

REGISTER_OP("FastopsTestUnset")
    .Input("x: float")
    .Output("set: float")
    .Output("unset: float")
    .SetShapeFn(tensorflow::shape_inference::UnknownShape);

// Does not set one of its outputs.
class Unset : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override { context->set_output(0, context->input(0)); }
};

REGISTER_KERNEL_BUILDER(Name("FastopsTestUnset").Device(tensorflow::DEVICE_CPU), Unset);

}  // namespace
