// The rows that the elements of datasets consist of. Streams of row numbers batch, shuffle, repeat,
// take and skip as the iterators of TensorFlow's datasets do. A `RowReader` makes the elements.
//
// TensorFlow's iterators hand on tensors: each row is a tensor, each batch a copy of such tensors.
// The streams hand on numbers of rows instead, and an element is copied once, from its rows.
// The GIL guards everything here.
#ifndef FASTOPS_CPP_ROWS_H_
#define FASTOPS_CPP_ROWS_H_

#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "device.h"
#include "gil.h"
#include "handle.h"
#include "plan.h"
#include "tensorflow/core/framework/dataset.h"
#include "tensorflow/core/graph/graph_def_builder.h"
#include "tensorflow/core/kernels/data/random_seed_ops.h"
#include "tensorflow/core/lib/random/philox_random.h"
#include "tensorflow/core/lib/random/random_distributions.h"
#include "tensorflow/core/util/work_sharder.h"
#include "tensors.h"

namespace fastops {

namespace data = tensorflow::data;

using RowNumbers = std::vector<int64_t>;
using SeedSource = std::shared_ptr<data::SeedGenerator>;

// The seeds that the streams of one iterator have drawn, and when. All iterators of a dataset share
// a seed generator, so an iterator of TensorFlow's that replaces this one must draw the same seeds.
class SeedLog {
 public:
  // Thrown when another iterator has drawn from a generator since this one last drew from it.
  struct OthersDraw {};

  // From now on, `Draw` throws `OthersDraw` if another iterator has drawn in between.
  void ForbidOthers() { alone_ = true; }

  void Draw(const SeedSource& seeds, int64_t* seed, int64_t* seed2) {
    const int64_t before = seeds->num_random_samples();
    if (alone_) {
      const auto last = std::find_if(draws_.rbegin(), draws_.rend(),
                                     [&seeds](const auto& draw) { return draw.seeds == seeds; });
      if (last != draws_.rend() && last->after != before) throw OthersDraw();
    }
    seeds->GenerateSeeds(seed, seed2);
    draws_.push_back({seeds, before, seeds->num_random_samples(), element_});
  }

  size_t draws() const { return draws_.size(); }

  void BeginElement() { ++element_; }

  // The number of elements that were begun. The end of the dataset counts as one.
  int64_t elements() const { return element_; }

  // Sets the generators to their states before the draws for an element, and before the draws for
  // earlier elements that were not restored yet. -1: the draws when the iterator was made.
  void Restore(int64_t element) {
    std::vector<data::SeedGenerator*> restored;
    for (; next_ < draws_.size() && draws_[next_].element <= element; ++next_) {
      data::SeedGenerator* seeds = draws_[next_].seeds.get();
      if (std::find(restored.begin(), restored.end(), seeds) != restored.end()) continue;
      restored.push_back(seeds);
      Set(seeds, draws_[next_].before);
    }
  }

  // Keeps the states of all generators that were drawn from.
  void Keep() {
    next_ = 0;
    for (const SeedDraw& draw : draws_) {
      const bool kept = std::any_of(kept_.begin(), kept_.end(), [&draw](const auto& other) {
        return other.first == draw.seeds;
      });
      if (!kept) kept_.emplace_back(draw.seeds, draw.seeds->num_random_samples());
    }
  }

  // Sets the generators to the states that were kept. With `ahead`, generators that have drawn more
  // seeds since then are not set back.
  void SetKept(bool ahead) {
    for (const auto& [seeds, number] : kept_) {
      if (!ahead || seeds->num_random_samples() < number) Set(seeds.get(), number);
    }
    kept_.clear();
  }

 private:
  struct SeedDraw {
    SeedSource seeds;
    int64_t before, after;  // how many samples the generator had drawn
    int64_t element;
  };

  static void Set(data::SeedGenerator* seeds, int64_t number) {
    seeds->set_num_random_samples(number);
    seeds->Reset();
  }

