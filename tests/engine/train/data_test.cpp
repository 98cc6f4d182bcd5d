// The order of examples: permutations, positions after a restart, the last batch.
#include "engine/train/data.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

std::vector<std::int64_t> elements(std::uint64_t seed, std::uint64_t stream, std::int64_t size) {
  const Permutation permutation(seed, stream, size);
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < size; ++i) all.push_back(permutation(i));
  return all;
}

bool is_permutation_of_range(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

std::vector<std::int64_t> batch_of(const BatchOrder& order, std::int64_t batch) {
  BatchIndices out;
  order.indices(batch, out);
  return out.examples;
}

// Gives each example's index as its only input, and the epoch as label.
class CountingDataset final : public Dataset {
 public:
  std::span<const Field> fields() const override { return fields_; }
  std::int64_t examples(Split) const override { return 10; }
  bool can_pad() const override { return true; }
  Json description() const override { return Json::object(); }
  void read(Split, std::int64_t epoch, std::span<const std::int64_t> indices,
            Batch& out) const override {
    prepare_batch(fields_, static_cast<std::int64_t>(indices.size()), out);
    std::copy(indices.begin(), indices.end(), out.tensors[0].second.values<std::int64_t>().begin());
    std::ranges::fill(out.tensors[1].second.values<std::int64_t>(), epoch);
  }

 private:
  std::vector<Field> fields_ = {{.name = "x", .example = {.dtype = DType::kI64, .shape = {}}},
                                {.name = "y", .example = {.dtype = DType::kI64, .shape = {}}}};
};

}  // namespace

TEST_CASE("permutation: every size up to 300 is permuted") {
  for (std::int64_t size = 1; size <= 300; ++size) {
    CAPTURE(size);
    CHECK(is_permutation_of_range(elements(7, 3, size)));
  }
}

TEST_CASE("permutation: sizes around squares and a large one") {
  for (const std::int64_t size : {1023, 1024, 1025, 9999, 10000, 10001, 65536, 65537}) {
    CAPTURE(size);
    CHECK(is_permutation_of_range(elements(1, 2, size)));
  }
}

TEST_CASE("permutation: random access far beyond memory") {
  const std::int64_t size = std::int64_t{1} << 50;
  const Permutation permutation(5, 0, size);
  std::set<std::int64_t> seen;
  for (std::int64_t i = size - 1000; i < size; ++i) {
    const std::int64_t value = permutation(i);
    CHECK(value >= 0);
    CHECK(value < size);
    seen.insert(value);
  }
  CHECK(seen.size() == 1000);
}

TEST_CASE("permutation: all orders of four are reached about equally often") {
  std::map<std::vector<std::int64_t>, int> counts;
  constexpr int kDraws = 24000;
  for (int stream = 0; stream < kDraws; ++stream) {
    ++counts[elements(11, static_cast<std::uint64_t>(stream), 4)];
  }
  REQUIRE(counts.size() == 24);
  double chi_square = 0.0;
  for (const auto& [order, count] : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1e3;
  // 23 degrees of freedom: mean 23; 62 is exceeded by chance once in 10^5.
  CHECK(chi_square < 62.0);
}

TEST_CASE("permutation: an element is equally likely at each position") {
  constexpr std::int64_t kSize = 37;
  std::vector<double> counts(kSize, 0.0);
  constexpr int kDraws = 37000;
  for (int stream = 0; stream < kDraws; ++stream) {
    const Permutation permutation(3, static_cast<std::uint64_t>(stream), kSize);
    counts[static_cast<std::size_t>(permutation(17))] += 1.0;
  }
  double chi_square = 0.0;
  for (const double count : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  CHECK(chi_square < 85.0);  // 36 degrees of freedom, once in 10^5
}

TEST_CASE("permutation: neighbours do not stay neighbours") {
  const std::vector<std::int64_t> order = elements(1, 1, 1000);
  int kept = 0;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) kept += order[i + 1] == order[i] + 1 ? 1 : 0;
  CHECK(kept < 8);  // one is expected
}

TEST_CASE("permutation: the order of a seed never changes") {
  CHECK(elements(42, kOrderStreams, 10) == std::vector<std::int64_t>{0, 5, 4, 9, 1, 7, 6, 2, 8, 3});
  CHECK(elements(42, kOrderStreams + 1, 10) ==
        std::vector<std::int64_t>{5, 2, 9, 0, 3, 1, 4, 8, 7, 6});
  CHECK(elements(43, kOrderStreams, 10) == std::vector<std::int64_t>{0, 6, 7, 2, 5, 9, 1, 4, 3, 8});
}

TEST_CASE("batch order: every epoch reads each example once, in another order") {
  const BatchOrder order = BatchOrder::training(60, 5, 9);
  CHECK(order.batches_per_epoch() == 12);
  std::set<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < 12; ++i) {
      for (const std::int64_t example : batch_of(order, epoch * 12 + i)) all.push_back(example);
    }
    CHECK(is_permutation_of_range(all));
    orders.insert(all);
  }
  CHECK(orders.size() == 20);
}

