// The memory of the device: nobody but the device's own threads can touch it.
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

// Tells what is wrong and ends the process: a test that goes on would prove nothing.
[[noreturn]] void Die(const char* what, const void* where, size_t size);

// One device's. Its pages are mapped twice. The addresses that TensorFlow gets are in the mapping
// that nobody may read or write, so that a host that follows one ends at once. The device computes
// in the other mapping.
class Memory {
 public:
  Memory();

  void* Allocate(size_t size);
  // From now on no work may be given to a stream that uses the block. What was given before may
  // still do so: when that is done the block is filled with kFreed, and may be handed out again.
  void Free(void* shown);

  bool Has(const void* shown) const;
  // Whether all of it lies in a block that is not free.
  bool IsAlive(const void* shown, size_t size) const;
  char* Own(const void* shown) const;

  int64_t allocated() const;  // blocks, ever
  int64_t last() const;       // the block that was handed out last
  int64_t live() const;       // blocks
  int64_t live_bytes() const;

  static constexpr size_t kSize = size_t{1} << 30;  // pages are made as they are used

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

// Ends the process unless TensorFlow may use that memory of some device now.
void CheckAlive(const void* shown, size_t size);

// Where the device finds what TensorFlow knows by that address. For threads of the device.
char* Own(const void* shown);

}  // namespace fastops_test

#endif  // FASTOPS_TESTS_DEVICE_MEMORY_H_
