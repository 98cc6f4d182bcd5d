// Made-up data: shapes, ranges, and the same numbers for the same seed.
#include "datasets/readers/synthetic.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

Ints range(std::int64_t size) {
  Ints all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

TEST_CASE("synthetic: as many examples as asked for, in the model's shapes") {
  const auto data = open_dataset("synthetic,examples=20,validation=0.25", pair_options());
  CHECK(data->examples(Split::kTrain) == 15);
  CHECK(data->examples(Split::kValidation) == 5);
  CHECK(data->fields()[0].example == TensorType{.dtype = DType::kF32, .shape = {2}});
  CHECK(data->fields()[1].example == TensorType{.dtype = DType::kI64, .shape = {}});
  CHECK(open_dataset("synthetic", pair_options())->examples(Split::kTrain) == 460);  // of 512
}

TEST_CASE("synthetic: floats are normal, integers uniform below the bound") {
  const auto data = open_dataset("synthetic,examples=3000,validation=0", pair_options());
  const Batch batch = read_batch(*data, Split::kTrain, 0, range(3000));
  const auto x = batch.tensors[0].second.values<float>();
  double sum = 0.0;
  double squares = 0.0;
  for (const float value : x) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  // Standard errors 0.013 and 0.018.
  CHECK(std::abs(sum / 6000.0) < 0.06);
  CHECK(std::abs(squares / 6000.0 - 1.0) < 0.09);
  const Ints labels = ints_of(batch.tensors[1].second);
  for (const std::int64_t label : {0, 1, 2}) {
    CHECK(std::abs(std::ranges::count(labels, label) - 1000) < 130);
  }
}

TEST_CASE("synthetic: the seed decides every number") {
  DatasetOptions options = pair_options();
  const auto values = [&] {
    const auto data = open_dataset("synthetic,examples=8,validation=0", options);
    const auto x = read_batch(*data, Split::kTrain, 0, range(8)).tensors[0].second;
    return std::vector<float>(x.values<float>().begin(), x.values<float>().end());
  };
  const std::vector<float> first = values();
  CHECK(values() == first);
  options.seed = 2;
  CHECK(values() != first);
}

TEST_CASE("synthetic: the description tells what the numbers depend on") {
  const auto description = [](const std::string& source) {
    return open_dataset(source, pair_options())->description();
  };
  const Json all = description("synthetic,examples=20,classes=2,validation=0.25");
  CHECK(all == Json::object({{"kind", "synthetic"},
                             {"examples", 20},
                             {"validation_fraction", 0.25},
                             {"classes", 2}}));
  CHECK(description("synthetic").get<int>("classes") == 3);  // what the model knows
}

TEST_CASE("synthetic: fewer classes, open dimensions, unknown bounds, booleans") {
  DatasetOptions options = text_options(6);
  options.inputs[0].bound = 9;
  options.inputs.push_back({.name = "mask", .dtype = DType::kBool, .dims = {{6}}});
  options.inputs.push_back({.name = "flags", .dtype = DType::kI32, .dims = {{2}}});
  const auto data = open_dataset("synthetic,examples=200,classes=4,validation=0", options);
  const Batch batch = read_batch(*data, Split::kTrain, 0, range(200));
  CHECK(batch.tensors[0].second.shape() == Shape{200, 6});
  const auto highest = [&](std::size_t i) {
    return std::ranges::max(ints_of(batch.tensors[i].second));
  };
  CHECK(highest(0) == 8);
  CHECK(highest(2) == 1);
  CHECK(highest(3) == 3);
  CHECK(batch.tokens == 1200);
  const auto mask = batch.tensors[1].second.values<bool>();
  const auto set = std::ranges::count(mask, true);
  CHECK(set > 500);
  CHECK(set < 700);
}

TEST_CASE("synthetic: what cannot be made up is refused") {
  const auto refused = [](const char* text, const DatasetOptions& options, const char* piece) {
    const Error error = opening_error(text, options);
    CHECK(error.code() == ErrorCode::kUsage);
    CAPTURE(error.message());
    CHECK(contains(error.message(), piece));
  };
  refused("synthetic", text_options(0), "a dimension of 'ids' is left open");
  DatasetOptions unknown = pair_options();
  unknown.inputs[0].dims.reset();
  refused("synthetic", unknown, "the shape of 'x' is not known");
  refused("synthetic,examples=0", pair_options(), "expected a whole number of 1 or more");
  refused("synthetic,classes=4", pair_options(), "4 classes, but the model knows 3");
  refused("synthetic,examples=9223372036854775807", pair_options(), "is more than 8 GiB");
  refused("synthetic,examples=2000000000", pair_options(), "is more than 8 GiB");
  refused("synthetic", DatasetOptions{}, "the model takes no data");
}

}  // namespace trainscope
