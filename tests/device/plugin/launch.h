// The parts of the device's kernels: wrappers of TensorFlow's C interface, and closures for a
// stream.
#ifndef FASTOPS_TESTS_DEVICE_LAUNCH_H_
#define FASTOPS_TESTS_DEVICE_LAUNCH_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "memory.h"
#include "stream.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/tf_tensor.h"

namespace fastops_test {

constexpr char kType[] = "FASTOPS_TEST";

using Sizes = std::vector<int64_t>;

struct Failure {
  TF_Code code;
  std::string message;
};

class Status {
 public:
  Status() : status_(TF_NewStatus()) {}
  ~Status() { TF_DeleteStatus(status_); }
  Status(const Status&) = delete;
  operator TF_Status*() { return status_; }
  void Check() const {
    if (TF_GetCode(status_) != TF_OK) throw Failure{TF_GetCode(status_), TF_Message(status_)};
  }

 private:
  TF_Status* status_;
};

inline int64_t Product(const Sizes& sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

inline std::string Text(const Sizes& sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(sizes[i]);
  }
  return text + "]";
}

// A tensor in the device's memory. As on a real device, it does not keep the memory alive: the
// order of work in the stream is enough.
struct Array {
  void* shown;
  TF_DataType dtype;
  Sizes sizes;

  int64_t count() const { return Product(sizes); }
  size_t bytes() const { return count() * TF_DataTypeSize(dtype); }
  // The elements. Only closures may use this.
  template <typename T>
  T* own() const {
    return reinterpret_cast<T*>(Own(shown));
  }
};

// One call of a kernel, on the host. It reads sizes and arguments in host memory, and gives the
// computation to the stream.
class Launch {
 public:
  explicit Launch(TF_OpKernelContext* context) : context_(context) {}

  int inputs() const { return TF_NumInputs(context_); }

  Array Input(int index) {
    Array array = ArrayOf(Get(index));
    used_.push_back(array);
    return array;
  }

  // An argument in the memory of the host.
  Sizes HostInts(int index) {
    TF_Tensor* tensor = Get(index);
    Sizes values(TF_TensorElementCount(tensor));
    for (size_t i = 0; i < values.size(); ++i) {
      if (TF_TensorType(tensor) == TF_INT32) {
        values[i] = static_cast<const int32_t*>(TF_TensorData(tensor))[i];
      } else {
        values[i] = static_cast<const int64_t*>(TF_TensorData(tensor))[i];
      }
    }
    TF_DeleteTensor(tensor);
    return values;
  }

  Array Output(int index, TF_DataType dtype, const Sizes& sizes) {
    Status status;
    TF_Tensor* tensor = TF_AllocateOutput(context_, index, dtype, sizes.data(), sizes.size(),
                                          Product(sizes) * TF_DataTypeSize(dtype), status);
    status.Check();
    Array array = ArrayOf(tensor);
    used_.push_back(array);
    return array;
  }

  void Enqueue(std::function<void()> work) {
    Status status;
    SP_Stream stream = TF_GetStream(context_, status);
    status.Check();
    const std::string fault = FaultOf(stream->device);
    if (!fault.empty()) throw Failure{TF_INTERNAL, "the device has a fault: " + fault};
    for (const Array& array : used_) CheckAlive(array.shown, array.bytes());
    device_ = stream->device;
    stream->Enqueue(std::move(work));
  }

  int device() {
    Status status;
    SP_Stream stream = TF_GetStream(context_, status);
    status.Check();
    return stream->device;
  }

 private:
  TF_Tensor* Get(int index) {
    Status status;
    TF_Tensor* tensor = nullptr;
    TF_GetInput(context_, index, &tensor, status);
    status.Check();
    return tensor;
  }

