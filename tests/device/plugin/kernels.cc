// Kernels of the device through TensorFlow's C interface. They are not optimized for speed.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <type_traits>

#include "launch.h"

namespace fastops_test {
namespace {

// Iterates over the elements of an array in row-major order, together with the offsets of elements
// in other arrays, which have their own strides.
class Walk {
 public:
  Walk(Sizes sizes, std::vector<Sizes> strides)
      : sizes_(std::move(sizes)),
        strides_(std::move(strides)),
        at_(sizes_.size(), 0),
        places_(strides_.size(), 0) {}

  int64_t operator[](int which) const { return places_[which]; }

  void Next() {
    for (int axis = static_cast<int>(sizes_.size()) - 1; axis >= 0; --axis) {
      Move(axis, 1);
      if (++at_[axis] < sizes_[axis]) return;
      Move(axis, -at_[axis]);
      at_[axis] = 0;
    }
  }

 private:
  void Move(int axis, int64_t steps) {
    for (size_t i = 0; i < places_.size(); ++i) places_[i] += steps * strides_[i][axis];
  }

  const Sizes sizes_;
  const std::vector<Sizes> strides_;
  Sizes at_;
  Sizes places_;
};

Sizes StridesOf(const Sizes& sizes) {
  Sizes strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i]) strides[i] = stride;
  return strides;
}

// Strides that broadcast: dimensions of size 1, and missing leading dimensions, are repeated.
Sizes Repeating(const Sizes& sizes, const Sizes& result) {
  const Sizes own = StridesOf(sizes);
  const size_t missing = result.size() - sizes.size();
  Sizes strides(result.size(), 0);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1) strides[missing + i] = own[i];
  }
  return strides;
}

Sizes Broadcast(const Sizes& one, const Sizes& other) {
  Sizes result(std::max(one.size(), other.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    const size_t back = result.size() - i;
    const int64_t a = back > one.size() ? 1 : one[one.size() - back];
    const int64_t b = back > other.size() ? 1 : other[other.size() - back];
    if (a != b && a != 1 && b != 1) {
      throw Failure{TF_INVALID_ARGUMENT,
                    "Incompatible shapes: " + Text(one) + " vs. " + Text(other)};
    }
    result[i] = a == 1 ? b : a;
  }
  return result;
}

int64_t AxisOf(int64_t axis, size_t rank) {
  const auto size = static_cast<int64_t>(rank);
  if (axis < -size || axis >= size) {
    throw Failure{TF_INVALID_ARGUMENT, "axis " + std::to_string(axis) + " is out of range"};
  }
  return axis < 0 ? axis + size : axis;
}

// ----------------------------------------------------------------------------------------------
// Elementwise
// ----------------------------------------------------------------------------------------------

template <typename Function>
struct Unary {
  explicit Unary(Attributes) {}
  void Run(Launch& launch) {
    const Array x = launch.Input(0);
    const Array y = launch.Output(0, x.dtype, x.sizes);
    launch.Enqueue([=] {
      ForType(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        for (int64_t i = 0; i < x.count(); ++i) y.own<T>()[i] = Function()(x.own<T>()[i]);
      });
    });
  }
};

template <typename Function>
struct Binary {
  explicit Binary(Attributes) {}
  void Run(Launch& launch) {
    const Array x = launch.Input(0), y = launch.Input(1);
    const Sizes sizes = Broadcast(x.sizes, y.sizes);
    constexpr bool kAsks = std::is_same_v<decltype(Function()(1.0, 1.0)), bool>;
    const Array z = launch.Output(0, kAsks ? TF_BOOL : x.dtype, sizes);
    launch.Enqueue([=] {
      ForType(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        Walk walk(sizes, {Repeating(x.sizes, sizes), Repeating(y.sizes, sizes)});
        for (int64_t i = 0; i < z.count(); ++i, walk.Next()) {
          const auto value = Function()(x.own<T>()[walk[0]], y.own<T>()[walk[1]]);
          z.own<std::conditional_t<kAsks, bool, T>>()[i] = value;
        }
      });
    });
  }
};