  std::vector<SeedDraw> draws_;
  std::vector<std::pair<SeedSource, int64_t>> kept_;
  size_t next_ = 0;
  int64_t element_ = -1;
  bool alone_ = false;
};

// An iterator of one dataset.
class RowStream {
 public:
  virtual ~RowStream() = default;
  // Appends the rows of the next element. Returns false at the end.
  virtual bool Next(RowNumbers* rows) = 0;
};

// A dataset. Never changes.
class RowPlan {
 public:
  virtual ~RowPlan() = default;
  virtual std::unique_ptr<RowStream> Make(SeedLog* log) const = 0;
};

using RowPlanPtr = std::shared_ptr<const RowPlan>;

// Rows of tensors, one by one: TensorSliceDataset, RangeDataset.
class SlicesPlan : public RowPlan {
 public:
  explicit SlicesPlan(int64_t count) : count_(count) {}

  std::unique_ptr<RowStream> Make(SeedLog* log) const override {
    return std::make_unique<Stream>(count_);
  }

 private:
  struct Stream : RowStream {
    explicit Stream(int64_t count) : count(count) {}

    bool Next(RowNumbers* rows) override {
      if (next == count) return false;
      rows->push_back(next++);
      return true;
    }

    const int64_t count;
    int64_t next = 0;
  };

  const int64_t count_;
};

// BatchDataset. Its input is not batched.
class BatchPlan : public RowPlan {
 public:
  BatchPlan(RowPlanPtr input, int64_t size, bool drop_remainder)
      : input_(std::move(input)), size_(size), drop_remainder_(drop_remainder) {}

  std::unique_ptr<RowStream> Make(SeedLog* log) const override {
    return std::make_unique<Stream>(*this, log);
  }

 private:
  struct Stream : RowStream {
    Stream(const BatchPlan& plan, SeedLog* log) : plan(plan), input(plan.input_->Make(log)) {}

    bool Next(RowNumbers* rows) override {
      if (input == nullptr) return false;
      const size_t begin = rows->size();
      for (int64_t count = 0; count < plan.size_; ++count) {
        if (input->Next(rows)) continue;
        input.reset();
        if (count != 0 && !plan.drop_remainder_) return true;
        rows->resize(begin);
        return false;
      }
      return true;
    }

    const BatchPlan& plan;
    std::unique_ptr<RowStream> input;
  };

  const RowPlanPtr input_;
  const int64_t size_;
  const bool drop_remainder_;
};

// TakeDataset, with a count of at least 1.
class TakePlan : public RowPlan {
 public:
  TakePlan(RowPlanPtr input, int64_t count) : input_(std::move(input)), count_(count) {}

  std::unique_ptr<RowStream> Make(SeedLog* log) const override {
    return std::make_unique<Stream>(*this, log);
  }

 private:
  struct Stream : RowStream {
    Stream(const TakePlan& plan, SeedLog* log) : plan(plan), input(plan.input_->Make(log)) {}

    bool Next(RowNumbers* rows) override {
      if (input == nullptr) return false;
      if (taken < plan.count_ && input->Next(rows)) {
        ++taken;
        return true;
      }
      input.reset();
      return false;
    }

    const TakePlan& plan;
    std::unique_ptr<RowStream> input;
    int64_t taken = 0;
  };

  const RowPlanPtr input_;
  const int64_t count_;
};

// SkipDataset, with a count of at least 1.
class SkipPlan : public RowPlan {
 public:
  SkipPlan(RowPlanPtr input, int64_t count) : input_(std::move(input)), count_(count) {}

  std::unique_ptr<RowStream> Make(SeedLog* log) const override {
    return std::make_unique<Stream>(*this, log);
  }

 private:
  struct Stream : RowStream {
    Stream(const SkipPlan& plan, SeedLog* log) : plan(plan), input(plan.input_->Make(log)) {}

    bool Next(RowNumbers* rows) override {
      if (input == nullptr) return false;
      const size_t begin = rows->size();
      for (; skipped < plan.count_; ++skipped) {
        const bool any = input->Next(rows);
        rows->resize(begin);
        if (!any) {
          input.reset();
          return false;
        }
      }
      if (input->Next(rows)) return true;
      input.reset();
      return false;
    }

