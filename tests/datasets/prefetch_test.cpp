// Reading ahead: the same batches as without it, errors in their place, a clean end.
#include "datasets/prefetch.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

// Gives indices back; can be slow, count its readings, and fail at one of them.
class ProbeDataset final : public Dataset {
 public:
  explicit ProbeDataset(int fail_at = -1, int delay_us = 0)
      : fail_at_(fail_at), delay_us_(delay_us) {}
  std::span<const Field> fields() const override { return fields_; }
  std::int64_t examples(Split) const override { return 100; }
  bool can_pad() const override { return true; }
  Json description() const override { return Json::object(); }
  void read(Split, std::int64_t epoch, std::span<const std::int64_t> indices,
            Batch& out) const override {
    {
      const std::lock_guard lock(mutex_);
      ++by_thread_[std::this_thread::get_id()];
    }
    if (readings_++ == fail_at_) fail(ErrorCode::kBadInput, "example {} is torn", indices[0]);
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us_));
    prepare_batch(fields_, static_cast<std::int64_t>(indices.size()), out);
    const auto values = out.tensors[0].second.values<std::int64_t>();
    std::copy(indices.begin(), indices.end(), values.begin());
    out.tokens = epoch;
  }
  int readings() const { return readings_; }
  int readings_by(std::thread::id thread) const {
    const std::lock_guard lock(mutex_);
    return by_thread_[thread];
  }

 private:
  int fail_at_;
  int delay_us_;
  mutable std::atomic<int> readings_ = 0;
  mutable std::mutex mutex_;
  mutable std::map<std::thread::id, int> by_thread_;
  std::vector<Field> fields_ = {{.name = "x", .example = {.dtype = DType::kI64, .shape = {}}}};
};

void check_same(BatchSource& a, BatchSource& b) {
  for (int i = 0;; ++i) {
    const Batch* x = a.next();
    const Batch* y = b.next();
    REQUIRE((x == nullptr) == (y == nullptr));
    if (x == nullptr) return;
    CHECK(ints_of(x->tensors[0].second) == ints_of(y->tensors[0].second));
    CHECK(x->tokens == y->tokens);
    REQUIRE(i < 1000);
  }
}

}  // namespace

TEST_CASE("prefetch: the same batches as direct reading, at any depth and start") {
  const BatchOrder order = BatchOrder::training(100, 7, 3);
  for (const int depth : {1, 2, 5}) {
    for (const std::int64_t first : {0, 1, 13, 40}) {
      const auto data = std::make_shared<const ProbeDataset>(-1, first == 13 ? 200 : 0);
      Prefetcher ahead(data, order, {.first = first, .count = 50}, depth);
      DirectBatches direct(data, order, {.first = first, .count = 50});
      check_same(ahead, direct);
      CHECK(ahead.next() == nullptr);
    }
  }
}

TEST_CASE("prefetch: a text from a restart goes on as the uninterrupted run did") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 4000; ++i) text += static_cast<char>('a' + (i * i + i / 7) % 26);
  put(folder / "t", text);
  const std::shared_ptr<const Dataset> data =
      open_dataset(source("text", folder / "t"), text_options(16));
  const BatchOrder order = BatchOrder::training(data->examples(Split::kTrain), 5, 8);
  CHECK(order.batches_per_epoch() == 44);
  for (const std::int64_t restart : {0, 1, 43, 44, 45, 100}) {
    std::shared_ptr<const Dataset> again =
        open_dataset(source("text", folder / "t"), text_options(16));
    Prefetcher resumed(std::move(again), order,
                       {.first = order.batch_after(restart * 5), .count = 20});
    DirectBatches direct(data, order, {.first = restart, .count = 20});
    check_same(resumed, direct);
  }
}