TEST_CASE("batch order: an incomplete last training batch is dropped") {
  const BatchOrder order = BatchOrder::training(11, 4, 1);
  CHECK(order.batches_per_epoch() == 2);
  BatchIndices out;
  order.indices(1, out);
  CHECK(out.epoch == 0);
  order.indices(2, out);
  CHECK(out.epoch == 1);
  CHECK(out.split == Split::kTrain);
  // Other examples are left out in each epoch: in 40 epochs of 8 from 11 every one is read.
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 80; ++i) {
    for (const std::int64_t example : batch_of(order, i)) seen.insert(example);
  }
  CHECK(seen.size() == 11);
}

TEST_CASE("batch order: a restart at any number of samples goes on with the same batches") {
  constexpr std::int64_t kBatch = 3;
  const BatchOrder order = BatchOrder::training(10, kBatch, 77);
  std::vector<std::vector<std::int64_t>> uninterrupted;
  for (std::int64_t i = 0; i < 20; ++i) uninterrupted.push_back(batch_of(order, i));
  for (std::int64_t restart = 0; restart < 20; ++restart) {
    const BatchOrder again = BatchOrder::training(10, kBatch, 77);
    const std::int64_t first = again.batch_after(restart * kBatch);
    CHECK(first == restart);
    for (std::int64_t i = first; i < 20; ++i) {
      CHECK(batch_of(again, i) == uninterrupted[static_cast<std::size_t>(i)]);
    }
  }
}