#define UNARY(name, expression)          \
  struct name {                          \
    template <typename T>                \
    T operator()(T x) const {            \
      return static_cast<T>(expression); \
    }                                    \
  };
#define BINARY(name, expression)         \
  struct name {                          \
    template <typename T>                \
    T operator()(T x, T y) const {       \
      return static_cast<T>(expression); \
    }                                    \
  };
#define ASKING(name, expression)      \
  struct name {                       \
    template <typename T>             \
    bool operator()(T x, T y) const { \
      return expression;              \
    }                                 \
  };

UNARY(Neg, -x)
UNARY(Abs, x < 0 ? -x : x)
UNARY(Square, x* x)
UNARY(Sign, x > 0 ? 1 : x < 0 ? -1 : 0)
UNARY(Sqrt, std::sqrt(x))
UNARY(Rsqrt, 1 / std::sqrt(x))
UNARY(Exp, std::exp(x))
UNARY(Log, std::log(x))
UNARY(Log1p, std::log1p(x))
UNARY(Sigmoid, 1 / (1 + std::exp(-x)))
UNARY(Tanh, std::tanh(x))
UNARY(Relu, x > 0 ? x : T(0))
UNARY(Reciprocal, 1 / x)
UNARY(LogicalNot, !x)
UNARY(ZerosLike, T(0) * (x != x))
UNARY(OnesLike, T(1) + T(0) * (x != x))

BINARY(AddV2, x + y)
BINARY(Sub, x - y)
BINARY(Mul, x* y)
BINARY(RealDiv, x / y)
BINARY(DivNoNan, y == T(0) ? T(0) : x / y)
BINARY(Maximum, x > y ? x : y)
BINARY(Minimum, x < y ? x : y)
BINARY(SquaredDifference, (x - y) * (x - y))
BINARY(Pow, std::pow(x, y))
BINARY(LogicalAnd, x&& y)
BINARY(LogicalOr, x || y)
// The gradient is the last input, except in ReluGrad.
BINARY(ReluGrad, x*(y > 0))
BINARY(TanhGrad, y * (1 - x * x))
BINARY(SigmoidGrad, y * x * (1 - x))
BINARY(SqrtGrad, y / 2 / x)
BINARY(RsqrtGrad, y * x * x * x / -2)

ASKING(Less, x < y)
ASKING(LessEqual, x <= y)
ASKING(Greater, x > y)
ASKING(GreaterEqual, x >= y)
ASKING(Equal, x == y)
ASKING(NotEqual, x != y)

struct Select {
  explicit Select(Attributes) {}
  void Run(Launch& launch) {
    const Array which = launch.Input(0), x = launch.Input(1), y = launch.Input(2);
    const Sizes sizes = Broadcast(which.sizes, Broadcast(x.sizes, y.sizes));
    const Array z = launch.Output(0, x.dtype, sizes);
    launch.Enqueue([=] {
      ForType(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        Walk walk(sizes, {Repeating(which.sizes, sizes), Repeating(x.sizes, sizes),
                          Repeating(y.sizes, sizes)});
        for (int64_t i = 0; i < z.count(); ++i, walk.Next()) {
          z.own<T>()[i] = which.own<bool>()[walk[0]] ? x.own<T>()[walk[1]] : y.own<T>()[walk[2]];
        }
      });
    });
  }
};

struct Cast {
  explicit Cast(Attributes attributes) : dtype(attributes.Type("DstT")) {}
  void Run(Launch& launch) {
    const Array x = launch.Input(0);
    const Array y = launch.Output(0, dtype, x.sizes);
    launch.Enqueue([=] {
      ForType(x.dtype, [&](auto from) {
        ForType(y.dtype, [&](auto to) {
          for (int64_t i = 0; i < x.count(); ++i) {
            y.own<decltype(to)>()[i] = static_cast<decltype(to)>(x.own<decltype(from)>()[i]);
          }
        });
      });
    });
  }
  const TF_DataType dtype;
};