  static Array ArrayOf(TF_Tensor* tensor) {
    Array array{TF_TensorData(tensor), TF_TensorType(tensor), {}};
    for (int i = 0; i < TF_NumDims(tensor); ++i) array.sizes.push_back(TF_Dim(tensor, i));
    if (array.count() == 0) array.shown = nullptr;
    TF_DeleteTensor(tensor);
    return array;
  }

  TF_OpKernelContext* const context_;
  int device_ = 0;
  std::vector<Array> used_;
};

// The attributes for the constructor of a kernel.
class Attributes {
 public:
  explicit Attributes(TF_OpKernelConstruction* construction) : construction_(construction) {}

  bool Bool(const char* name) {
    Status status;
    TF_Bool value = 0;
    TF_OpKernelConstruction_GetAttrBool(construction_, name, &value, status);
    status.Check();
    return value != 0;
  }
  int64_t Int(const char* name) {
    Status status;
    int64_t value = 0;
    TF_OpKernelConstruction_GetAttrInt64(construction_, name, &value, status);
    status.Check();
    return value;
  }
  TF_DataType Type(const char* name) {
    Status status;
    TF_DataType value = TF_FLOAT;
    TF_OpKernelConstruction_GetAttrType(construction_, name, &value, status);
    status.Check();
    return value;
  }
  std::string String(const char* name) {
    Status status;
    int32_t count = 0, size = 0;
    TF_OpKernelConstruction_GetAttrSize(construction_, name, &count, &size, status);
    status.Check();
    std::string value(size, '\0');
    TF_OpKernelConstruction_GetAttrString(construction_, name, value.data(), size, status);
    status.Check();
    return value;
  }

 private:
  TF_OpKernelConstruction* const construction_;
};

// The op of the call. The C interface does not provide it, so variables.cc uses C++.
std::string OpOf(TF_OpKernelContext* context);

// Calls `function` with a zero of a type.
template <typename Function>
void ForType(TF_DataType dtype, Function function) {
  switch (dtype) {
    case TF_FLOAT:
      return function(float{});
    case TF_DOUBLE:
      return function(double{});
    case TF_INT32:
      return function(int32_t{});
    case TF_INT64:
      return function(int64_t{});
    case TF_UINT64:
      return function(uint64_t{});
    case TF_BOOL:
      return function(bool{});
    default:
      Die("a type that the device does not know", nullptr, dtype);
  }
}

using Types = std::initializer_list<std::pair<const char*, TF_DataType>>;

// Registers a class with a constructor that takes `Attributes`, and a method `Run(Launch&)`.
template <typename Kernel>
void Register(const char* op, Types types, std::initializer_list<const char*> on_host = {}) {
  const auto make = [](TF_OpKernelConstruction* construction) -> void* {
    try {
      return new Kernel(Attributes(construction));
    } catch (const Failure& failure) {
      Status status;
      TF_SetStatus(status, failure.code, failure.message.c_str());
      TF_OpKernelConstruction_Failure(construction, status);
      return nullptr;
    }
  };
  const auto compute = [](void* kernel, TF_OpKernelContext* context) {
    try {
      Count("kernel " + OpOf(context));
      Launch launch(context);
      static_cast<Kernel*>(kernel)->Run(launch);
    } catch (const Failure& failure) {
      Status status;
      TF_SetStatus(status, failure.code, failure.message.c_str());
      TF_OpKernelContext_Failure(context, status);
    }
  };
  const auto destroy = [](void* kernel) { delete static_cast<Kernel*>(kernel); };
  TF_KernelBuilder* builder = TF_NewKernelBuilder(op, kType, make, compute, destroy);
  Status status;
  for (const auto& [name, type] : types) {
    TF_KernelBuilder_TypeConstraint(builder, name, type, status);
    status.Check();
  }
  for (const char* name : on_host) TF_KernelBuilder_HostMemory(builder, name);
  TF_RegisterKernelBuilder(op, builder, status);
  status.Check();
}

}  // namespace fastops_test

#endif  // FASTOPS_TESTS_DEVICE_LAUNCH_H_