TEST_CASE("prefetch: stays at most depth batches ahead, and a batch keeps while it is held") {
  const auto data = std::make_shared<const ProbeDataset>();
  const BatchOrder order = BatchOrder::training(100, 10, 3);
  Prefetcher ahead(data, order, {}, 2);
  const Batch* batch = ahead.next();
  const Ints before = ints_of(batch->tensors[0].second);
  for (int i = 0; i < 200 && data->readings() < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(data->readings() == 3);
  CHECK(ints_of(batch->tensors[0].second) == before);
}

TEST_CASE(
    "prefetch: without a core to spare the caller reads what takes no time, the same batches") {
  const BatchOrder order = BatchOrder::training(100, 7, 3);
  for (const int depth : {1, 2, 5}) {
    for (const int delay_us : {0, 1500}) {
      const auto data = std::make_shared<const ProbeDataset>(-1, delay_us);
      Prefetcher ahead(data, order, {.first = 3, .count = 30}, depth, SpareCore::kNo);
      DirectBatches direct(data, order, {.first = 3, .count = 30});
      check_same(ahead, direct);
    }
  }
}

TEST_CASE("prefetch: the caller's own readings are on its thread, those that wait are not") {
  const BatchOrder order = BatchOrder::training(100, 10, 3);
  const auto readers_of = [&](int delay_us, SpareCore spare) {
    const auto data = std::make_shared<const ProbeDataset>(-1, delay_us);
    Prefetcher ahead(data, order, {}, 2, spare);
    for (int i = 0; i < 20; ++i) {
      ahead.next();
      // As a step does, long enough for the thread to come to rest.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return data->readings_by(std::this_thread::get_id());
  };
  CHECK(readers_of(0, SpareCore::kNo) >= 5);  // others may delay some
  CHECK(readers_of(3000, SpareCore::kNo) == 0);
  CHECK(readers_of(0, SpareCore::kYes) == 0);
}

TEST_CASE("prefetch: a failure of the caller's reading arrives in its batch's place, too") {
  const auto data = std::make_shared<const ProbeDataset>(6);
  const BatchOrder order = BatchOrder::training(100, 10, 3);
  Prefetcher ahead(data, order, {.first = 0, .count = 10}, 2, SpareCore::kNo);
  for (int i = 0; i < 6; ++i) REQUIRE(ahead.next() != nullptr);
  for (int i = 0; i < 2; ++i) {
    CHECK(error_of([&] { ahead.next(); }).code() == ErrorCode::kBadInput);
  }
}

TEST_CASE("prefetch: batches use their memory again") {
  const auto data = std::make_shared<const ProbeDataset>();
  const BatchOrder order = BatchOrder::training(100, 10, 3);
  Prefetcher ahead(data, order, {.first = 0, .count = 40}, 2);
  std::set<const std::byte*> memory;
  while (const Batch* batch = ahead.next()) memory.insert(batch->tensors[0].second.data());
  CHECK(memory.size() == 3);
}

TEST_CASE("prefetch: a failure arrives in its batch's place, and again after that") {
  const auto data = std::make_shared<const ProbeDataset>(3);
  const BatchOrder order = BatchOrder::training(100, 10, 3);
  Prefetcher ahead(data, order, {.first = 0, .count = 10}, 2);
  for (int i = 0; i < 3; ++i) REQUIRE(ahead.next() != nullptr);
  for (int i = 0; i < 2; ++i) {
    const Error error = error_of([&] { ahead.next(); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK(contains(error.message(), "is torn"));
  }
}

TEST_CASE("prefetch: can be dropped at any moment") {
  const BatchOrder order = BatchOrder::training(100, 10, 3);
  for (int taken = 0; taken < 6; ++taken) {
    const auto data = std::make_shared<const ProbeDataset>(taken == 5 ? 1 : -1, 100);
    Prefetcher ahead(data, order, {}, 2);
    for (int i = 0; i < taken && taken < 5; ++i) ahead.next();
  }
  const auto data = std::make_shared<const ProbeDataset>();
  Prefetcher none(data, order, {.first = 0, .count = 0});
  CHECK(none.next() == nullptr);
}

}  // namespace trainscope
