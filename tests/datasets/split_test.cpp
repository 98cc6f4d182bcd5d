// Which examples validate: the last ones, some by a seed, or those of another source.
#include "datasets/split.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

// Ten examples whose first number is their place in the file.
std::string ten(const TemporaryFolder& folder) {
  std::string text = "u,v,y\n";
  for (int i = 0; i < 10; ++i) text += std::to_string(i) + ",0,1\n";
  put(folder / "d.csv", text);
  return source("csv", folder / "d.csv", ",label=y");
}

std::vector<float> places(const Dataset& data, Split split) {
  Ints all(static_cast<std::size_t>(data.examples(split)));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  const Batch batch = read_batch(data, split, 0, all);
  std::vector<float> list;
  for (std::size_t i = 0; i < all.size(); ++i) {
    list.push_back(batch.tensors[0].second.values<float>()[2 * i]);
  }
  return list;
}

}  // namespace

TEST_CASE("split: a seed draws the examples that validate, each once") {
  const TemporaryFolder folder;
  DatasetOptions options = pair_options();
  options.validation_fraction = 0.3;
  CHECK(places(*open_dataset(ten(folder), options), Split::kValidation) ==
        std::vector<float>{7, 8, 9});
  std::set<std::vector<float>> drawn;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    options.validation_seed = seed;
    const auto data = open_dataset(ten(folder), options);
    const std::vector<float> validation = places(*data, Split::kValidation);
    std::vector<float> all = places(*data, Split::kTrain);
    CHECK(all.size() == 7);
    CHECK(std::ranges::is_sorted(all));
    CHECK(std::ranges::is_sorted(validation));
    all.insert(all.end(), validation.begin(), validation.end());
    CHECK(std::set<float>(all.begin(), all.end()).size() == 10);
    drawn.insert(validation);
    CHECK(data->description().get<std::int64_t>("validation_seed") ==
          static_cast<std::int64_t>(seed));
    CHECK(places(*open_dataset(ten(folder), options), Split::kValidation) == validation);
  }
  CHECK(drawn.size() > 1);
}

TEST_CASE("split: windows of a text are not drawn by a seed") {
  const TemporaryFolder folder;
  put(folder / "t.txt", "abcabcabcabcabc");
  DatasetOptions options = text_options(2);
  options.validation_seed = 1;
  const Error error = opening_error(source("text", folder / "t.txt"), options);
  CHECK(error.code() == ErrorCode::kUsage);
  CHECK(contains(error.message(), "split by their place"));
  options.validation_seed.reset();
  options.inputs[0].batch_axis = 1;
  CHECK(contains(opening_error(source("text", folder / "t.txt"), options).message(),
                 "is time-major, text feeds [batch, sequence]"));
}

TEST_CASE("split: one source trains, another validates") {
  const TemporaryFolder folder;
  DatasetOptions options = pair_options();
  options.validation_fraction = 0.0;
  std::shared_ptr<const Dataset> training = open_dataset(ten(folder), options);
  put(folder / "v.csv", "u,v,y\n70,0,1\n80,0,2\n");
  options.validation_fraction = 1.0;
  const auto data =
      with_validation(training, open_dataset(source("csv", folder / "v.csv", ",label=y"), options));
  CHECK(places(*data, Split::kTrain).size() == 10);
  CHECK(places(*data, Split::kValidation) == std::vector<float>{70, 80});
  CHECK(data->can_pad());
  const Json description = data->description();
  CHECK(description.at("validation_data").contains("xxh3"));
  CHECK(!description.at("validation_data").contains("file"));
  DatasetOptions other = flower_options();
  other.validation_fraction = 1.0;
  put(folder / "w.csv", "a,b,c,d,y\n1,2,3,4,0\n");
  const Error error = error_of([&] {
    with_validation(training, open_dataset(source("csv", folder / "w.csv", ",label=y"), other));
  });
  CHECK(contains(error.message(),
                 "the training data give 'x' as f32[2] an example, the "
                 "validation data 'x' as f32[4]"));
}

}  // namespace trainscope
