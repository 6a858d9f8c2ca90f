// The host device with a faster allocator for small tensors.
//
// TensorFlow allocates every tensor with posix_memalign. glibc does not cache such chunks per
// thread, and frees them slowly: that took 75 of the 360 ns of a scalar kernel. Here a slightly
// larger malloc is aligned by hand, so that glibc can serve it from the thread's cache.
#ifndef FASTOPS_CPP_DEVICE_H_
#define FASTOPS_CPP_DEVICE_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/allocator.h"
#include "threads.h"

namespace fastops {

// Never destroyed: tensors point to the allocator that frees them.
class SmallTensorAllocator : public tensorflow::Allocator {
 public:
  static SmallTensorAllocator* Get() {
    static auto* allocator = new SmallTensorAllocator(tensorflow::cpu_allocator());
    return allocator;
  }

  std::string Name() override { return "fastops_small"; }

  // Serves all sizes, since `DeallocateRaw` does not receive the size. Large chunks come from
  // TensorFlow's allocator.
  void* AllocateRaw(size_t alignment, size_t num_bytes) override {
    if (num_bytes > kSmall || alignment > kAlignment) {
      const size_t space = alignment > kAlignment ? alignment : kAlignment;
      void* chunk = large_->AllocateRaw(alignment, num_bytes + space);
      return chunk == nullptr ? nullptr : Mark(chunk, space, kLarge);
    }
    void* chunk = std::malloc(num_bytes + kAlignment + sizeof(uintptr_t));
    if (chunk == nullptr) return nullptr;
    const uintptr_t first = reinterpret_cast<uintptr_t>(chunk) + sizeof(uintptr_t);
    const uintptr_t aligned = (first + kAlignment - 1) & ~(kAlignment - 1);
    return Mark(chunk, aligned - reinterpret_cast<uintptr_t>(chunk), 0);
  }

  void DeallocateRaw(void* ptr) override {
    const uintptr_t origin = static_cast<uintptr_t*>(ptr)[-1];
    void* chunk = reinterpret_cast<void*>(origin & ~kLarge);
    if (origin & kLarge) {
      large_->DeallocateRaw(chunk);
    } else {
      std::free(chunk);
    }
  }

 private:
  // The largest size that, with the overhead, still fits in glibc's cache of a thread.
  static constexpr size_t kSmall = 896;
  static constexpr uintptr_t kAlignment = tensorflow::Allocator::kAllocatorAlignment;
  static constexpr uintptr_t kLarge = 1;  // chunks are at least 16-aligned: the bit is free

  explicit SmallTensorAllocator(tensorflow::Allocator* large) : large_(large) {}

  // Stores the address of the chunk in the word before the memory that is returned. Another thread
  // may free it: the one that drops the last reference to the buffer, a counter that TensorFlow
  // decrements with acquire and release.
  static void* Mark(void* chunk, size_t offset, uintptr_t flag) {
    char* memory = static_cast<char*>(chunk) + offset;
    reinterpret_cast<uintptr_t*>(memory)[-1] = reinterpret_cast<uintptr_t>(chunk) | flag;
    return memory;
  }

  tensorflow::Allocator* const large_;
};

// The device that kernels get: the host device with a different allocator. TensorFlow's own
// RenamedDevice wraps a device in the same way.
class HostDevice : public tensorflow::Device {
 public:
  explicit HostDevice(tensorflow::Device* host)
      : Device(host->env(), host->attributes()), host_(host) {
    set_tensorflow_cpu_worker_threads(
        const_cast<CpuWorkerThreads*>(host->tensorflow_cpu_worker_threads()));
  }

  tensorflow::Allocator* GetAllocator(tensorflow::AllocatorAttributes attr) override {
    // The host's own allocator provides memory that an accelerator or a network card reads.
    if (attr.gpu_compatible() || attr.nic_compatible()) return host_->GetAllocator(attr);
    return SmallTensorAllocator::Get();
  }

  const DeviceBase* UnderlyingDevice() const override { return host_->UnderlyingDevice(); }
  DeviceBase* UnderlyingDevice() override { return host_->UnderlyingDevice(); }
  const CpuWorkerThreads* tensorflow_cpu_worker_threads() const override {
    return host_->tensorflow_cpu_worker_threads();
  }
  const AcceleratorDeviceInfo* tensorflow_accelerator_device_info() const override {
    return host_->tensorflow_accelerator_device_info();
  }
  tensorflow::Allocator* GetScopedAllocator(tensorflow::AllocatorAttributes attr,
                                            int64_t step_id) override {
    return host_->GetScopedAllocator(attr, step_id);
  }
  tensorflow::ScopedAllocatorMgr* GetScopedAllocatorMgr() const override {
    return host_->GetScopedAllocatorMgr();
  }
  const Eigen::ThreadPoolDevice* eigen_cpu_device() override { return host_->eigen_cpu_device(); }
  bool has_eigen_cpu_device() const override { return host_->has_eigen_cpu_device(); }
  tensorflow::thread::ThreadPool* tensorflow_device_thread_pool() override {
    return host_->tensorflow_device_thread_pool();
  }
  absl::Status MakeTensorFromProto(const tensorflow::TensorProto& proto,
                                   const tensorflow::AllocatorAttributes attr,
                                   tensorflow::Tensor* tensor) override {
    return host_->MakeTensorFromProto(proto, attr, tensor);
  }
  void CopyTensorInSameDevice(const tensorflow::Tensor* input, tensorflow::Tensor* output,
                              const tensorflow::DeviceContext* context,
                              tensorflow::StatusCallback done) override {
    host_->CopyTensorInSameDevice(input, output, context, std::move(done));
  }
  absl::Status Sync() override { return host_->Sync(); }
  absl::Status TryGetDeviceContext(tensorflow::DeviceContext** context) override {
    return host_->TryGetDeviceContext(context);
  }
  tensorflow::ResourceMgr* resource_manager() override { return host_->resource_manager(); }
  bool IsLocal() const override { return host_->IsLocal(); }
  bool IsRemoteCallAllowed() const override { return host_->IsRemoteCallAllowed(); }

 private:
  tensorflow::Device* const host_;  // borrowed from the context
};

// A `HostDevice` for kernels whose tasks run in the calling thread, not in the host's threads.
class CallerDevice : public HostDevice {
 public:
  explicit CallerDevice(tensorflow::Device* host)
      : HostDevice(host),
        pool_(host->tensorflow_cpu_worker_threads()->workers->AsEigenThreadPool()),
        workers_(&pool_),
        eigen_(&pool_, host->eigen_cpu_device()->numThreads(),
               host->eigen_cpu_device()->allocator()) {
    threads_.num_threads = host->tensorflow_cpu_worker_threads()->num_threads;
    threads_.workers = &workers_;
    set_tensorflow_cpu_worker_threads(&threads_);
  }

  const CpuWorkerThreads* tensorflow_cpu_worker_threads() const override { return &threads_; }
  const Eigen::ThreadPoolDevice* eigen_cpu_device() override {
    // The host returns a device with fewer threads to threads that have requested one.
    const Eigen::ThreadPoolDevice* theirs = HostDevice::eigen_cpu_device();
    return theirs->numThreads() == eigen_.numThreads() ? &eigen_ : theirs;
  }
  CallerPool& pool() { return pool_; }

 private:
  CallerPool pool_;
  tsl::thread::ThreadPool workers_;
  Eigen::ThreadPoolDevice eigen_;
  CpuWorkerThreads threads_;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_DEVICE_H_
