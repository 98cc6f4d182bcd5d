// Sizes as words of a command line.
#include "engine/size_words.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

TEST_CASE("size words: there and back") {
  const SizeRequest sizes{.batch = 8,
                          .sequence = 128,
                          .shapes = {{"mask", {8, 1, 128}}, {"time=of day", {3}}},
                          .batch_axes = {{"x", 1}},
                          .max_trips = 5};
  SizeRequest read;
  const std::vector<std::string> words = words_of(sizes);
  for (std::size_t i = 0; i < words.size(); i += 2) {
    add_size(read, words[i].substr(2), words[i + 1]);
  }
  CHECK(read == sizes);
  CHECK(words_of({}).empty());
  const SizeRequest plain{.batch = 2, .shapes = {{"seq", {16}}}};
  CHECK(join(words_of(plain), " ") == "--batch 2 --shape seq=16");
  CHECK(sizes_from_words("--batch 2 --shape seq=16") == plain);
  CHECK(sizes_from_words("  --shape=seq=16   --batch=2 ") == plain);
  CHECK(sizes_from_words("") == SizeRequest{});
}

TEST_CASE("size words: what is none is an error of use that quotes it") {
  const auto fault_of = [](std::string_view line) {
    try {
      sizes_from_words(line);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kUsage);
      return error.message();
    }
    return std::string();
  };
  CHECK(fault_of("8") == "'8' is no flag: expected words such as --batch 8 --seq 128");
  CHECK(fault_of("--batch") == "--batch needs a value");
  CHECK(fault_of("--batch 0") == "--batch is '0': expected a whole number from 1 to 16777216");
  CHECK(fault_of("--seq 16777217") ==
        "--seq is '16777217': expected a whole number from 1 to 16777216");
  CHECK(fault_of("--max-trips many") ==
        "--max-trips is 'many': expected a whole number from 1 to 16777216");
  CHECK(fault_of("--shape x=2,-1") == "--shape is 'x=2,-1': expected NAME=2,3");
  CHECK(fault_of("--shape =2") == "--shape is '=2': expected NAME=2,3");
  CHECK(fault_of("--shape x=1 --shape x=2") == "--shape gives 'x' twice");
  CHECK(fault_of("--batch-axis x=99") ==
        "--batch-axis is 'x=99': expected NAME=AXIS, the axis counted from 0");
  CHECK(fault_of("--batch-axis x=1 --batch-axis x=0") == "--batch-axis gives 'x' twice");
  CHECK(fault_of("--bath 8") == "'--bath' is no size of a model");
}

}  // namespace
}  // namespace trainscope
