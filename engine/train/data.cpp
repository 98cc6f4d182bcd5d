// The order of examples as a pure function of seed and position; batches read on demand.
#include "engine/train/data.h"

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"

namespace trainscope {
namespace {

// Each round mixes one half with the other; four would do for large sizes (Luby and Rackoff 1988),
// more are needed where the halves are small.
constexpr std::uint64_t kRounds = 10;

// The least whole number whose square is at least `value`.
std::uint64_t square_root_above(std::uint64_t value) {
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(value)));
  while (root * root >= value && root > 0) --root;
  while (root * root < value) ++root;
  return root;
}

// A model may fix its batch dimension at 0.
void require_batch_size(std::int64_t batch_size) {
  require(batch_size > 0, ErrorCode::kBadInput,
          "a batch of {} examples: there is nothing to compute", batch_size);
}

}  // namespace

std::string_view name_of(Split split) { return split == Split::kTrain ? "train" : "validation"; }

void prepare_batch(std::span<const Field> fields, std::int64_t examples, Batch& out) {
  out.examples = out.tokens = out.loss_terms = 0;
  out.tensors.resize(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    TensorType type{.dtype = fields[i].example.dtype, .shape = {}};
    for (const std::int64_t dim : fields[i].example.shape.span()) {
      if (type.shape.rank == fields[i].batch_axis) type.shape.push_back(examples);
      type.shape.push_back(dim);
    }
    if (type.shape.rank == fields[i].batch_axis) type.shape.push_back(examples);
    auto& [name, tensor] = out.tensors[i];
    if (name != fields[i].name) name = fields[i].name;
    if (tensor.type() != type) tensor = Tensor(type);
  }
}

std::int64_t training_examples(std::int64_t examples, double validation_fraction) {
  const double part = static_cast<double>(examples) * (1.0 - validation_fraction);
  const auto whole = static_cast<std::int64_t>(part);
  if (whole == 0 && validation_fraction < 1.0) return std::min<std::int64_t>(examples, 1);
  return whole;
}

Permutation::Permutation(std::uint64_t seed, std::uint64_t stream, std::int64_t size)
    : seed_(seed), stream_(stream), size_(static_cast<std::uint64_t>(size)) {
  CHECK_INVARIANT(size > 0);
  rows_ = square_root_above(size_);
  columns_ = (size_ + rows_ - 1) / rows_;
}

// A Feistel network over rows x columns (Black and Rogaway 2002): a bijection whatever the round
// function gives, because each round adds to one half a number that depends on the other only.
std::uint64_t Permutation::scrambled(std::uint64_t value) const {
  std::uint64_t row = value / columns_;
  std::uint64_t column = value % columns_;
  for (std::uint64_t round = 0; round < kRounds; round += 2) {
    row = (row + random_below(seed_, stream_, round * rows_ + column, rows_)) % rows_;
    column =
        (column + random_below(seed_, stream_, (round + 1) * rows_ + row, columns_)) % columns_;
  }
  return row * columns_ + column;
}

// The grid has a few elements more than the permutation: walk along the cycle until inside.
std::int64_t Permutation::operator()(std::int64_t index) const {
  CHECK_INVARIANT(index >= 0 && static_cast<std::uint64_t>(index) < size_);
  std::uint64_t value = scrambled(static_cast<std::uint64_t>(index));
  while (value >= size_) value = scrambled(value);
  return static_cast<std::int64_t>(value);
}

BatchOrder BatchOrder::training(std::int64_t examples, std::int64_t batch_size, std::uint64_t seed,
                                Shuffle shuffle) {
  CHECK_INVARIANT(examples >= 0);
  require_batch_size(batch_size);
  if (examples < batch_size) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("the training data have {} examples, one batch needs {}", examples, batch_size))
        .hint("give more data, or a smaller --batch");
  }
  BatchOrder order;
  order.examples_ = examples;
  order.batch_size_ = batch_size;
  order.batches_per_epoch_ = examples / batch_size;
  order.seed_ = seed;
  order.shuffle_ = shuffle;
  return order;
}

BatchOrder BatchOrder::validation(std::int64_t examples, std::int64_t batch_size, LastBatch last) {
  CHECK_INVARIANT(examples >= 0);
  require_batch_size(batch_size);
  BatchOrder order;
  order.split_ = Split::kValidation;
  order.last_ = last;
  order.examples_ = examples;
  order.batch_size_ = batch_size;
  order.batches_per_epoch_ = examples / batch_size;
  if (last != LastBatch::kDrop && examples % batch_size != 0) ++order.batches_per_epoch_;
  return order;
}

void BatchOrder::indices(std::int64_t batch, BatchIndices& out) const {
  CHECK_INVARIANT(batch >= 0 && batches_per_epoch_ > 0);
  out.split = split_;
  out.epoch = batch / batches_per_epoch_;
  const std::int64_t begin = batch % batches_per_epoch_ * batch_size_;
  const std::int64_t there = std::min(batch_size_, examples_ - begin);
  out.examples.assign(static_cast<std::size_t>(batch_size_), kPaddingExample);
  if (last_ == LastBatch::kShort) out.examples.resize(static_cast<std::size_t>(there));
  const Permutation shuffled(seed_, kOrderStreams + static_cast<std::uint64_t>(out.epoch),
                             examples_);
  for (std::int64_t i = 0; i < there; ++i) {
    const std::int64_t position = begin + i;
    out.examples[static_cast<std::size_t>(i)] =
        shuffle_ == Shuffle::kEachEpoch ? shuffled(position) : position;
  }
}

std::int64_t BatchOrder::batch_after(std::int64_t samples_seen) const {
  if (samples_seen < 0 || samples_seen % batch_size_ != 0) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} examples were seen, which are no whole number of batches of {}",
                            samples_seen, batch_size_))
        .hint("resume with the batch size that the run was started with");
  }
  return samples_seen / batch_size_;
}

const Batch* DirectBatches::next() {
  if (range_.count != BatchRange::kEndless && given_ >= range_.count) return nullptr;
  order_.indices(range_.batch(given_), indices_);
  dataset_->read(indices_.split, indices_.epoch, indices_.examples, batch_);
  ++given_;
  return &batch_;
}

}  // namespace trainscope