struct AddN {
  explicit AddN(Attributes) {}
  void Run(Launch& launch) {
    std::vector<Array> inputs;
    for (int i = 0; i < launch.inputs(); ++i) {
      inputs.push_back(launch.Input(i));
      if (inputs[i].sizes != inputs[0].sizes) {
        throw Failure{TF_INVALID_ARGUMENT, "Inputs to operation AddN must have the same shape"};
      }
    }
    const Array sum = launch.Output(0, inputs[0].dtype, inputs[0].sizes);
    launch.Enqueue([=] {
      ForType(sum.dtype, [&](auto zero) {
        using T = decltype(zero);
        for (int64_t i = 0; i < sum.count(); ++i) {
          T total = inputs[0].own<T>()[i];
          for (size_t j = 1; j < inputs.size(); ++j) total += inputs[j].own<T>()[i];
          sum.own<T>()[i] = total;
        }
      });
    });
  }
};

// Reports infinities and NaNs to the host later, as a fault of the device.
struct CheckNumerics {
  explicit CheckNumerics(Attributes attributes) : message(attributes.String("message")) {}
  void Run(Launch& launch) {
    const Array x = launch.Input(0);
    const Array y = launch.Output(0, x.dtype, x.sizes);
    const int device = launch.device();
    launch.Enqueue([=, message = message] {
      ForType(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        for (int64_t i = 0; i < x.count(); ++i) {
          const T value = x.own<T>()[i];
          if (!std::isfinite(static_cast<double>(value))) SetFault(device, message);
          y.own<T>()[i] = value;
        }
      });
    });
  }
  const std::string message;
};

// ----------------------------------------------------------------------------------------------
// Moving elements
// ----------------------------------------------------------------------------------------------

// Reads `x` with these strides, beginning at `first`.
void Gather(Launch& launch, const Array& x, const Array& y, Sizes strides, int64_t first = 0) {
  launch.Enqueue([=] {
    ForType(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      Walk walk(y.sizes, {strides});
      for (int64_t i = 0; i < y.count(); ++i, walk.Next()) {
        y.own<T>()[i] = x.own<T>()[first + walk[0]];
      }
    });
  });
}

struct Transpose {
  explicit Transpose(Attributes) {}
  void Run(Launch& launch) {
    const Array x = launch.Input(0);
    Sizes sizes, strides;
    const Sizes own = StridesOf(x.sizes);
    for (const int64_t axis : launch.HostInts(1)) {
      sizes.push_back(x.sizes[AxisOf(axis, x.sizes.size())]);
      strides.push_back(own[AxisOf(axis, x.sizes.size())]);
    }
    Gather(launch, x, launch.Output(0, x.dtype, sizes), strides);
  }
};

struct BroadcastTo {
  explicit BroadcastTo(Attributes) {}
  void Run(Launch& launch) {
    const Array x = launch.Input(0);
    const Sizes sizes = launch.HostInts(1);
    if (Broadcast(x.sizes, sizes) != sizes) {
      throw Failure{TF_INVALID_ARGUMENT,
                    "Incompatible shapes: " + Text(x.sizes) + " vs. " + Text(sizes)};
    }
    Gather(launch, x, launch.Output(0, x.dtype, sizes), Repeating(x.sizes, sizes));
  }
};

struct Fill {
  explicit Fill(Attributes) {}
  void Run(Launch& launch) {
    const Sizes sizes = launch.HostInts(0);
    const Array value = launch.Input(1);
    Gather(launch, value, launch.Output(0, value.dtype, sizes), Sizes(sizes.size(), 0));
  }
};

struct Slice {
  explicit Slice(Attributes) {}
  void Run(Launch& launch) {
    const Array x = launch.Input(0);
    const Sizes begin = launch.HostInts(1);
    Sizes sizes = launch.HostInts(2);
    const Sizes strides = StridesOf(x.sizes);
    int64_t first = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == -1) sizes[i] = x.sizes[i] - begin[i];
      if (begin[i] < 0 || sizes[i] < 0 || begin[i] + sizes[i] > x.sizes[i]) {
        throw Failure{TF_INVALID_ARGUMENT, "slice " + std::to_string(i) + " is out of range"};
      }
      first += begin[i] * strides[i];
    }
    Gather(launch, x, launch.Output(0, x.dtype, sizes), strides, first);
  }
};