    const SkipPlan& plan;
    std::unique_ptr<RowStream> input;
    int64_t skipped = 0;
  };

  const RowPlanPtr input_;
  const int64_t count_;
};

// RepeatDataset; `count` is -1 if it has no end, otherwise at least 1. Like TensorFlow's, the
// finite iterator makes one more iterator of its input than it needs: that one, too, draws seeds.
class RepeatPlan : public RowPlan {
 public:
  RepeatPlan(RowPlanPtr input, int64_t count) : input_(std::move(input)), count_(count) {}

  std::unique_ptr<RowStream> Make(SeedLog* log) const override {
    return std::make_unique<Stream>(*this, log);
  }

 private:
  struct Stream : RowStream {
    Stream(const RepeatPlan& plan, SeedLog* log)
        : plan(plan), log(log), input(plan.input_->Make(log)) {}

    bool Next(RowNumbers* rows) override { return plan.count_ < 0 ? Endless(rows) : Finite(rows); }

    bool Finite(RowNumbers* rows) {
      if (input == nullptr) return false;
      while (epoch < plan.count_) {
        if (input->Next(rows)) return true;
        ++epoch;
        input = plan.input_->Make(log);
      }
      input.reset();
      return false;
    }

    bool Endless(RowNumbers* rows) {
      while (true) {
        if (input == nullptr) input = plan.input_->Make(log);
        const bool any = input->Next(rows);
        if (any) {
          first = false;
          return true;
        }
        input.reset();
        if (first) return false;  // the input is empty
        first = true;
      }
    }

    const RepeatPlan& plan;
    SeedLog* const log;
    std::unique_ptr<RowStream> input;
    int64_t epoch = 0;
    bool first = true;
  };

  const RowPlanPtr input_;
  const int64_t count_;
};

// ShuffleDatasetV3 (`count` is 1), and ShuffleAndRepeatDatasetV2, which TensorFlow makes of a
// shuffled and repeated dataset (`count` is -1 if it has no end). Its input is not batched.
class ShufflePlan : public RowPlan {
 public:
  ShufflePlan(RowPlanPtr input, int64_t buffer_size, SeedSource seeds, int64_t count)
      : input_(std::move(input)),
        buffer_size_(buffer_size),
        seeds_(std::move(seeds)),
        count_(count) {}

  std::unique_ptr<RowStream> Make(SeedLog* log) const override {
    return std::make_unique<Stream>(*this, log);
  }

 private:
  // The names are those of ShuffleDatasetOpBase::ShuffleDatasetBase::Iterator.
  class Stream : public RowStream {
   public:
    Stream(const ShufflePlan& plan, SeedLog* log) : plan_(plan), log_(log) { NextSeeds(); }

    bool Next(RowNumbers* rows) override {
      FillBuffer();
      if (num_elements_ == 0) return false;
      while (slices_.front().start == slices_.front().end) {
        slices_.pop_front();
        NextSeeds();
      }
      Slice& slice = slices_.front();
      const int64_t offset = generator_() % (slice.end - slice.start);
      int64_t& chosen = buffer_[(slice.start + offset) % plan_.buffer_size_];
      rows->push_back(chosen);
      chosen = buffer_[slice.start % plan_.buffer_size_];
      ++slice.start;
      --num_elements_;
      return true;
    }

   private:
    // The rows of one epoch are from `start` to `end` in the buffer, modulo its size.
    struct Slice {
      int64_t start;
      int64_t end;
    };

    static constexpr size_t kMaxEpochsInBuffer = 3;

    void NextSeeds() {
      int64_t seed, seed2;
      log_->Draw(plan_.seeds_, &seed, &seed2);
      parent_ = tensorflow::random::PhiloxRandom(seed, seed2);
      generator_ = Generator(&parent_);
    }

    bool ShouldFillBuffer() const {
      if (input_ == nullptr && plan_.count_ != -1 && epoch_ >= plan_.count_) return false;
      if (slices_.size() > kMaxEpochsInBuffer && num_elements_ > 0) return false;
      return num_elements_ < plan_.buffer_size_;
    }

