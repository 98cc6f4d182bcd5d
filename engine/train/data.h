// Data as the trainer sees it: datasets, the order of their examples, sources of batches.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/json.h"
#include "engine/core/tensor.h"
#include "kernels/api/random.h"  // IWYU pragma: export (datasets draw from it)

namespace trainscope {

enum class Split : std::uint8_t { kTrain, kValidation };

// "train", "validation".
std::string_view name_of(Split split);

// Which axis of an input, an output or the labels counts examples; 0 for names that are not there.
using BatchAxes = std::map<std::string, int>;

// In Dataset::description(): the names of the classes in their order, where labels are text.
inline constexpr std::string_view kClassNames = "class_names";
// And the means of columns, where they stand for empty cells.
inline constexpr std::string_view kColumnMeans = "column_means";

// One tensor that a dataset gives: a graph input or the labels.
struct Field {
  std::string name;
  TensorType example;  // of one example: without the batch dimension
  int batch_axis = 0;  // where that dimension is in a batch: 1 of a time-major [T, N, C]
};

// An index that stands for no example: zeros, and labels that the loss ignores.
inline constexpr std::int64_t kPaddingExample = -1;

// One batch; keep it and hand it in again, so that its memory is used again.
struct Batch {
  // In the order of Dataset::fields(). The batch axis counts examples, padding among them.
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::int64_t examples = 0;  // without padding
  // Elements of the first integer input (text: characters to predict), without padding; 0 for data
  // that are no sequences.
  std::int64_t tokens = 0;
  // What the batch's mean loss is a mean over, so the weight of that mean in a mean of batches:
  // integer labels other than ignore_index, or all elements of other labels.
  std::int64_t loss_terms = 0;
};

// Examples by index. Every function may be called by several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  // The inputs, then the labels if there are any.
  virtual std::span<const Field> fields() const = 0;
  virtual std::int64_t examples(Split split) const = 0;
  // Whether indices may hold kPaddingExample: only integer labels can say "ignore me".
  virtual bool can_pad() const = 0;
  // Reads the examples with these indices, each below examples(split), in their order. The same
  // arguments give the same batch, always. Allocates only when `out` held other shapes.
  virtual void read(Split split, std::int64_t epoch, std::span<const std::int64_t> indices,
                    Batch& out) const = 0;
  // What a run's manifest keeps of the data: kind, file, hash, vocabulary.
  virtual Json description() const = 0;
};

// For datasets: gives `out` the fields' names and shapes for `examples` examples and zero counts.
// Tensors that fit already keep their memory (and what is in it).
void prepare_batch(std::span<const Field> fields, std::int64_t examples, Batch& out);

// How many of `examples` train when the last `validation_fraction` of them validate: the whole
// part of examples * (1 - fraction), at least one unless the fraction is 1.
std::int64_t training_examples(std::int64_t examples, double validation_fraction);

// Streams of the counter-based generator under a run's seed, far from the small numbers that nodes
// and parameters use.
inline constexpr std::uint64_t kOrderStreams = std::uint64_t{1} << 56;      // + epoch
inline constexpr std::uint64_t kPhaseStream = std::uint64_t{2} << 56;       // element: epoch
inline constexpr std::uint64_t kSyntheticStreams = std::uint64_t{3} << 56;  // + field
inline constexpr std::uint64_t kSplitStream = std::uint64_t{6} << 56;
inline constexpr std::uint64_t kImageStreams = std::uint64_t{7} << 56;  // + epoch

// A random permutation of 0..size-1 that takes no memory: element i is computed, not stored.
class Permutation {
 public:
  Permutation(std::uint64_t seed, std::uint64_t stream, std::int64_t size);
  std::int64_t operator()(std::int64_t index) const;

 private:
  std::uint64_t scrambled(std::uint64_t value) const;

  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t size_;
  std::uint64_t rows_;  // rows_ * columns_ >= size_, both near its square root
  std::uint64_t columns_;
};

// What to do with the examples that do not fill a batch at the end of an epoch.
enum class LastBatch : std::uint8_t { kDrop, kPad, kShort };

// The order of the examples that train: another permutation in each epoch, or as the data have
// them.
enum class Shuffle : std::uint8_t { kEachEpoch, kNone };

// What one batch reads.
struct BatchIndices {
  Split split = Split::kTrain;
  std::int64_t epoch = 0;
  std::vector<std::int64_t> examples;
};

// Which examples batch k of a run holds: a function of k alone, so the position in the data is one
// number and a resumed run can neither repeat nor skip an example.
class BatchOrder {
 public:
  // An incomplete last batch of an epoch is dropped. Throws kBadInput when the examples do not fill
  // one batch, or a batch has none.
  static BatchOrder training(std::int64_t examples, std::int64_t batch_size, std::uint64_t seed,
                             Shuffle shuffle = Shuffle::kEachEpoch);
  // Every example once, in order. Throws kBadInput for batches of no examples.
  static BatchOrder validation(std::int64_t examples, std::int64_t batch_size, LastBatch last);

  std::int64_t batch_size() const { return batch_size_; }
  std::int64_t batches_per_epoch() const { return batches_per_epoch_; }
  void indices(std::int64_t batch, BatchIndices& out) const;
  // The batch that comes after `samples_seen` examples. Throws kBadInput when they are no whole
  // number of batches: the run had another batch size.
  std::int64_t batch_after(std::int64_t samples_seen) const;

 private:
  BatchOrder() = default;

  Split split_ = Split::kTrain;
  LastBatch last_ = LastBatch::kDrop;
  Shuffle shuffle_ = Shuffle::kNone;
  std::int64_t examples_ = 0;
  std::int64_t batch_size_ = 0;
  std::int64_t batches_per_epoch_ = 0;
  std::uint64_t seed_ = 0;
};

// Batches of an order: `taken` consecutive ones, the next `skipped` not, and so on. One rank of
// several takes its own of each step.
struct BatchRange {
  static constexpr std::int64_t kEndless = -1;
  std::int64_t first = 0;
  std::int64_t count = kEndless;
  std::int64_t taken = 1;
  std::int64_t skipped = 0;

  // Batch i of the range, in the order.
  std::int64_t batch(std::int64_t i) const { return first + i + i / taken * skipped; }
};

// Gives the batches of a range one after the other.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The next batch, valid until the next call; null after the last one.
  virtual const Batch* next() = 0;
};

// Reads each batch when it is asked for. datasets/prefetch.h reads ahead.
class DirectBatches final : public BatchSource {
 public:
  DirectBatches(std::shared_ptr<const Dataset> dataset, const BatchOrder& order, BatchRange range)
      : dataset_(std::move(dataset)), order_(order), range_(range) {}
  const Batch* next() override;

 private:
  std::shared_ptr<const Dataset> dataset_;
  BatchOrder order_;
  BatchRange range_;
  std::int64_t given_ = 0;
  BatchIndices indices_;
  Batch batch_;
};

}  // namespace trainscope
