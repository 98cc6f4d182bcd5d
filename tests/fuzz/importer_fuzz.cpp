// libFuzzer target: bytes -> OnnxModel -> Graph. Whatever the bytes, the result is a graph that
// verifies or an Error with a documented code.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ir/graph.h"
#include "engine/onnx/import.h"
#include "engine/ops/standard_ops.h"
#include "tests/fuzz/model_mutator.h"
#include "tests/fuzz/verdict.h"

namespace trainscope::test {
namespace {

void import(std::span<const std::byte> bytes) {
  static const OpTable ops = standard_ops();
  static const Evaluate evaluate = evaluator(ops, cpu_kernels());
  try {
    OnnxModel model = OnnxModel::from_bytes(bytes);
    ImportOptions options;
    options.evaluate = &evaluate;
    Graph graph = to_graph(model, ops, options);
    std::vector<std::string> broken = verify(graph);
    if (!broken.empty()) report("the graph breaks a rule: " + join(broken, "; "));
  } catch (const Error& error) {
    check_refusal(error, error.code() == ErrorCode::kBadInput || error.code() == ErrorCode::kUsage);
  }
}

}  // namespace
}  // namespace trainscope::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  trainscope::test::import(std::as_bytes(std::span(data, size)));
  return 0;
}

// Every other time the bytes themselves are mutated, so that the parser is tried too.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned int seed) {
  return trainscope::test::mutate_model({.data = data, .size = size, .max_size = max_size}, seed);
}
