// Casts numbers as NumPy and TensorFlow do, in the cases in which neither of them warns or fails.
#ifndef FASTOPS_CPP_CASTS_H_
#define FASTOPS_CPP_CASTS_H_

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensorflow/core/framework/bfloat16.h"
#include "tensorflow/core/framework/types.h"

namespace fastops {

template <typename T>
constexpr bool kIsComplex = !std::is_arithmetic_v<T> && std::is_class_v<T>;
template <>
inline constexpr bool kIsComplex<Eigen::half> = false;
template <>
inline constexpr bool kIsComplex<Eigen::bfloat16> = false;

// Floating-point numbers of 16 bits.
template <typename T>
constexpr bool kIsShort = std::is_same_v<T, Eigen::half> || std::is_same_v<T, Eigen::bfloat16>;

// Whether a cast of a number had no overflow or underflow, about which NumPy would warn.
template <typename To>
bool HasCome(double from, To to) {
  const auto wide = static_cast<double>(to);
  return from == 0.0 || std::isinf(from) ||
         (std::isfinite(wide) &&
          std::abs(wide) >= static_cast<double>(std::numeric_limits<To>::min()));
}

// Casts a number. Returns false if the result does not depend on the value alone, if more than
// precision would be lost, or if NumPy might warn: about NaN, overflow or an imaginary part.
template <typename From, typename To>
bool Cast(From from, To* to) {
  if constexpr (std::is_same_v<From, To>) {
    *to = from;
    return true;
  } else if constexpr (kIsComplex<To>) {
    typename To::value_type real(0), imaginary(0);
    if constexpr (kIsComplex<From>) {
      if (!Cast(from.real(), &real) || !Cast(from.imag(), &imaginary)) return false;
    } else {
      if (!Cast(from, &real)) return false;
    }
    *to = To(real, imaginary);
    return true;
  } else if constexpr (kIsComplex<From>) {
    return false;
  } else if constexpr (kIsShort<From>) {
    return Cast(static_cast<float>(from), to);
  } else if constexpr (std::is_floating_point_v<From>) {
    if (std::isnan(from)) return false;
    if constexpr (std::is_same_v<To, bool>) {
      *to = from != 0;
      return true;
    } else if constexpr (std::is_integral_v<To>) {
      const double whole = std::trunc(static_cast<double>(from));
      const double end = std::ldexp(1.0, std::numeric_limits<To>::digits);
      if (whole < static_cast<double>(std::numeric_limits<To>::min()) || whole >= end) return false;
      *to = static_cast<To>(from);
      return true;
    } else if constexpr (kIsShort<To>) {
      // The cast goes through float, so the value must be exact in float. Otherwise it would be
      // rounded twice.
      const auto single = static_cast<float>(from);
      if (static_cast<double>(single) != static_cast<double>(from)) return false;
      *to = static_cast<To>(single);
      return HasCome(from, *to);
    } else {
      *to = static_cast<To>(from);
      return HasCome(from, *to);
    }
  } else if constexpr (std::is_same_v<To, bool>) {
    *to = from != 0;
    return true;
  } else if constexpr (kIsShort<To>) {
    const auto single = static_cast<float>(from);
    return std::abs(single) <= 0x1p24f && Cast(single, to);
  } else {
    *to = static_cast<To>(from);
    return true;
  }
}

// Calls `visit` with a value of the C++ type of a dtype. Returns false for a dtype that this file
// does not cast.
template <typename Visit>
bool WithTypeOf(tensorflow::DataType dtype, Visit visit) {
  switch (dtype) {
#define FASTOPS_TYPE(Enum, Type) \
  case tensorflow::Enum:         \
    return visit(Type())
    FASTOPS_TYPE(DT_BOOL, bool);
    FASTOPS_TYPE(DT_INT8, int8_t);
    FASTOPS_TYPE(DT_UINT8, uint8_t);
    FASTOPS_TYPE(DT_INT16, int16_t);
    FASTOPS_TYPE(DT_UINT16, uint16_t);
    FASTOPS_TYPE(DT_INT32, int32_t);
    FASTOPS_TYPE(DT_UINT32, uint32_t);
    FASTOPS_TYPE(DT_INT64, int64_t);
    FASTOPS_TYPE(DT_UINT64, uint64_t);
    FASTOPS_TYPE(DT_HALF, Eigen::half);
    FASTOPS_TYPE(DT_BFLOAT16, Eigen::bfloat16);
    FASTOPS_TYPE(DT_FLOAT, float);
    FASTOPS_TYPE(DT_DOUBLE, double);
    FASTOPS_TYPE(DT_COMPLEX64, std::complex<float>);
    FASTOPS_TYPE(DT_COMPLEX128, std::complex<double>);
#undef FASTOPS_TYPE
    default:
      return false;
  }
}

// Casts `count` numbers. They are contiguous and aligned.
inline bool CastAll(tensorflow::DataType from, const void* values, tensorflow::DataType to,
                    void* results, int64_t count) {
  if (tensorflow::DataTypeIsComplex(from) && !tensorflow::DataTypeIsComplex(to)) return false;
  if (from == tensorflow::DT_BOOL) {  // NumPy allows any byte as a bool
    const auto* bytes = static_cast<const uint8_t*>(values);
    for (int64_t i = 0; i < count; ++i) {
      if (bytes[i] > 1) return false;
    }
  }
  return WithTypeOf(from, [&](auto source) {
    return WithTypeOf(to, [&](auto target) {
      const auto* in = static_cast<const decltype(source)*>(values);
      auto* out = static_cast<decltype(target)*>(results);
      for (int64_t i = 0; i < count; ++i) {
        if (!Cast(in[i], &out[i])) return false;
      }
      return true;
    });
  });
}

}  // namespace fastops

#endif  // FASTOPS_CPP_CASTS_H_
