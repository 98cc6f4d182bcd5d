// ONNX's backend tests: find the folders, run each model on its data, compare.
#include "engine/check/conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <span>

#include "engine/compile.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/exec/executor.h"
#include "engine/exec/reference.h"
#include "engine/onnx/import.h"
#include "engine/onnx/tensor_pb.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;
using TensorsByName = std::map<std::string, Tensor>;

constexpr double kRelative = 1e-3;        // of ONNX's backend test runner
constexpr double kRelativeBF16 = 0x1p-6;  // of the same: two of its units in the last place
constexpr double kAbsolute = 1e-7;
constexpr std::size_t kMaxFolders = 100'000;

// --- Files ---------------------------------------------------------------------------------------
struct DataSet {
  TensorsByName inputs;
  std::vector<Tensor> outputs;
};

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

// PREFIX_0.pb, PREFIX_1.pb, ... without gaps.
std::vector<fs::path> numbered_files(const fs::path& folder, std::string_view prefix) {
  std::vector<std::string> names = list_directory(folder);
  auto wanted = std::ranges::count_if(names, [prefix](const std::string& name) {
    return name.starts_with(prefix) && name.ends_with(".pb");
  });
  std::vector<fs::path> files;
  for (std::ptrdiff_t i = 0; i < wanted; ++i) {
    std::string name = fmt::format("{}{}.pb", prefix, i);
    require(std::ranges::find(names, name) != names.end(), ErrorCode::kBadInput,
            "'{}' has {} {}N.pb files, but no {}", printable(folder.string()), wanted, prefix,
            name);
    files.push_back(folder / name);
  }
  return files;
}

// ONNX's older test data hold the bits of bf16 as u16.
Tensor as_declared(Tensor tensor, DType declared) {
  if (declared != DType::kBF16 || tensor.dtype() != DType::kU16) return tensor;
  Tensor result({.dtype = declared, .shape = tensor.shape()});
  std::memcpy(result.data(), tensor.data(), tensor.bytes());
  return result;
}

void add_input(const OnnxModel& model, const std::string& name, Tensor tensor, DataSet& data) {
  const auto declared = std::ranges::find(model.inputs(), name, &ModelTensor::name);
  require_supported(declared != model.inputs().end(),
                    "input '{}' is an initializer, which the test gives another value",
                    printable(name));
  tensor = as_declared(std::move(tensor), declared->dtype);
  require(tensor.dtype() == declared->dtype, ErrorCode::kBadInput,
          "input '{}' is declared as {}, the stored one is {}", printable(name),
          name_of(declared->dtype), type_text(tensor.type()));
  require_supported(!declared->dims || std::ssize(*declared->dims) == tensor.shape().rank,
                    "input '{}' is declared with {} axes, the test gives it {}", printable(name),
                    declared->dims ? declared->dims->size() : 0, tensor.shape().rank);
  data.inputs.insert_or_assign(name, std::move(tensor));
}

void require_all_inputs(const OnnxModel& model, const DataSet& data) {
  for (const ModelTensor& input : model.inputs()) {
    require(data.inputs.contains(input.name), ErrorCode::kBadInput, "no file holds input '{}'",
            printable(input.name));
  }
}

DataSet read_data_set(const OnnxModel& model, const fs::path& folder) {
  DataSet data;
  std::vector<std::string> names = model.declared_inputs();
  std::vector<fs::path> inputs = numbered_files(folder, "input_");
  require(inputs.size() <= names.size(), ErrorCode::kBadInput,
          "'{}' has {} inputs, the model has {}", printable(folder.string()), inputs.size(),
          names.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    add_input(model, names[i], read_tensor_pb(inputs[i]), data);
  }
  require_all_inputs(model, data);
  std::vector<fs::path> outputs = numbered_files(folder, "output_");
  require(outputs.size() == model.outputs().size(), ErrorCode::kBadInput,
          "'{}' has {} outputs, the model has {}", printable(folder.string()), outputs.size(),
          model.outputs().size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    data.outputs.push_back(as_declared(read_tensor_pb(outputs[i]), model.outputs()[i].dtype));
  }
  return data;
}

std::vector<fs::path> data_set_folders(const fs::path& folder) {
  std::vector<fs::path> sets;
  for (const std::string& name : list_directory(folder)) {
    if (name.starts_with("test_data_set_") && is_folder(folder / name)) {
      sets.push_back(folder / name);
    }
  }
  require(!sets.empty(), ErrorCode::kBadInput, "there is no test_data_set_N folder");
  return sets;
}

// --- Running -------------------------------------------------------------------------------------
// Inputs that the import takes for constants, from none to all: the first of these with which the
// graph can be built is the one that runs.
using IsKnown = bool (*)(const Tensor&);
constexpr IsKnown kKnownNeeded[] = {
    [](const Tensor&) { return false; },
    [](const Tensor& t) { return !is_float(t.dtype()); },
    [](const Tensor& t) { return !is_float(t.dtype()) || t.shape().rank <= 1; },
    [](const Tensor&) { return true; },
};