struct Tile {
  explicit Tile(Attributes) {}
  void Run(Launch& launch) {
    const Array x = launch.Input(0);
    const Sizes times = launch.HostInts(1);
    Sizes sizes = x.sizes;
    for (size_t i = 0; i < sizes.size(); ++i) sizes[i] *= times.at(i);
    const Array y = launch.Output(0, x.dtype, sizes);
    launch.Enqueue([=] {
      ForType(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        const Sizes strides = StridesOf(y.sizes), own = StridesOf(x.sizes);
        for (int64_t i = 0; i < y.count(); ++i) {
          int64_t place = 0;
          for (size_t axis = 0; axis < own.size(); ++axis) {
            place += i / strides[axis] % y.sizes[axis] % x.sizes[axis] * own[axis];
          }
          y.own<T>()[i] = x.own<T>()[place];
        }
      });
    });
  }
};

// Concatenates arrays, each of `outer` rows, along the other dimension.
void Join(Launch& launch, const std::vector<Array>& parts, const Array& whole, int64_t outer) {
  launch.Enqueue([=] {
    if (outer == 0) return;
    char* to = whole.own<char>();
    for (int64_t row = 0; row < outer; ++row) {
      for (const Array& part : parts) {
        const size_t bytes = part.bytes() / outer;
        if (bytes == 0) continue;
        std::copy_n(part.own<char>() + row * bytes, bytes, to);
        to += bytes;
      }
    }
  });
}

struct Concat {
  explicit Concat(Attributes) {}
  void Run(Launch& launch) {
    std::vector<Array> parts;
    for (int i = 0; i + 1 < launch.inputs(); ++i) parts.push_back(launch.Input(i));
    Sizes sizes = parts[0].sizes;
    const int64_t axis = AxisOf(launch.HostInts(launch.inputs() - 1).at(0), sizes.size());
    for (size_t i = 1; i < parts.size(); ++i) {
      Sizes other = parts[i].sizes;
      if (other.size() == sizes.size()) {
        sizes[axis] += other[axis];
        other[axis] = sizes[axis];
      }
      if (other != sizes) {
        throw Failure{TF_INVALID_ARGUMENT,
                      "ConcatOp : Dimension mismatch: shape[0] = " + Text(parts[0].sizes) +
                          " vs. shape[" + std::to_string(i) + "] = " + Text(parts[i].sizes)};
      }
    }
    const Sizes before(sizes.begin(), sizes.begin() + axis);
    Join(launch, parts, launch.Output(0, parts[0].dtype, sizes), Product(before));
  }
};

struct Pack {
  explicit Pack(Attributes attributes) : axis(attributes.Int("axis")) {}
  void Run(Launch& launch) {
    std::vector<Array> parts;
    for (int i = 0; i < launch.inputs(); ++i) {
      parts.push_back(launch.Input(i));
      if (parts[i].sizes != parts[0].sizes) {
        throw Failure{TF_INVALID_ARGUMENT, "Shapes of all inputs must match"};
      }
    }
    Sizes sizes = parts[0].sizes;
    const int64_t place = AxisOf(axis, sizes.size() + 1);
    const Sizes before(sizes.begin(), sizes.begin() + place);
    sizes.insert(sizes.begin() + place, static_cast<int64_t>(parts.size()));
    Join(launch, parts, launch.Output(0, parts[0].dtype, sizes), Product(before));
  }
  const int64_t axis;
};

