// FindPrimitive: looks up a primitive in TensorFlow's cache, of which each thread has its own.
#ifndef FASTOPS_CPP_ONEDNN_PRIMITIVE_CACHE_H_
#define FASTOPS_CPP_ONEDNN_PRIMITIVE_CACHE_H_

#include <dlfcn.h>

#include <string>

#include "onednn/symbols.h"

namespace fastops {

// The cache of this thread; null if no kernel has looked up a primitive in this thread. Both
// symbols are variables of the thread, whose own copies `dlsym` returns. So no other thread writes
// them.
inline symbols::PrimitiveCache* CacheHere() {
  static thread_local symbols::PrimitiveCache* cache = nullptr;
  if (cache == nullptr) {
    const auto* made = static_cast<const char*>(dlsym(RTLD_DEFAULT, symbols::kCacheGuard));
    if (made != nullptr && *made != 0) {
      cache = static_cast<symbols::PrimitiveCache*>(dlsym(RTLD_DEFAULT, symbols::kCache));
    }
  }
  return cache;
}

// Whether TensorFlow exports what `FindPrimitive` needs.
inline bool CanFindPrimitives() {
  if (symbols::AreExported(symbols::GetOp)) return true;
  static const bool can = symbols::AreExported(symbols::GetOpOfCache) &&
                          dlsym(RTLD_DEFAULT, symbols::kCache) != nullptr &&
                          dlsym(RTLD_DEFAULT, symbols::kCacheGuard) != nullptr;
  return can;
}

// The primitive for a key in the cache of this thread; null if the cache has none. Like a look-up
// by the kernel, it moves the primitive to the end of those that TensorFlow deletes first.
inline tensorflow::MklPrimitive* FindPrimitive(const std::string& key) {
  if (symbols::AreExported(symbols::GetOp)) {
    tensorflow::MklPrimitiveFactory<float> factory;  // has no members
    return symbols::GetOp(&factory, key);
  }
  symbols::PrimitiveCache* cache = CacheHere();
  return cache == nullptr ? nullptr : symbols::GetOpOfCache(cache, key);
}

}  // namespace fastops

#endif  // FASTOPS_CPP_ONEDNN_PRIMITIVE_CACHE_H_