ImportOptions import_options(const TensorsByName& inputs, IsKnown is_known) {
  ImportOptions options;
  for (const auto& [name, tensor] : inputs) {
    options.shapes.emplace(name, Ints(tensor.shape().span().begin(), tensor.shape().span().end()));
    if (is_known(tensor)) {
      options.known_inputs.emplace(name, std::make_shared<const Tensor>(tensor));
    }
  }
  return options;
}

std::vector<Tensor> run_compiled(const OnnxModel& model, const DataSet& data, ImportOptions import,
                                 const ConformanceOptions& options) {
  CompileOptions compile_options;
  compile_options.import = std::move(import);
  compile_options.training.mode = GraphMode::kInference;
  compile_options.passes = options.pass_options;
  // Batch norm and dropout are tested in the form that the model gives them.
  compile_options.passes.disabled.push_back("training_form");
  compile_options.lower = options.lower;
  const std::unique_ptr<const Compiled> compiled = compile(model, compile_options);
  Executor executor(compiled->program);
  executor.load_initial();
  for (const auto& [name, tensor] : data.inputs) {
    bool bound = !compile_options.import.known_inputs.contains(name) && executor.has(name);
    if (bound) executor.write(name, tensor);
  }
  executor.run_micro_step();
  const Graph& graph = compiled->program.graph;
  std::vector<Tensor> outputs;
  for (ValueId v : graph.outputs) outputs.push_back(executor.read(graph.value(v).name));
  return outputs;
}

std::vector<Tensor> run_node_by_node(const OnnxModel& model, const DataSet& data,
                                     ImportOptions import, const ConformanceOptions& options) {
  const Evaluate evaluate =
      evaluator(op_table(), cpu_kernels(),
                {.kernels = options.lower.kernels, .threads = options.lower.threads});
  import.evaluate = &evaluate;
  Graph graph = to_graph(model, op_table(), import);
  TensorsByName inputs = data.inputs;
  for (const auto& [name, tensor] : import.known_inputs) inputs.erase(name);
  const ReferenceValues values = reference_run(graph, inputs, evaluate);
  std::vector<Tensor> outputs;
  for (ValueId v : graph.outputs) outputs.push_back(values.at(v));
  return outputs;
}

std::vector<Tensor> run_model(const OnnxModel& model, const DataSet& data, IsKnown is_known,
                              const ConformanceOptions& options) {
  ImportOptions import = import_options(data.inputs, is_known);
  if (options.passes == ConformancePasses::kNone) {
    return run_node_by_node(model, data, std::move(import), options);
  }
  return run_compiled(model, data, std::move(import), options);
}

std::vector<Tensor> run_with_needed_inputs(const OnnxModel& model, const DataSet& data,
                                           const ConformanceOptions& options) {
  const std::span<const IsKnown> choices(kKnownNeeded);
  if (options.known == KnownInputs::kNeeded) {
    for (IsKnown is_known : choices.first(choices.size() - 1)) {
      try {
        return run_model(model, data, is_known, options);
      } catch (const Error& error) {
        if (!error.unsupported()) throw;
      }
    }
  }
  return run_model(model, data, choices.back(), options);
}

// --- Verdicts ------------------------------------------------------------------------------------
// Message and innermost place, files by their path inside the test's folder.
std::string one_line(const Error& error, const fs::path& folder) {
  std::string text = error.message();
  if (!error.context().empty()) {
    std::string_view where = error.context().front();
    const std::string prefix = printable(folder.string()) + "/";
    if (where.starts_with(prefix)) where.remove_prefix(prefix.size());
    text += fmt::format(" ({})", where);
  }
  std::string line;
  for (char c : text) {
    bool blank = c == '\n' || c == ' ';
    if (!blank) line += c;
    if (blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  return line;
}

std::string element_text(const Tensor& tensor, std::int64_t i) {
  Tensor exact = convert(tensor, DType::kF64);
  return fmt::format("{}", exact.values<double>()[static_cast<std::size_t>(i)]);
}

bool close(double a, double b, double relative) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= kAbsolute + relative * std::abs(b);
}

// Of which elements of two tensors of one type differ: how many, and the first.
struct Differences {
  std::int64_t count = 0;
  std::int64_t first = 0;
};

Differences compare_elements(const Tensor& actual, const Tensor& expected) {
  Differences found;
  auto note = [&found](std::int64_t i, bool same) {
    if (same) return;
    if (found.count++ == 0) found.first = i;
  };
  if (!is_float(actual.dtype())) {
    const std::size_t size = size_of(actual.dtype());
    for (std::int64_t i = 0; i < actual.elements(); ++i) {
      const std::size_t at = static_cast<std::size_t>(i) * size;
      note(i, std::memcmp(actual.data() + at, expected.data() + at, size) == 0);
    }
    return found;
  }
  const double relative = actual.dtype() == DType::kBF16 ? kRelativeBF16 : kRelative;
  const Tensor a = convert(actual, DType::kF64);
  const Tensor b = convert(expected, DType::kF64);
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    note(i, close(a.values<double>()[at], b.values<double>()[at], relative));
  }
  return found;
}

