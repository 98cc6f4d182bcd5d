// How many images a second the reader of image folders gives as floats, on one thread: decoded, of
// one size. One JSON line: {"source","images","images_per_second","rounds"}, the median of rounds
// over all of them in batches of 32. Usage: images_bench SOURCE SIZE
// SOURCE as --data takes it (images:FOLDER), SIZE of both sides in pixels.
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <numeric>
#include <span>

#include "bench/measuring.h"
#include "datasets/open.h"
#include "engine/core/error.h"

namespace trainscope {
namespace {

constexpr int kRounds = 11;
constexpr std::int64_t kBatch = 32;

void read_all(const Dataset& dataset, std::int64_t epoch, Batch& batch) {
  const std::int64_t examples = dataset.examples(Split::kTrain);
  std::vector<std::int64_t> which;
  for (std::int64_t first = 0; first < examples; first += kBatch) {
    which.resize(static_cast<std::size_t>(std::min(kBatch, examples - first)));
    std::iota(which.begin(), which.end(), first);
    dataset.read(Split::kTrain, epoch, which, batch);
  }
}

void measure(const char* source, std::int64_t size) {
  DatasetOptions options;
  options.inputs = {{.name = "x", .dtype = DType::kF32, .dims = {{3, size, size}}}};
  options.labels = WantedField{
      .name = "labels", .dtype = DType::kI64, .dims = std::vector<std::int64_t>{}, .bound = 1000};
  options.validation_fraction = 0.0;
  const std::unique_ptr<Dataset> dataset = open_dataset(source, options);
  const auto images = static_cast<double>(dataset->examples(Split::kTrain));
  Batch batch;
  bench::Rounds rounds;
  for (int round = 0; round < kRounds; ++round) {
    rounds.times.push_back(bench::milliseconds([&] { read_all(*dataset, round, batch); }));
  }
  fmt::print("{{\"source\":\"{}\",\"images\":{:.0f},\"images_per_second\":{:.0f},\"rounds\":{}}}\n",
             source, images, 1e3 * images / rounds.median(), kRounds);
}

}  // namespace
}  // namespace trainscope

int main(int count, char** words) {
  std::int64_t size = 0;
  const char* end = count == 3 ? words[2] + std::strlen(words[2]) : nullptr;
  if (end == nullptr || std::from_chars(words[2], end, size).ptr != end || size < 1) {
    fmt::print(stderr, "usage: images_bench SOURCE SIZE\n");
    return 2;
  }
  try {
    trainscope::measure(words[1], size);
  } catch (const trainscope::Error& error) {
    fmt::print(stderr, "images_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
