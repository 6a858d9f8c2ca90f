// A library of custom ops, as a user of TensorFlow would write one: for load_op_library.

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

REGISTER_OP("FastopsTestScale")
    .Input("x: float")
    .Output("y: float")
    .Attr("factor: float = 2.0")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* context) {
      context->set_output(0, context->input(0));
      return tensorflow::Status();
    });

REGISTER_OP("FastopsTest>Pair").Output("left: float").Output("right: float").SetIsStateful();

namespace {

class Scale : public tensorflow::OpKernel {
 public:
  explicit Scale(tensorflow::OpKernelConstruction* construction) : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("factor", &factor_));
  }

  void Compute(tensorflow::OpKernelContext* context) override {
    const tensorflow::Tensor& x = context->input(0);
    tensorflow::Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &y));
    for (int64_t i = 0; i < x.NumElements(); ++i) {
      y->flat<float>()(i) = factor_ * x.flat<float>()(i);
    }
  }

 private:
  float factor_;
};

}  // namespace

REGISTER_KERNEL_BUILDER(Name("FastopsTestScale").Device(tensorflow::DEVICE_CPU), Scale);