    void FillBuffer() {
      while (ShouldFillBuffer()) {
        if (input_ == nullptr) {
          const int64_t begin = epoch_ == 0 ? 0 : slices_.back().end;
          slices_.push_back({begin, begin});
          input_ = plan_.input_->Make(log_);
          ++epoch_;
        }
        row_.clear();
        if (input_->Next(&row_)) {
          data_produced_ = true;
          const size_t index = slices_.back().end++ % plan_.buffer_size_;
          if (index >= buffer_.size()) buffer_.resize(index + 1);
          buffer_[index] = row_[0];
          ++num_elements_;
        } else {
          input_.reset();
          if (!data_produced_ && plan_.count_ == -1) return;
        }
      }
    }

    using Generator = tensorflow::random::SingleSampleAdapter<tensorflow::random::PhiloxRandom>;

    const ShufflePlan& plan_;
    SeedLog* const log_;
    tensorflow::random::PhiloxRandom parent_;
    Generator generator_{&parent_};
    std::unique_ptr<RowStream> input_;
    RowNumbers buffer_;  // grows up to the size of the dataset's buffer
    RowNumbers row_;
    std::deque<Slice> slices_;
    int64_t num_elements_ = 0;
    int64_t epoch_ = 0;
    bool data_produced_ = false;
  };

  const RowPlanPtr input_;
  const int64_t buffer_size_;
  const SeedSource seeds_;
  const int64_t count_;
};

// Whether rows of tensors of a dtype can be copied.
inline bool IsCopied(tensorflow::DataType dtype) {
  return tensorflow::DataTypeCanUseMemcpy(dtype) || dtype == tensorflow::DT_STRING;
}

// Makes the elements of an iterator.
class RowReader {
 public:
  RowReader(RowPlanPtr plan, std::vector<tensorflow::Tensor> columns, bool batched)
      : plan_(std::move(plan)), columns_(std::move(columns)), batched_(batched) {
    stream_ = plan_->Make(&log_);
    log_.BeginElement();
  }

  SeedLog* log() { return &log_; }

  static bool CanCopy(const tensorflow::Tensor& column) {
    return column.dims() > 0 && IsCopied(column.dtype());
  }

  enum Search { kRows, kEnd, kOthersDraw };

  // Finds the rows of the next element. kOthersDraw: see `SeedLog::ForbidOthers`; then nothing more
  // can be found.
  Search Next() {
    rows_.clear();
    return Find(&rows_);
  }

  // The following members are about the rows that `Next` has found.
  int64_t num_rows() const { return rows_.size(); }
  Made Row(int64_t i) const { return Rows({rows_[i]}, /*batched=*/false); }
  Made Element() const { return Rows(rows_, batched_); }

  // Returns the tensors of the next element in a new list; None at the end. On failure, returns
  // null with a Python exception.
  PyObject* Take() {
    RowNumbers rows = std::move(rows_);  // other threads may call this while rows are copied
    rows.clear();
    if (Find(&rows) != kRows) Py_RETURN_NONE;
    Made tensors = Rows(rows, batched_);
    rows_ = std::move(rows);
    return ListOf(std::move(tensors));
  }

  // Returns a new list. On failure, returns null with a Python exception.
  static PyObject* ListOf(Made&& tensors) {
    PyObject* list = PyList_New(tensors.size());
    if (list == nullptr) return nullptr;
    for (size_t i = 0; i < tensors.size(); ++i) {
      PyObject* tensor = WrapOnHost(std::move(tensors[i]));
      if (tensor == nullptr) {
        Py_DECREF(list);
        return nullptr;
      }
      PyList_SET_ITEM(list, i, tensor);
    }
    return list;
  }

 private:
  Search Find(RowNumbers* rows) {
    const size_t draws = log_.draws();
    bool any = false;
    try {
      any = stream_->Next(rows);
    } catch (const SeedLog::OthersDraw&) {
      return kOthersDraw;
    }
    if (any || !ended_ || log_.draws() != draws) log_.BeginElement();
    ended_ = !any;
    return any ? kRows : kEnd;
  }

