// The memory of the device, which only the device's own threads can access.
#ifndef FASTOPS_TESTS_DEVICE_MEMORY_H_
#define FASTOPS_TESTS_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace fastops_test {

constexpr int kDevices = 2;

// Prints what is wrong and ends the process, because a test that continues would prove nothing.
[[noreturn]] void Die(const char* what, const void* where, size_t size);

// The memory of one device. Its pages are mapped twice. TensorFlow gets addresses in a mapping that
// cannot be read or written, so that any access by the host crashes at once. The device computes in
// the other mapping.
class Memory {
 public:
  Memory();

  void* Allocate(size_t size);
  // After this call, no work that uses the block may be given to a stream. Work that was given
  // before may still use it. When that work is done, the block is filled with kFreed and may be
  // allocated again.
  void Free(void* shown);

  bool Has(const void* shown) const;
  // Whether the whole range is in a block that is in use.
  bool IsAlive(const void* shown, size_t size) const;
  char* Own(const void* shown) const;

  int64_t allocated() const;  // blocks ever allocated
  int64_t last() const;       // the block that was allocated last
  int64_t live() const;       // blocks in use
  int64_t live_bytes() const;

  static constexpr size_t kSize = size_t{1} << 30;  // pages are created on first use

 private:
  static constexpr size_t kAlignment = 256;
  static constexpr int kFreed = 0xDD;

  mutable std::mutex mutex_;
  char* shown_;
  char* own_;
  size_t used_ = 0;
  int64_t allocated_ = 0;
  uintptr_t last_ = 0;
  std::map<uintptr_t, size_t> alive_;                  // address: size
  std::map<size_t, std::vector<uintptr_t>> reusable_;  // size: addresses
};

Memory& MemoryOf(int device);

// Ends the process unless the range is memory of a device that TensorFlow may use now.
void CheckAlive(const void* shown, size_t size);

// The device's own address for an address of TensorFlow. Only for threads of the device.
char* Own(const void* shown);

}  // namespace fastops_test

#endif  // FASTOPS_TESTS_DEVICE_MEMORY_H_