// Whether what the model gives depends on random numbers: of these no two programs draw the same.
bool draws_random_numbers(const OnnxModel& model, const DataSet& data) {
  for (IsKnown is_known : kKnownNeeded) {
    try {
      const Graph graph = to_graph(model, op_table(), import_options(data.inputs, is_known));
      return std::ranges::any_of(graph.order(), [&graph](NodeId id) {
        return graph.node(id).op->determinism == Determinism::kRandom;
      });
    } catch (const Error& error) {  // with these inputs known it is no graph
      if (!error.unsupported()) throw;
    }
  }
  return false;
}

ConformanceTest judge(const OnnxModel& model, const DataSet& data,
                      const ConformanceOptions& options) {
  std::vector<Tensor> outputs = run_with_needed_inputs(model, data, options);
  CHECK_INVARIANT(outputs.size() == data.outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::optional<std::string> difference = conformance_difference(outputs[i], data.outputs[i]);
    if (!difference) continue;
    const bool same_type = outputs[i].type() == data.outputs[i].type();
    if (same_type && draws_random_numbers(model, data)) continue;
    return {.name = {},
            .verdict = Verdict::kWrong,
            .why = fmt::format("output {} '{}': {}", i, printable(model.outputs()[i].name),
                               *difference)};
  }
  return {.name = {}, .verdict = Verdict::kPass, .why = {}};
}

ConformanceTest run_data_sets(const fs::path& folder, const ConformanceOptions& options) {
  const OnnxModel model = OnnxModel::read(folder / "model.onnx");
  for (const fs::path& data_set : data_set_folders(folder)) {
    ConformanceTest result = judge(model, read_data_set(model, data_set), options);
    if (result.verdict == Verdict::kPass) continue;
    result.why = fmt::format("{}: {}", printable(data_set.filename().string()), result.why);
    return result;
  }
  return {.name = {}, .verdict = Verdict::kPass, .why = {}};
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kWrong:
      return "wrong";
    case Verdict::kError:
      return "error";
    case Verdict::kUnsupported:
      return "unsupported";
  }
  return "?";
}

std::vector<fs::path> find_conformance_tests(const fs::path& root) {
  require(folder_exists(root), ErrorCode::kIo, "no folder '{}'", printable(root.string()));
  std::vector<fs::path> tests;
  std::vector<fs::path> waiting{root};
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    require(waiting.size() <= kMaxFolders, ErrorCode::kUsage, "'{}' holds more than {} folders",
            printable(root.string()), kMaxFolders);
    const fs::path folder = waiting[i];
    for (const std::string& name : list_directory(folder)) {
      if (name == "model.onnx") tests.push_back(folder);
      if (is_folder(folder / name)) waiting.push_back(folder / name);
    }
  }
  if (tests.empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' holds no ONNX backend test", printable(root.string())))
        .hint("a test is a folder with model.onnx and test_data_set_0/input_0.pb, output_0.pb");
  }
  std::ranges::sort(tests);
  return tests;
}

ConformanceTest run_conformance_test(const fs::path& folder, const ConformanceOptions& options) {
  ConformanceTest test;
  try {
    test = run_data_sets(folder, options);
  } catch (const Error& error) {
    test = {.name = {},
            .verdict = error.unsupported() ? Verdict::kUnsupported : Verdict::kError,
            .why = one_line(error, folder)};
  } catch (const std::bad_alloc&) {
    test = {.name = {}, .verdict = Verdict::kError, .why = "out of memory"};
  }
  test.name = folder.filename().string();
  return test;
}

std::vector<ConformanceTest> run_conformance(const fs::path& root,
                                             const ConformanceOptions& options) {
  std::vector<ConformanceTest> tests;
  for (const fs::path& folder : find_conformance_tests(root)) {
    tests.push_back(run_conformance_test(folder, options));
    if (folder != root) tests.back().name = folder.lexically_relative(root).string();
  }
  return tests;
}

std::optional<std::string> conformance_difference(const Tensor& actual, const Tensor& expected) {
  if (actual.type() != expected.type()) {
    return fmt::format("is {}, expected {}", type_text(actual.type()), type_text(expected.type()));
  }
  const Differences found = compare_elements(actual, expected);
  if (found.count == 0) return std::nullopt;
  return fmt::format("{} of {} elements differ, the first at index {}: {}, expected {}",
                     found.count, actual.elements(), found.first, element_text(actual, found.first),
                     element_text(expected, found.first));
}

}  // namespace trainscope