// The device detects indices out of range.
struct GatherV2 {
  explicit GatherV2(Attributes attributes) : batch_dims(attributes.Int("batch_dims")) {}
  void Run(Launch& launch) {
    const Array x = launch.Input(0), indices = launch.Input(1);
    const auto rank = static_cast<int64_t>(x.sizes.size());
    int64_t axis = launch.HostInts(2).at(0);
    if (axis < 0) axis += rank;
    if (batch_dims < 0 || axis < batch_dims || axis >= rank) {
      throw Failure{TF_UNIMPLEMENTED, "the device gathers along an axis after those of batches"};
    }
    const auto product = [](auto first, auto last) {
      return std::accumulate(first, last, int64_t{1}, std::multiplies<>());
    };
    const auto x_begin = x.sizes.begin(), i_begin = indices.sizes.begin();
    const int64_t batches = product(x_begin, x_begin + batch_dims);
    const int64_t outer = product(x_begin + batch_dims, x_begin + axis);
    const int64_t count = product(i_begin + batch_dims, indices.sizes.end());
    Sizes sizes(x_begin, x_begin + axis);
    sizes.insert(sizes.end(), i_begin + batch_dims, indices.sizes.end());
    sizes.insert(sizes.end(), x_begin + axis + 1, x.sizes.end());
    const Array y = launch.Output(0, x.dtype, sizes);
    const int64_t along = x.sizes[axis];
    const int device = launch.device();
    launch.Enqueue([=] {
      if (y.count() == 0) return;
      const size_t row = y.bytes() / (batches * outer * count);
      ForType(indices.dtype, [&](auto zero) {
        for (int64_t i = 0; i < batches * outer * count; ++i) {
          const int64_t block = i / count;
          const int64_t place = block / outer * count + i % count;
          const auto index = static_cast<int64_t>(indices.own<decltype(zero)>()[place]);
          if (index < 0 || index >= along) {
            SetFault(device, "index " + std::to_string(index) + " is out of range");
            continue;
          }
          std::copy_n(x.own<char>() + (block * along + index) * row, row, y.own<char>() + i * row);
        }
      });
    });
  }
  int64_t batch_dims;
};

// ----------------------------------------------------------------------------------------------
// Reductions and products
// ----------------------------------------------------------------------------------------------

struct SumOf {
  static double First() { return 0; }
  static double Add(double total, double value) { return total + value; }
  static double Last(double total, int64_t) { return total; }
};
struct MeanOf : SumOf {
  static double Last(double total, int64_t count) { return total / static_cast<double>(count); }
};
struct ProdOf : SumOf {
  static double First() { return 1; }
  static double Add(double total, double value) { return total * value; }
};
struct MaxOf : SumOf {
  static double First() { return -std::numeric_limits<double>::infinity(); }
  static double Add(double total, double value) { return total > value ? total : value; }
};
struct MinOf : SumOf {
  static double First() { return std::numeric_limits<double>::infinity(); }
  static double Add(double total, double value) { return total < value ? total : value; }
};
struct AllOf : SumOf {
  static double First() { return 1; }
  static double Add(double total, double value) { return total != 0 && value != 0; }
};
struct AnyOf : SumOf {
  static double Add(double total, double value) { return total != 0 || value != 0; }
};

template <typename Function>
struct Reduction {
  explicit Reduction(Attributes attributes) : keep(attributes.Bool("keep_dims")) {}
  void Run(Launch& launch) {
    const Array x = launch.Input(0);
    Sizes kept = x.sizes;
    std::vector<bool> goes(x.sizes.size(), false);
    for (const int64_t axis : launch.HostInts(1)) {
      const int64_t place = AxisOf(axis, x.sizes.size());
      goes[place] = true;
      kept[place] = 1;
    }
    Sizes sizes;
    for (size_t i = 0; i < kept.size(); ++i) {
      if (keep || !goes[i]) sizes.push_back(kept[i]);
    }
    const Array y = launch.Output(0, x.dtype, sizes);
    launch.Enqueue([=] {
      if (y.count() == 0) return;
      std::vector<double> totals(y.count(), Function::First());
      ForType(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        Walk walk(x.sizes, {Repeating(kept, x.sizes)});
        for (int64_t i = 0; i < x.count(); ++i, walk.Next()) {
          double& total = totals[walk[0]];
          total = Function::Add(total, static_cast<double>(x.own<T>()[i]));
        }
        for (int64_t i = 0; i < y.count(); ++i) {
          y.own<T>()[i] = static_cast<T>(Function::Last(totals[i], x.count() / y.count()));
        }
      });
    });
  }
  const bool keep;
};