  Made Rows(const RowNumbers& rows, bool batched) const {
    Made tensors;
    tensors.reserve(columns_.size());
    for (const tensorflow::Tensor& column : columns_) {
      tensors.push_back(batched ? Batch(column, rows) : Row(column, rows));
    }
    return tensors;
  }

  // From this size on, a row that is aligned shares the memory of its tensor, as in TensorFlow.
  static constexpr size_t kShared = 4096;
  // From this size on, other Python threads run while rows are copied.
  static constexpr size_t kLong = 1 << 16;

  static tensorflow::Tensor Row(const tensorflow::Tensor& column, const RowNumbers& rows) {
    tensorflow::TensorShape shape = column.shape();
    shape.RemoveDim(0);
    const size_t bytes = column.TotalBytes() / column.dim_size(0);
    if (bytes >= kShared) {
      tensorflow::Tensor row = column.SubSlice(rows[0]);
      if (row.IsAligned()) return row;
    }
    return Copied(column, shape, rows);
  }

  static tensorflow::Tensor Batch(const tensorflow::Tensor& column, const RowNumbers& rows) {
    tensorflow::TensorShape shape = column.shape();
    shape.set_dim(0, rows.size());
    return Copied(column, shape, rows);
  }

  static tensorflow::Tensor Copied(const tensorflow::Tensor& column,
                                   const tensorflow::TensorShape& shape, const RowNumbers& rows) {
    tensorflow::Tensor tensor(SmallTensorAllocator::Get(), column.dtype(), shape);
    if (!tensor.IsInitialized()) throw std::bad_alloc();
    const int64_t items = column.NumElements() / column.dim_size(0);  // in a row
    if (column.dtype() == tensorflow::DT_STRING) {
      const auto* from = static_cast<const tensorflow::tstring*>(column.data());
      auto* to = static_cast<tensorflow::tstring*>(tensor.data());
      for (const int64_t row : rows) to = std::copy_n(from + row * items, items, to);
      return tensor;
    }
    const size_t bytes = items * tensorflow::DataTypeSize(column.dtype());
    const auto* from = static_cast<const char*>(column.data());
    auto* to = static_cast<char*>(tensor.data());
    if (bytes == 0) return tensor;
    ScopedGilRelease release(bytes * rows.size() >= kLong);
    CopyRows(from, to, bytes, rows);
    return tensor;
  }

  // Copies runs of consecutive rows at once.
  static void CopyRows(const char* from, char* to, size_t bytes, const RowNumbers& rows) {
    for (size_t i = 0; i < rows.size();) {
      size_t end = i + 1;
      while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
      std::memcpy(to, from + rows[i] * bytes, (end - i) * bytes);
      to += (end - i) * bytes;
      i = end;
    }
  }

  const RowPlanPtr plan_;
  const std::vector<tensorflow::Tensor> columns_;
  const bool batched_;
  SeedLog log_;
  std::unique_ptr<RowStream> stream_;
  RowNumbers rows_;  // the rows that `Next` or `Take` has found; the memory is reused
  bool ended_ = false;
};

// Puts rows together into a batch, as BatchDatasetV2 does.
class RowBatch {
 public:
  explicit RowBatch(int64_t num_rows) : num_rows_(num_rows) {}

  // Appends the tensors of a row. Returns false if TensorFlow's kernel has to do it: their shapes
  // differ from those of the first row, or their elements are not just bytes or strings.
  bool Append(const Made& row) {
    if (next_ == 0) {
      for (const tensorflow::Tensor& tensor : row) {
        if (!IsCopied(tensor.dtype())) return false;
        tensorflow::TensorShape shape = tensor.shape();
        shape.InsertDim(0, num_rows_);
        tensors_.emplace_back(SmallTensorAllocator::Get(), tensor.dtype(), shape);
        if (!tensors_.back().IsInitialized()) throw std::bad_alloc();
      }
    }
    for (size_t i = 0; i < row.size(); ++i) {
      if (!Append(row[i], &tensors_[i])) return false;
    }
    ++next_;
    return true;
  }

