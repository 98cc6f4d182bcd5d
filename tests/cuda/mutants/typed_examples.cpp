// Examples as mixed precision has them: elements of two bytes, sums and statistics in f32.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cuda/mutants/wide_examples.h"

namespace trainscope::test {
namespace {

struct SumsOfOp {
  std::string_view op;
  std::vector<std::size_t> inputs;
};

// Scales, statistics and gates that were saved, and a loss's gradient and weights.
const std::vector<SumsOfOp>& ops_with_sums() {
  static const std::vector<SumsOfOp> ops{
      {"LayerNormalizationGrad", {2}},
      {"RMSNormalizationGrad", {2}},
      {"BatchNormReluGrad", {3}},
      {"CrossEntropyGrad", {0, 3, 4}},
      {"GruGrad", {3}},
      {"LstmGrad", {4}},
  };
  return ops;
}

// Where the input behind the one that begins here does.
std::size_t next_input(std::string_view example, std::size_t begin) {
  constexpr std::string_view kBetween = ", ";
  const std::size_t between = example.find(kBetween, begin);
  return between == std::string_view::npos ? between : between + kBetween.size();
}

}  // namespace

std::string with_f32_sums(std::string_view op, std::string_view example) {
  const auto found = std::ranges::find(ops_with_sums(), op, &SumsOfOp::op);
  if (found == ops_with_sums().end()) return std::string(example);
  const std::size_t end = std::min(example.find(';'), example.size());
  std::string result;
  std::size_t begin = 0;
  for (std::size_t input = 0; begin < end; ++input) {
    const std::size_t next = std::min(next_input(example, begin), end);
    const bool is_sum = std::ranges::find(found->inputs, input) != found->inputs.end();
    if (is_sum && example[begin] == '[') result += "f32";
    result += example.substr(begin, next - begin);
    begin = next;
  }
  result += example.substr(end);
  return result;
}

}  // namespace trainscope::test
