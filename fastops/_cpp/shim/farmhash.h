// Declarations for a header that TensorFlow's own headers include but the wheel does not ship.
// The definitions are in libtensorflow_framework. fastops calls none of these functions.
#ifndef FASTOPS_CPP_SHIM_FARMHASH_H_
#define FASTOPS_CPP_SHIM_FARMHASH_H_

#include <cstddef>
#include <cstdint>
#include <utility>

namespace util {

typedef std::pair<uint64_t, uint64_t> uint128_t;

inline uint64_t Uint128Low64(const uint128_t x) { return x.first; }
inline uint64_t Uint128High64(const uint128_t x) { return x.second; }

uint32_t Fingerprint32(const char* data, size_t size);
uint64_t Fingerprint64(const char* data, size_t size);
uint128_t Fingerprint128(const char* data, size_t size);

}  // namespace util

#endif  // FASTOPS_CPP_SHIM_FARMHASH_H_
