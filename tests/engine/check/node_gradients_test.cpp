// The gradients of ONNX's node tests: the engine's own, of sum(cotangent * output), against stored
// ones. Format: tests/data/node-gradients/README.md.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/check/verify.h"
#include "engine/compile.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/safetensors.h"
#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/exec/executor.h"
#include "engine/exec/reference.h"
#include "engine/onnx/tensor_pb.h"
#include "tests/support/copying_device.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

const fs::path kTests = "/usr/share/libonnx-testdata/data";
constexpr double kLimit = 1e-5;  // relative L2 error
constexpr std::size_t kLeastPasses = 265;

struct Row {
  fs::path folder;
  std::string test;
  std::vector<std::string> outputs;
  std::vector<std::string> inputs;
};

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> names;
  for (std::string_view name : split(list, ',')) names.emplace_back(name);
  return names;
}

fs::path data_folder() { return fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/node-gradients"; }

std::vector<Row> read_rows() {
  const std::string text = read_file(data_folder() / "index.tsv", 1 << 20);
  std::vector<Row> rows;
  for (std::string_view line : split(trim(text), '\n')) {
    const std::vector<std::string_view> cells = split(line, '\t');
    REQUIRE(cells.size() == 6);
    if (cells[0] == "kind") continue;
    rows.push_back({.folder = kTests / cells[0] / cells[1],
                    .test = std::string(cells[1]),
                    .outputs = names_in(cells[4]),
                    .inputs = names_in(cells[5])});
  }
  return rows;
}

// One test with its model, data and stored gradients, in one float type.
class GradientCase {
 public:
  GradientCase(const Row& row, const SafetensorsFile& stored, DType float_type)
      : row_(row),
        stored_(stored),
        float_type_(float_type),
        model_(OnnxModel::read(row.folder / "model.onnx")) {
    const std::vector<std::string> names = model_.declared_inputs();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const fs::path file = row.folder / fmt::format("test_data_set_0/input_{}.pb", i);
      if (fs::exists(file)) inputs_.emplace(names[i], read_tensor_pb(file));
    }
  }

  // The largest relative error of a gradient.
  double worst_error() const {
    const Evaluate evaluate = evaluator(op_table(), cpu_kernels());
    Graph graph = scored_graph(evaluate);
    TrainingOptions training;
    training.mode = GraphMode::kGradients;
    training.keep_gradients = true;
    training.gradient_of = row_.inputs;
    const PassContext context{
        .ops = op_table(), .evaluate = &evaluate, .options = training, .pass = {}, .counters = {}};
    // Batch norm and dropout in the form that the model gives them.
    Stages stages = run_passes(std::move(graph), default_passes(), context,
                               {.disabled = {"training_form"}, .stop_after = {}});
    const Program program = lower(stages.back().graph, test_device(), {});
    Executor executor(program);
    executor.load_initial();
    for (const auto& [name, tensor] : inputs_) {
      if (executor.has(name) && is_bound(program.graph, name)) executor.write(name, typed(tensor));
    }
    for (const std::string& output : row_.outputs) {
      executor.write(cotangent_name(output),
                     convert(stored_.tensor(key("cotangent", output)),
                             executor.memory().type(cotangent_name(output)).dtype));
    }
    executor.run_micro_step();
    return worst_error(executor);
  }

 private:
  static std::string cotangent_name(const std::string& output) { return "cotangent of " + output; }
  static bool is_bound(const Graph& graph, const std::string& name) {
    return graph.value(graph.find(name)).kind == ValueKind::kInput;
  }
  std::string key(std::string_view what, const std::string& name) const {
    return fmt::format("{}|{}:{}", row_.test, what, name);
  }
  Tensor typed(const Tensor& tensor) const {
    return convert(tensor, tensor.dtype() == DType::kF32 ? float_type_ : tensor.dtype());
  }

  ImportOptions import_options(const Evaluate& evaluate) const {
    const std::set<std::string> wanted(row_.inputs.begin(), row_.inputs.end());
    ImportOptions options{.float_type = float_type_, .evaluate = &evaluate};
    for (const auto& [name, tensor] : inputs_) {
      const auto dims = tensor.shape().span();
      options.shapes.emplace(name, Ints(dims.begin(), dims.end()));
      if (wanted.contains(name)) continue;
      options.known_inputs.emplace(name, std::make_shared<const Tensor>(tensor));
    }
    return options;
  }

  // The model's graph with sum(cotangent * output) as its loss.
  Graph scored_graph(const Evaluate& evaluate) const {
    Graph graph = to_graph(model_, op_table(), import_options(evaluate));
    Builder b(graph, op_table());
    b.set_evaluate(&evaluate);
    b.set_provenance({.sources = {}, .pass = "test"});
    for (const std::string& name : row_.outputs) {
      const ValueId output = graph.find(name);
      const ValueId cotangent = b.input(cotangent_name(name), b.type(output));
      const ValueId product = b("Mul", {output, cotangent});
      const ValueId sum = b("ReduceSum", {product}, {{"keepdims", std::int64_t{0}}});
      graph.loss = graph.loss == kNoValue ? sum : b("Add", {graph.loss, sum});
    }
    return graph;
  }

  double worst_error(const Executor& executor) const {
    const Graph& graph = executor.program().graph;
    std::map<std::string, std::string> names;  // of the gradient, by what it is of
    for (const GradientOf& g : graph.gradients) {
      names.emplace(graph.value(g.of).name, graph.value(g.gradient).name);
    }
    double worst = 0.0;
    for (const std::string& input : row_.inputs) {
      const Tensor expected = stored_.tensor(key("grad", input));
      const auto found = names.find(input);
      const Tensor actual =
          found == names.end() ? Tensor(expected.type()) : executor.read(found->second);
      const double size = norm(expected);
      const double error = error_norm(actual, expected);
      worst = std::max(worst, size > 0.0 ? error / size : error);
    }
    return worst;
  }

  const Row& row_;
  const SafetensorsFile& stored_;
  DType float_type_;
  OnnxModel model_;
  std::map<std::string, Tensor> inputs_;
};

void check_all(DType float_type) {
  const SafetensorsFile stored = SafetensorsFile::open(data_folder() / "gradients.safetensors");
  const std::vector<Row> rows = read_rows();
  REQUIRE(rows.size() == 265);
  std::size_t passes = 0;
  double worst = 0.0;
  std::string unsupported;
  for (const Row& row : rows) {
    CAPTURE(row.test);
    try {
      const double error = GradientCase(row, stored, float_type).worst_error();
      CHECK(error <= kLimit);
      worst = std::max(worst, error);
      ++passes;
    } catch (const Error& error) {
      INFO(error.message() << " | " << join(error.context(), " | "));
      CHECK(error.unsupported());
      unsupported += fmt::format("\n  {}: {}", row.test, error.message());
    }
  }
  CHECK(passes >= kLeastPasses);
  MESSAGE(fmt::format("{}: {} of {} gradients, largest relative error {:.1e}; unsupported:{}",
                      name_of(float_type), passes, rows.size(), worst, unsupported));
}

bool has_tests() {
  std::error_code ignored;
  return fs::exists(kTests, ignored);
}

}  // namespace

TEST_CASE("node gradients: all of ONNX's differentiable node tests" * doctest::skip(!has_tests())) {
  SUBCASE("f32") { check_all(DType::kF32); }
  SUBCASE("f64") { check_all(DType::kF64); }
}

}  // namespace trainscope::test
