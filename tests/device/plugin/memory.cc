#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "stream.h"

namespace fastops_test {

void Die(const char* what, const void* where, size_t size) {
  std::fprintf(stderr, "the test's device: %s: %zu bytes at %p\n", what, size, where);
  std::abort();
}

Memory::Memory() {
  const int file = memfd_create("fastops-test-device", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, kSize) != 0) Die("no memory", nullptr, kSize);
  const auto map = [&](int protection) {
    void* made = mmap(nullptr, kSize, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (made == MAP_FAILED) Die("no memory", nullptr, kSize);
    return static_cast<char*>(made);
  };
  shown_ = map(PROT_NONE);
  own_ = map(PROT_READ | PROT_WRITE);
  close(file);
}

void* Memory::Allocate(size_t size) {
  size = (size + kAlignment - 1) / kAlignment * kAlignment;
  if (size == 0) size = kAlignment;
  std::lock_guard<std::mutex> lock(mutex_);
  uintptr_t block;
  auto& free = reusable_[size];
  if (!free.empty()) {
    block = free.back();
    free.pop_back();
  } else {
    if (size > kSize - used_) return nullptr;
    block = reinterpret_cast<uintptr_t>(shown_) + used_;
    used_ += size;
  }
  ++allocated_;
  alive_[block] = size;
  last_ = block;
  return reinterpret_cast<void*>(block);
}

void Memory::Free(void* shown) {
  if (shown == nullptr) return;
  const auto block = reinterpret_cast<uintptr_t>(shown);
  size_t size;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = alive_.find(block);
    if (found == alive_.end()) Die("freed, but no block that is in use", shown, 0);
    size = found->second;
    alive_.erase(found);
  }
  AfterAllStreams([this, block, size] {
    std::memset(Own(reinterpret_cast<void*>(block)), kFreed, size);
    std::lock_guard<std::mutex> lock(mutex_);
    reusable_[size].push_back(block);
  });
}

bool Memory::Has(const void* shown) const {
  const auto* place = static_cast<const char*>(shown);
  return place >= shown_ && place < shown_ + kSize;
}

bool Memory::IsAlive(const void* shown, size_t size) const {
  const auto place = reinterpret_cast<uintptr_t>(shown);
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = alive_.upper_bound(place);
  if (found == alive_.begin()) return false;
  --found;
  return place + size <= found->first + found->second;
}

char* Memory::Own(const void* shown) const {
  return own_ + (static_cast<const char*>(shown) - shown_);
}

int64_t Memory::allocated() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return allocated_;
}

int64_t Memory::last() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(last_);
}

int64_t Memory::live() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(alive_.size());
}

int64_t Memory::live_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  int64_t bytes = 0;
  for (const auto& [block, size] : alive_) bytes += static_cast<int64_t>(size);
  return bytes;
}

Memory& MemoryOf(int device) {
  static auto* memories = new std::vector<Memory*>{new Memory, new Memory};
  static_assert(kDevices == 2);
  return *(*memories)[device];
}

namespace {

const Memory& MemoryWith(const void* shown, size_t size) {
  for (int device = 0; device < kDevices; ++device) {
    if (MemoryOf(device).Has(shown)) return MemoryOf(device);
  }
  Die("not the device's memory", shown, size);
}

}  // namespace

void CheckAlive(const void* shown, size_t size) {
  if (size != 0 && !MemoryWith(shown, size).IsAlive(shown, size)) {
    Die("used, but free or too short", shown, size);
  }
}

char* Own(const void* shown) {
  return shown == nullptr ? nullptr : MemoryWith(shown, 0).Own(shown);
}

}  // namespace fastops_test