struct MatMul {
  explicit MatMul(Attributes attributes)
      : first(attributes.Bool("transpose_a")), second(attributes.Bool("transpose_b")) {}
  void Run(Launch& launch) {
    const Array a = launch.Input(0), b = launch.Input(1);
    if (a.sizes.size() != 2 || b.sizes.size() != 2 || a.sizes[!first] != b.sizes[second]) {
      throw Failure{TF_INVALID_ARGUMENT, "Matrix size-incompatible: In[0]: " + Text(a.sizes) +
                                             ", In[1]: " + Text(b.sizes)};
    }
    const int64_t rows = a.sizes[first], inner = a.sizes[!first], columns = b.sizes[!second];
    const Array c = launch.Output(0, a.dtype, {rows, columns});
    launch.Enqueue([=, first = first, second = second] {
      ForType(a.dtype, [&](auto zero) {
        using T = decltype(zero);
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < columns; ++j) {
            T total = 0;
            for (int64_t k = 0; k < inner; ++k) {
              total += a.own<T>()[first ? k * rows + i : i * inner + k] *
                       b.own<T>()[second ? j * inner + k : k * columns + j];
            }
            c.own<T>()[i * columns + j] = total;
          }
        }
      });
    });
  }
  const bool first, second;
};

struct BiasAdd {
  explicit BiasAdd(Attributes) {}
  void Run(Launch& launch) {
    const Array x = launch.Input(0), bias = launch.Input(1);
    if (x.sizes.empty() || bias.sizes != Sizes{x.sizes.back()}) {
      throw Failure{TF_INVALID_ARGUMENT,
                    "Must provide as many biases as the last dimension of the input tensor: " +
                        Text(bias.sizes) + " vs. " + Text(x.sizes)};
    }
    const Array y = launch.Output(0, x.dtype, x.sizes);
    launch.Enqueue([=] {
      ForType(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        for (int64_t i = 0; i < x.count(); ++i) {
          y.own<T>()[i] = x.own<T>()[i] + bias.own<T>()[i % bias.count()];
        }
      });
    });
  }
};

struct BiasAddGrad {
  explicit BiasAddGrad(Attributes) {}
  void Run(Launch& launch) {
    const Array x = launch.Input(0);
    const Array y = launch.Output(0, x.dtype, {x.sizes.back()});
    launch.Enqueue([=] {
      ForType(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        std::fill_n(y.own<T>(), y.count(), T(0));
        for (int64_t i = 0; i < x.count(); ++i) y.own<T>()[i % y.count()] += x.own<T>()[i];
      });
    });
  }
};

struct Softmax {
  explicit Softmax(Attributes) {}
  void Run(Launch& launch) {
    const Array x = launch.Input(0);
    const Array y = launch.Output(0, x.dtype, x.sizes);
    launch.Enqueue([=] {
      if (x.count() == 0) return;
      ForType(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        const int64_t row = x.sizes.back();
        for (int64_t begin = 0; begin < x.count(); begin += row) {
          const T* from = x.own<T>() + begin;
          T* to = y.own<T>() + begin;
          const auto most = static_cast<double>(*std::max_element(from, from + row));
          double total = 0;
          for (int64_t i = 0; i < row; ++i) total += std::exp(static_cast<double>(from[i]) - most);
          for (int64_t i = 0; i < row; ++i) {
            to[i] = static_cast<T>(std::exp(static_cast<double>(from[i]) - most) / total);
          }
        }
      });
    });
  }
};

// ----------------------------------------------------------------------------------------------
// Random numbers
// ----------------------------------------------------------------------------------------------