  Made& tensors() { return tensors_; }

 private:
  bool Append(const tensorflow::Tensor& row, tensorflow::Tensor* batch) const {
    if (row.dtype() != batch->dtype() || row.dims() + 1 != batch->dims()) return false;
    for (int axis = 0; axis < row.dims(); ++axis) {
      if (row.dim_size(axis) != batch->dim_size(axis + 1)) return false;
    }
    const int64_t items = row.NumElements();
    if (row.dtype() == tensorflow::DT_STRING) {
      std::copy_n(static_cast<const tensorflow::tstring*>(row.data()), items,
                  static_cast<tensorflow::tstring*>(batch->data()) + next_ * items);
    } else if (items != 0) {
      const size_t bytes = items * tensorflow::DataTypeSize(row.dtype());
      std::memcpy(static_cast<char*>(batch->data()) + next_ * bytes, row.data(), bytes);
    }
    return true;
  }

  const int64_t num_rows_;
  int64_t next_ = 0;
  Made tensors_;
};

// Replaces tensors by the results of a function that a pipeline maps over elements. The kernels of
// the function use one thread each, as they do after TensorFlow's rewrites of pipelines.
inline absl::Status RunMapped(NativePlan* plan, bool release_gil, Made* tensors) {
  const tensorflow::ScopedPerThreadMaxParallelism alone(1);
  Borrowed given;
  for (const tensorflow::Tensor& tensor : *tensors) given.push_back(&tensor);
  Made made;
  const NativeStep* failed = nullptr;
  const absl::Status status =
      plan->Run(given, release_gil, Threads::kPool, /*measured=*/false, &made, &failed);
  *tensors = std::move(made);
  return status;
}

// A function that a dataset maps over its elements.
struct MappedFunction {
  std::string name;
  bool batched;  // whether these elements are batches
};

// Which rows of which tensors the elements of a dataset consist of, read in the graph that
// TensorFlow makes of the dataset before it rewrites it.
class RowSource {
 public:
  // Returns false if the elements of a dataset are not rows, or batches of rows, of tensors on the
  // host, or if they are in an order that is not known here.
  static bool Read(const tensorflow::Tensor& variant, tensorflow::Device* host, RowSource* source) {
    data::DatasetBase* dataset = nullptr;
    if (!data::GetDatasetFromVariantTensor(variant, &dataset).ok()) return false;
    Inputs inputs;
    data::SerializationContext::Params params;
    params.input_list = &inputs;
    params.external_state_policy = data::ExternalStatePolicy::POLICY_IGNORE;
    params.is_graph_rewrite = true;  // puts the tensors into `inputs` instead of the graph
    params.resource_mgr = host->resource_manager();
    params.device_name = host->name();
    data::SerializationContext context(params);
    tensorflow::GraphDefBuilder graph;
    data::DatasetBase::DatasetGraphDefBuilder builder(&graph);
    tensorflow::Node* node = nullptr;
    return builder.AddInputDataset(&context, dataset, &node).ok() &&
           source->Read(*node, inputs, host->resource_manager());
  }

  const RowPlanPtr& plan() const { return plan_; }
  const std::vector<tensorflow::Tensor>& columns() const { return columns_; }
  bool batched() const { return batched_; }
  // In the order in which they are mapped.
  const std::vector<MappedFunction>& functions() const { return functions_; }
  // Whether all seeds are drawn when an iterator is made.
  bool draws_first() const { return !draws_later_; }

 private:
  using Inputs = std::vector<std::pair<std::string, tensorflow::Tensor>>;

  static constexpr int64_t kMaxNumbers = 1 << 17;  // the maximum length of a range

