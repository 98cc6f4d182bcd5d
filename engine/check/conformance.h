// conformance: ONNX's backend-test folders, run and compared as ONNX's own runner does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/passes/pass_manager.h"
#include "engine/plan/lower.h"

namespace trainscope {

enum class Verdict : std::uint8_t {
  kPass,
  kWrong,        // it ran, but an output differs
  kError,        // a file is missing, damaged or contradicts another
  kUnsupported,  // refused before the run, with what is missing
};
std::string_view name_of(Verdict verdict);

struct ConformanceTest {
  std::string name;  // the folder's path below the one searched, or its own name
  Verdict verdict = Verdict::kError;
  std::string why;  // one line; empty for a pass
};

enum class ConformancePasses : std::uint8_t {
  kAll,   // every pass of passes.def, planned and executed as a training step is
  kNone,  // node by node on the graph as imported
};
// A graph's shapes must be known before it runs, so that inputs that hold axes or sizes are
// constants. kNeeded: inputs are, when the test cannot be built without; kAll: all of them are.
enum class KnownInputs : std::uint8_t { kNeeded, kAll };

struct ConformanceOptions {
  ConformancePasses passes = ConformancePasses::kAll;
  KnownInputs known = KnownInputs::kNeeded;
  PassOptions pass_options = {};
  LowerOptions lower = {};
};

// The folders below `root` (itself too) that hold a model.onnx, sorted. Symbolic links below it are
// not followed. kIo when `root` is no folder, kUsage when there is no test in it.
std::vector<std::filesystem::path> find_conformance_tests(const std::filesystem::path& root);

// model.onnx on every test_data_set_N/input_N.pb against output_N.pb. Whatever goes wrong is the
// verdict.
ConformanceTest run_conformance_test(const std::filesystem::path& folder,
                                     const ConformanceOptions& options);
// All of find_conformance_tests.
std::vector<ConformanceTest> run_conformance(const std::filesystem::path& root,
                                             const ConformanceOptions& options);

// What is different, in one line; nothing when type and shape are equal and all elements are close:
// |a - b| <= 1e-7 + 1e-3 |b| (bf16: 2^-6 |b|), NaN and infinities only where the other has them;
// integers and booleans equal.
std::optional<std::string> conformance_difference(const Tensor& actual, const Tensor& expected);

}  // namespace trainscope