uint64_t Mixed(uint64_t x) {  // SplitMix64
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

double UniformOf(uint64_t key, uint64_t counter) {
  return static_cast<double>(Mixed(Mixed(key) ^ counter) >> 40) / (1 << 24);
}

double NormalOf(uint64_t key, uint64_t counter) {
  const double radius = std::sqrt(-2 * std::log(1 - UniformOf(key, 2 * counter)));
  return radius * std::cos(6.283185307179586 * UniformOf(key, 2 * counter + 1));
}

// With a seed, each kernel continues its own sequence. Without a seed, it chooses one.
template <double (*kDraw)(uint64_t, uint64_t)>
struct Drawing {
  explicit Drawing(Attributes attributes) : dtype(attributes.Type("dtype")) {
    const int64_t one = attributes.Int("seed"), other = attributes.Int("seed2");
    key = Mixed(one) ^ other;
    if (one == 0 && other == 0) key = std::random_device()() + (uint64_t{1} << 40);
  }
  void Run(Launch& launch) {
    const Array y = launch.Output(0, dtype, launch.HostInts(0));
    const uint64_t begin = drawn.fetch_add(y.count());
    launch.Enqueue([y, begin, key = key] {
      ForType(y.dtype, [&](auto zero) {
        using T = decltype(zero);
        for (int64_t i = 0; i < y.count(); ++i) {
          y.own<T>()[i] = static_cast<T>(kDraw(key, begin + i));
        }
      });
    });
  }
  const TF_DataType dtype;
  uint64_t key;
  std::atomic<uint64_t> drawn{0};
};

template <double (*kDraw)(uint64_t, uint64_t)>
struct StatelessDrawing {
  explicit StatelessDrawing(Attributes attributes) : dtype(attributes.Type("dtype")) {}
  void Run(Launch& launch) {
    const Sizes sizes = launch.HostInts(0);
    const Array key = launch.Input(1), counter = launch.Input(2);
    const Array y = launch.Output(0, dtype, sizes);
    launch.Enqueue([=] {
      ForType(y.dtype, [&](auto zero) {
        using T = decltype(zero);
        for (int64_t i = 0; i < y.count(); ++i) {
          y.own<T>()[i] =
              static_cast<T>(kDraw(key.own<uint64_t>()[0], counter.own<uint64_t>()[0] + i));
        }
      });
    });
  }
  const TF_DataType dtype;
};

// ----------------------------------------------------------------------------------------------

#define FLOATING(kernel, name)               \
  Register<kernel>(name, {{"T", TF_FLOAT}}); \
  Register<kernel>(name, {{"T", TF_DOUBLE}});
#define NUMBERS(kernel, name) \
  FLOATING(kernel, name)      \
  Register<kernel>(name, {{"T", TF_INT64}});

void RegisterAll() {
  NUMBERS(Unary<Neg>, "Neg")
  NUMBERS(Unary<Abs>, "Abs")
  NUMBERS(Unary<Square>, "Square")
  NUMBERS(Unary<Sign>, "Sign")
  NUMBERS(Unary<ZerosLike>, "ZerosLike")
  NUMBERS(Unary<OnesLike>, "OnesLike")
  // TensorFlow's own kernels for all devices would read the device's memory on the host.
  Register<Unary<ZerosLike>>("ZerosLike", {{"T", TF_INT32}});
  Register<Unary<OnesLike>>("OnesLike", {{"T", TF_INT32}});
  FLOATING(Unary<Sqrt>, "Sqrt")
  FLOATING(Unary<Rsqrt>, "Rsqrt")
  FLOATING(Unary<Exp>, "Exp")
  FLOATING(Unary<Log>, "Log")
  FLOATING(Unary<Log1p>, "Log1p")
  FLOATING(Unary<Sigmoid>, "Sigmoid")
  FLOATING(Unary<Tanh>, "Tanh")
  FLOATING(Unary<Relu>, "Relu")
  FLOATING(Unary<Reciprocal>, "Reciprocal")
  Register<Unary<LogicalNot>>("LogicalNot", {});

  NUMBERS(Binary<AddV2>, "AddV2")
  NUMBERS(Binary<AddV2>, "Add")
  NUMBERS(Binary<Sub>, "Sub")
  NUMBERS(Binary<Mul>, "Mul")
  NUMBERS(Binary<Maximum>, "Maximum")
  NUMBERS(Binary<Minimum>, "Minimum")
  NUMBERS(Binary<SquaredDifference>, "SquaredDifference")
  FLOATING(Binary<RealDiv>, "RealDiv")
  FLOATING(Binary<DivNoNan>, "DivNoNan")
  FLOATING(Binary<Pow>, "Pow")
  FLOATING(Binary<ReluGrad>, "ReluGrad")
  FLOATING(Binary<TanhGrad>, "TanhGrad")
  FLOATING(Binary<SigmoidGrad>, "SigmoidGrad")
  FLOATING(Binary<SqrtGrad>, "SqrtGrad")
  FLOATING(Binary<RsqrtGrad>, "RsqrtGrad")
  Register<Binary<LogicalAnd>>("LogicalAnd", {});
  Register<Binary<LogicalOr>>("LogicalOr", {});
  NUMBERS(Binary<Less>, "Less")
  NUMBERS(Binary<LessEqual>, "LessEqual")
  NUMBERS(Binary<Greater>, "Greater")
  NUMBERS(Binary<GreaterEqual>, "GreaterEqual")
  NUMBERS(Binary<Equal>, "Equal")
  NUMBERS(Binary<NotEqual>, "NotEqual")
  NUMBERS(Select, "SelectV2")
  NUMBERS(AddN, "AddN")
  FLOATING(CheckNumerics, "CheckNumerics")
  for (const TF_DataType from : {TF_FLOAT, TF_DOUBLE, TF_INT32, TF_INT64, TF_BOOL}) {
    for (const TF_DataType to : {TF_FLOAT, TF_DOUBLE, TF_INT32, TF_INT64, TF_BOOL}) {
      Register<Cast>("Cast", {{"SrcT", from}, {"DstT", to}});
    }
  }

  for (const TF_DataType dtype : {TF_FLOAT, TF_DOUBLE, TF_INT64, TF_BOOL}) {
    Register<Transpose>("Transpose", {{"T", dtype}}, {"perm"});
    Register<BroadcastTo>("BroadcastTo", {{"T", dtype}}, {"shape"});
    Register<Fill>("Fill", {{"T", dtype}}, {"dims"});
    Register<Slice>("Slice", {{"T", dtype}}, {"begin", "size"});
    Register<Tile>("Tile", {{"T", dtype}}, {"multiples"});
    Register<Concat>("ConcatV2", {{"T", dtype}}, {"axis"});
    Register<Pack>("Pack", {{"T", dtype}});
    Register<GatherV2>("GatherV2", {{"Tparams", dtype}}, {"axis"});
  }

  const auto axes = {"reduction_indices"};
#define REDUCING(function, name)                                 \
  Register<Reduction<function>>(name, {{"T", TF_FLOAT}}, axes);  \
  Register<Reduction<function>>(name, {{"T", TF_DOUBLE}}, axes); \
  Register<Reduction<function>>(name, {{"T", TF_INT64}}, axes);
  REDUCING(SumOf, "Sum")
  REDUCING(MeanOf, "Mean")
  REDUCING(ProdOf, "Prod")
  REDUCING(MaxOf, "Max")
  REDUCING(MinOf, "Min")
  Register<Reduction<AllOf>>("All", {}, axes);
  Register<Reduction<AnyOf>>("Any", {}, axes);
  FLOATING(MatMul, "MatMul")
  FLOATING(BiasAdd, "BiasAdd")
  FLOATING(BiasAddGrad, "BiasAddGrad")
  FLOATING(Softmax, "Softmax")

  for (const TF_DataType dtype : {TF_FLOAT, TF_DOUBLE}) {
    Register<Drawing<UniformOf>>("RandomUniform", {{"dtype", dtype}}, {"shape"});
    Register<Drawing<NormalOf>>("RandomStandardNormal", {{"dtype", dtype}}, {"shape"});
    Register<StatelessDrawing<UniformOf>>("StatelessRandomUniformV2", {{"dtype", dtype}},
                                          {"shape", "alg"});
    Register<StatelessDrawing<NormalOf>>("StatelessRandomNormalV2", {{"dtype", dtype}},
                                         {"shape", "alg"});
  }
}

}  // namespace
}  // namespace fastops_test

extern "C" void TF_InitKernel() {
  try {
    fastops_test::RegisterAll();
  } catch (const fastops_test::Failure& failure) {
    fastops_test::Die(failure.message.c_str(), nullptr, 0);
  }
}
