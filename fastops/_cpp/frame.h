// Frame: the flat inputs of one call.
#ifndef FASTOPS_CPP_FRAME_H_
#define FASTOPS_CPP_FRAME_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "gil.h"
#include "handle.h"
#include "invariants.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace fastops {

// Plain arrays with room for kInputs inputs. They are not initialized, since every call makes a
// frame. Call `Reset` first if there are more inputs or lists.
class Frame {
 public:
  static constexpr int kInputs = 16;
  static constexpr int kUnwrapped = 4;

  Frame() {}
  ~Frame() {
    TakingGil([this] {
      for (int i = 0; i < num_owned_; ++i) Py_DECREF(owned_[i]);
      for (PyObject* object : more_owned_) Py_DECREF(object);
    });
    for (int i = 0; i < num_unwrapped; ++i) unwrapped_[i].~Tensor();
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // Empties the frame, and makes room for `num_inputs` inputs and `num_lists` lists. The frame
  // keeps the references that it owns.
  void Reset(int num_inputs, int num_lists) {
    size = 0;
    signature_size = 0;
    num_lists_ = 0;
    bytes = 0;
    while (num_unwrapped > 0) unwrapped_[--num_unwrapped].~Tensor();
    if (num_inputs <= kInputs && num_lists <= kLists) return;
    more_ = std::make_unique<char[]>(num_inputs * (sizeof(tensorflow::TensorValue) +
                                                   sizeof(PyObject*) + sizeof(TFE_TensorHandle*)) +
                                     num_lists * (sizeof(int) + kListMarkSize) + num_inputs);
    char* next = more_.get();
    tensors = Carve<tensorflow::TensorValue>(&next, num_inputs);
    objects = Carve<PyObject*>(&next, num_inputs);
    handles = Carve<TFE_TensorHandle*>(&next, num_inputs);
    list_lengths = Carve<int>(&next, num_lists);
    signature = Carve<uint8_t>(&next, num_inputs + num_lists * kListMarkSize);
#ifdef FASTOPS_ASSERTIONS
    room_ = num_inputs;
    room_for_lists_ = num_lists;
#endif
  }

  // Adds an EagerTensor. The caller keeps it alive, or has given it to `Own`.
  InputState Add(PyObject* tensor, const tensorflow::Device* host) {
    FASTOPS_ASSERT(size < room_);
    TFE_TensorHandle* handle = EagerTensor_Handle(tensor);
    const tensorflow::Tensor* value = nullptr;
    const InputState state = Inspect(handle, host, &value);
    if (state == InputState::kForeign) return state;
    objects[size] = tensor;
    handles[size] = handle;
    signature[signature_size++] = static_cast<uint8_t>(HandleDtype(handle));
    new (&tensors[size]) tensorflow::TensorValue(const_cast<tensorflow::Tensor*>(value));
    // The bytes of strings are stored outside the tensor, so assume that they are many.
    if (state == InputState::kReady) {
      bytes += value->dtype() == tensorflow::DT_STRING ? kManyBytes : value->TotalBytes();
    }
    ++size;
    return state;
  }

  // Adds a tensor that has no EagerTensor. There must be room: `num_unwrapped < kUnwrapped`.
  // Afterwards the frame can run a kernel, but its objects and handles must not be used.
  void AddUnwrapped(tensorflow::Tensor&& tensor) {
    FASTOPS_ASSERT(size < room_ && num_unwrapped < kUnwrapped);
    auto* kept = new (&unwrapped_[num_unwrapped++]) tensorflow::Tensor(std::move(tensor));
    objects[size] = nullptr;
    handles[size] = nullptr;
    signature[signature_size++] = static_cast<uint8_t>(kept->dtype());
    new (&tensors[size]) tensorflow::TensorValue(kept);
    bytes += kept->dtype() == tensorflow::DT_STRING ? kManyBytes : kept->TotalBytes();
    ++size;
  }

  // Starts a list: the next `length` inputs belong to it.
  void BeginList(int length) {
    FASTOPS_ASSERT(num_lists_ < room_for_lists_);
    list_lengths[num_lists_++] = length;
    signature[signature_size++] = kListMark;
    signature[signature_size++] = static_cast<uint8_t>(length);
    signature[signature_size++] = static_cast<uint8_t>(length >> 8);
  }

  // Steals a reference and holds it until the frame is destroyed.
  void Own(PyObject* object) {
    if (num_owned_ < kInputs) {
      owned_[num_owned_++] = object;
    } else {
      more_owned_.push_back(object);
    }
  }

  bool SameSignature(const char* other, size_t other_size) const {
    return signature_size == other_size && std::memcmp(signature, other, other_size) == 0;
  }

  // Whether two signatures are equal apart from the lengths of lists. All items of a list must have
  // the same dtype, and no list may be empty.
  bool SameButForLengths(const char* other, size_t other_size) const {
    const uint8_t* here = signature;
    const uint8_t* there = reinterpret_cast<const uint8_t*>(other);
    const uint8_t* const here_ends = here + signature_size;
    const uint8_t* const there_ends = there + other_size;
    while (here < here_ends && there < there_ends) {
      if (*here != *there) return false;
      int length = 1, other_length = 1;
      if (*here == kListMark) {
        length = here[1] | here[2] << 8;
        other_length = there[1] | there[2] << 8;
        if (length == 0 || other_length == 0) return false;
        here += kListMarkSize;
        there += kListMarkSize;
      }
      if (std::count(here, here + length, *there) != length) return false;
      here += length;
      there += other_length;
    }
    return here == here_ends && there == there_ends;
  }

 private:
  static constexpr int kLists = 4;
  static constexpr size_t kManyBytes = size_t{1} << 20;
  static constexpr uint8_t kListMark = 0xff;
  static constexpr int kListMarkSize = 3;

  template <typename T>
  static T* Carve(char** next, int count) {
    T* array = reinterpret_cast<T*>(*next);
    *next += count * sizeof(T);
    return array;
  }

  alignas(tensorflow::TensorValue) char few_tensors_[kInputs * sizeof(tensorflow::TensorValue)];
  PyObject* few_objects_[kInputs];
  TFE_TensorHandle* few_handles_[kInputs];
  int few_list_lengths_[kLists];
  uint8_t few_signature_[kInputs + kLists * kListMarkSize];
  std::unique_ptr<char[]> more_;
  PyObject* owned_[kInputs];
  std::vector<PyObject*> more_owned_;
  union {
    tensorflow::Tensor unwrapped_[kUnwrapped];  // constructed up to num_unwrapped
  };
#ifdef FASTOPS_ASSERTIONS
  int room_ = kInputs;
  int room_for_lists_ = kLists;
#endif
  int num_owned_ = 0;
  int num_lists_ = 0;

 public:
  int size = 0;
  int num_unwrapped = 0;
  size_t bytes = 0;
  // The tensors belong to the objects and are valid while the objects live.
  tensorflow::TensorValue* tensors = reinterpret_cast<tensorflow::TensorValue*>(few_tensors_);
  PyObject** objects = few_objects_;
  TFE_TensorHandle** handles = few_handles_;
  int* list_lengths = few_list_lengths_;
  // The part of the cache key that depends on the inputs: dtypes, and the positions and lengths of
  // lists.
  uint8_t* signature = few_signature_;
  size_t signature_size = 0;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_FRAME_H_