  bool Read(const tensorflow::Node& node, const Inputs& inputs,
            tensorflow::ResourceMgr* resources) {
    const std::string& op = node.type_string();
    if (op == "TensorSliceDataset") return ReadSlices(node, inputs);
    if (op == "RangeDataset") return ReadRange(node);
    if (op == "ZipDataset") return ReadZip(node, inputs, resources);
    const tensorflow::Node* input = nullptr;
    int64_t number = 0;  // a size or count
    const bool maps = op == "MapDataset" || op == "ParallelMapDatasetV2";
    if (!maps && op != "BatchDatasetV2" && op != "TakeDataset" && op != "SkipDataset" &&
        op != "RepeatDataset" && op != "ShuffleDatasetV3" && op != "CacheDatasetV2") {
      return false;
    }
    if (!node.input_node(0, &input).ok() || !Read(*input, inputs, resources)) return false;
    if (maps) return Map(node);
    if (op == "CacheDatasetV2") return Cache(node);
    if (!Constant(node, 1, &number)) return false;
    if (op == "RepeatDataset") return Repeat(number);
    if (op == "TakeDataset") return number < 0 || (number > 0 && Become<TakePlan>(number));
    if (op == "SkipDataset") return number == 0 || (number > 0 && Become<SkipPlan>(number));
    if (batched_ || number <= 0) return false;
    if (op == "ShuffleDatasetV3") return Shuffle(node, number, resources);
    bool drop_remainder = false;
    batched_ = true;
    return Constant(node, 2, &drop_remainder) && Become<BatchPlan>(number, drop_remainder);
  }

  template <typename Plan, typename... Args>
  bool Become(Args... args) {
    plan_ = std::make_shared<Plan>(plan_, args...);
    in_order_ = false;
    unshuffled_ = nullptr;
    return true;
  }

  // A function that only computes changes neither the number of elements nor their order. So it may
  // be run after the rows of an element were found.
  bool Map(const tensorflow::Node& node) {
    const tensorflow::AttrValue* function = node.attrs().Find("f");
    if (function == nullptr) return false;
    functions_.push_back({function->func().name(), batched_});
    unshuffled_ = nullptr;
    return true;
  }

  // A cache in memory is ignored if the elements are the same in each epoch, without a shuffle.
  bool Cache(const tensorflow::Node& node) {
    tensorflow::Tensor filename;
    if (shuffled_ || !Value(node, 1, &filename) || filename.dtype() != tensorflow::DT_STRING ||
        filename.NumElements() != 1) {
      return false;
    }
    return filename.flat<tensorflow::tstring>()(0).empty();
  }

  // TensorFlow leaves out a dataset that is repeated once, and makes one dataset of a shuffled and
  // repeated one.
  bool Repeat(int64_t count) {
    if (count == 0) return false;
    if (count == 1) return true;
    draws_later_ |= shuffled_;
    if (unshuffled_ == nullptr) return Become<RepeatPlan>(std::max<int64_t>(count, -1));
    if (count < -1) return false;  // ShuffleAndRepeatDatasetV2 rejects the count
    plan_ = std::make_shared<ShufflePlan>(unshuffled_, buffer_size_, seeds_, count);
    unshuffled_ = nullptr;
    return true;
  }

  // The iterators of a dataset share its generator of seeds, and so do its copies in rewritten
  // pipelines, which find it by its name.
  bool Shuffle(const tensorflow::Node& node, int64_t buffer_size,
               tensorflow::ResourceMgr* resources) {
    tensorflow::Tensor handle;
    if (!Value(node, 4, &handle) || handle.dtype() != tensorflow::DT_RESOURCE ||
        handle.NumElements() != 1) {
      return false;
    }
    const auto& named = handle.flat<tensorflow::ResourceHandle>()(0);
    data::SeedGeneratorManager* manager = nullptr;
    if (!resources->Lookup(named.container(), named.name(), &manager).ok()) return false;
    seeds_ = manager->get();
    manager->Unref();
    RowPlanPtr input = plan_;
    Become<ShufflePlan>(buffer_size, seeds_, int64_t{1});
    unshuffled_ = std::move(input);
    buffer_size_ = buffer_size;
    shuffled_ = true;
    return true;
  }