TEST_CASE("batch order: positions between batches are refused") {
  const BatchOrder order = BatchOrder::training(10, 3, 1);
  const Error error = error_of([&] { order.batch_after(7); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(error.message() == "7 examples were seen, which are no whole number of batches of 3");
  CHECK(error_of([&] { order.batch_after(-3); }).code() == ErrorCode::kBadInput);
}

TEST_CASE("batch order: without shuffling each epoch reads the examples as they are") {
  const BatchOrder order = BatchOrder::training(7, 3, 5, Shuffle::kNone);
  CHECK(order.batches_per_epoch() == 2);
  BatchIndices batch;
  for (const std::int64_t k : {0, 1, 2, 3}) {
    order.indices(k, batch);
    const std::int64_t first = k % 2 * 3;
    CHECK(batch.examples == std::vector<std::int64_t>{first, first + 1, first + 2});
    CHECK(batch.epoch == k / 2);
  }
}

TEST_CASE("batch order: too few examples for one batch") {
  const Error error = error_of([] { BatchOrder::training(7, 8, 0); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(error.message() == "the training data have 7 examples, one batch needs 8");
}

TEST_CASE("batch order: a batch of no examples, which a model may fix, is bad input") {
  const Error training = error_of([] { BatchOrder::training(4, 0, 0); });
  CHECK(training.code() == ErrorCode::kBadInput);
  const Error validation = error_of([] { BatchOrder::validation(4, 0, LastBatch::kPad); });
  CHECK(validation.code() == ErrorCode::kBadInput);
  CHECK(validation.message() == "a batch of 0 examples: there is nothing to compute");
}

TEST_CASE("batch order: validation reads every example once, in order") {
  const std::int64_t pad = kPaddingExample;
  const BatchOrder padded = BatchOrder::validation(7, 3, LastBatch::kPad);
  CHECK(padded.batches_per_epoch() == 3);
  CHECK(batch_of(padded, 0) == std::vector<std::int64_t>{0, 1, 2});
  CHECK(batch_of(padded, 1) == std::vector<std::int64_t>{3, 4, 5});
  CHECK(batch_of(padded, 2) == std::vector<std::int64_t>{6, pad, pad});

  const BatchOrder shortened = BatchOrder::validation(7, 3, LastBatch::kShort);
  CHECK(shortened.batches_per_epoch() == 3);
  CHECK(batch_of(shortened, 2) == std::vector<std::int64_t>{6});

  const BatchOrder dropped = BatchOrder::validation(7, 3, LastBatch::kDrop);
  CHECK(dropped.batches_per_epoch() == 2);
  CHECK(BatchOrder::validation(6, 3, LastBatch::kPad).batches_per_epoch() == 2);
  CHECK(BatchOrder::validation(0, 3, LastBatch::kPad).batches_per_epoch() == 0);
}

TEST_CASE("direct batches: the range, then null") {
  const BatchOrder order = BatchOrder::training(10, 4, 6);
  DirectBatches batches(std::make_shared<const CountingDataset>(), order, {.first = 1, .count = 2});
  for (std::int64_t i = 1; i <= 2; ++i) {
    const Batch* batch = batches.next();
    REQUIRE(batch != nullptr);
    const auto x = batch->tensors[0].second.values<std::int64_t>();
    CHECK(std::vector<std::int64_t>(x.begin(), x.end()) == batch_of(order, i));
    CHECK(batch->tensors[1].second.values<std::int64_t>()[0] == i / 2);
  }
  CHECK(batches.next() == nullptr);
  CHECK(batches.next() == nullptr);
}

TEST_CASE("direct batches: of several ranks each reads its own of every step") {
  const BatchOrder order = BatchOrder::training(40, 4, 6);
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    DirectBatches batches(std::make_shared<const CountingDataset>(), order,
                          {.first = 6 + 2 * rank, .count = 5, .taken = 2, .skipped = 4});
    for (const std::int64_t i : {6, 7, 12, 13, 18}) {  // of rank 0
      const Batch* batch = batches.next();
      REQUIRE(batch != nullptr);
      const auto x = batch->tensors[0].second.values<std::int64_t>();
      CHECK(std::vector<std::int64_t>(x.begin(), x.end()) == batch_of(order, i + 2 * rank));
    }
    CHECK(batches.next() == nullptr);
  }
}

TEST_CASE("prepare batch: keeps the memory of tensors that fit") {
  const std::vector<Field> fields = {
      {.name = "x", .example = {.dtype = DType::kF32, .shape = {2, 3}}}};
  Batch batch;
  prepare_batch(fields, 4, batch);
  CHECK(batch.tensors[0].first == "x");
  CHECK(batch.tensors[0].second.type() == TensorType{.dtype = DType::kF32, .shape = {4, 2, 3}});
  const std::byte* memory = batch.tensors[0].second.data();
  batch.examples = 4;
  prepare_batch(fields, 4, batch);
  CHECK(batch.tensors[0].second.data() == memory);
  CHECK(batch.examples == 0);
  prepare_batch(fields, 5, batch);
  CHECK(batch.tensors[0].second.shape() == Shape{5, 2, 3});
}

TEST_CASE("training examples: the whole part trains, the rest validates") {
  CHECK(training_examples(1115394, 0.1) == 1003854);
  CHECK(training_examples(10, 0.1) == 9);
  CHECK(training_examples(9, 0.1) == 8);
  CHECK(training_examples(1, 0.1) == 1);
  CHECK(training_examples(1, 1.0) == 0);
  CHECK(training_examples(0, 0.1) == 0);
  CHECK(training_examples(100, 0.0) == 100);
  CHECK(training_examples(100, 1.0) == 0);
}

}  // namespace trainscope
