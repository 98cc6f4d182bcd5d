// Ids drawn from a model whose next id is known.
#include "engine/run/sampling.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"
#include "tests/engine/run/run_tools.h"

namespace trainscope::test {
namespace {

// Behind 0 comes 1, behind 1 comes 2, behind 2 comes 0.
ForwardPrograms next_of_three(const std::string& batch) {
  CompileOptions options;
  options.device = test_device();
  if (batch == "n") options.import.dims = {{"n", 2}};
  options.training.mode = GraphMode::kInference;
  return {model("(int64[" + batch + ",4] ids) => (float[" + batch +
                ",4,3] logits)"
                "<float[3,3] next = {0, 9, 0, 0, 0, 9, 9, 0, 0}> { logits = Gather(next, ids) }"),
          nullptr, options};
}

SamplingOptions five_ids() {
  return {
      .input = "ids", .output = "logits", .prompt = {1}, .ids = 3, .count = 5, .temperature = 0.0};
}

TEST_CASE("sampling: the likeliest id follows, by a program for one example or a whole batch") {
  for (const char* batch : {"n", "2"}) {
    CAPTURE(batch);
    ForwardPrograms programs = next_of_three(batch);
    CHECK(sample_ids(programs, five_ids()) == std::vector<std::int64_t>{2, 0, 1, 2, 0});
  }
}

TEST_CASE("sampling: a vocabulary that the model does not have is refused") {
  ForwardPrograms programs = next_of_three("n");
  SamplingOptions options = five_ids();
  options.ids = 4;
  CHECK_THROWS_AS((void)sample_ids(programs, options), Error);
}

}  // namespace
}  // namespace trainscope::test