  bool ReadSlices(const tensorflow::Node& node, const Inputs& inputs) {
    const tensorflow::AttrValue* files = node.attrs().Find("is_files");
    if (files != nullptr && files->b()) return false;
    for (int i = 0; i < node.num_inputs(); ++i) {
      const tensorflow::Node* input = nullptr;
      if (!node.input_node(i, &input).ok()) return false;
      const auto found = std::find_if(inputs.begin(), inputs.end(), [input](const auto& named) {
        return named.first == input->name();
      });
      if (found == inputs.end() || !RowReader::CanCopy(found->second)) return false;
      columns_.push_back(found->second);
    }
    return BeginInOrder();
  }

  bool ReadRange(const tensorflow::Node& node) {
    int64_t start = 0, stop = 0, step = 0;
    const tensorflow::AttrValue* dtypes = node.attrs().Find("output_types");
    if (dtypes == nullptr || dtypes->list().type_size() != 1 ||
        dtypes->list().type(0) != tensorflow::DT_INT64 || !Constant(node, 0, &start) ||
        !Constant(node, 1, &stop) || !Constant(node, 2, &step) || step == 0) {
      return false;
    }
    std::vector<int64_t> numbers;
    for (int64_t number = start; step > 0 ? number < stop : number > stop;) {
      if (numbers.size() == kMaxNumbers) return false;
      numbers.push_back(number);
      if (__builtin_add_overflow(number, step, &number)) return false;
    }
    tensorflow::Tensor column(tensorflow::DT_INT64,
                              tensorflow::TensorShape({static_cast<int64_t>(numbers.size())}));
    std::copy(numbers.begin(), numbers.end(), column.flat<int64_t>().data());
    columns_.push_back(std::move(column));
    return BeginInOrder();
  }

  bool ReadZip(const tensorflow::Node& node, const Inputs& inputs,
               tensorflow::ResourceMgr* resources) {
    for (int i = 0; i < node.num_inputs(); ++i) {
      const tensorflow::Node* input = nullptr;
      RowSource part;
      if (!node.input_node(i, &input).ok() || !part.Read(*input, inputs, resources) ||
          !part.in_order_ || !part.functions_.empty()) {
        return false;
      }
      columns_.insert(columns_.end(), part.columns_.begin(), part.columns_.end());
    }
    return BeginInOrder();
  }

  bool BeginInOrder() {
    if (columns_.empty()) return false;
    int64_t count = columns_[0].dim_size(0);
    for (const tensorflow::Tensor& column : columns_) count = std::min(count, column.dim_size(0));
    plan_ = std::make_shared<SlicesPlan>(count);
    in_order_ = true;
    return true;
  }

  // Reads the value of a constant among the inputs of a node.
  static bool Value(const tensorflow::Node& node, int index, tensorflow::Tensor* tensor) {
    const tensorflow::Node* input = nullptr;
    if (index >= node.num_inputs() || !node.input_node(index, &input).ok()) return false;
    const tensorflow::AttrValue* value = input->attrs().Find("value");
    return input->IsConstant() && value != nullptr && tensor->FromProto(value->tensor());
  }

  template <typename T>
  static bool Constant(const tensorflow::Node& node, int index, T* value) {
    tensorflow::Tensor tensor;
    if (!Value(node, index, &tensor) || tensor.dtype() != tensorflow::DataTypeToEnum<T>::value ||
        tensor.dims() != 0) {
      return false;
    }
    *value = tensor.scalar<T>()();
    return true;
  }

  RowPlanPtr plan_;
  std::vector<tensorflow::Tensor> columns_;
  std::vector<MappedFunction> functions_;
  bool batched_ = false;
  bool in_order_ = false;  // whether the elements are all rows, one by one
  bool shuffled_ = false;
  bool draws_later_ = false;
  // If the last dataset is a shuffle: its input, buffer size and seeds.
  RowPlanPtr unshuffled_;
  int64_t buffer_size_ = 0;
  SeedSource seeds_;
};

}  // namespace fastops

#endif  // FASTOPS_CPP_ROWS_H_
