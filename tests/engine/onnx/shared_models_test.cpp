// The reference models beside the repository: import, round trip, inference export, and the files
// that onnx_checker_test.py hands to ONNX's own checker.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/onnx/export.h"
#include "tests/engine/onnx/onnx_test_tools.h"
#include "tests/support/shared.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModels[] = {"mlp",  "lenet", "resnet18",    "gpt2",
                                   "bert", "llama", "gpt2-dropout"};

fs::path file_of(std::string_view model, std::string_view file) {
  return shared_path("models") / model / file;
}

const Evaluate& evaluate() {
  static const Evaluate function = evaluator(all_ops(), cpu_kernels());
  return function;
}

std::vector<std::string> names_in(const Json& meta, std::string_view key) {
  std::vector<std::string> names;
  for (const Json& name : meta.at(key).as_array()) names.push_back(name.as_string());
  return names;
}

// Inputs that every model accepts: zeros.
std::map<std::string, Tensor> zero_inputs(const Graph& graph) {
  std::map<std::string, Tensor> inputs;
  for (ValueId v : graph.inputs) {
    inputs.emplace(graph.value(v).name, Tensor(graph.value(v).type));
  }
  return inputs;
}

}  // namespace

TEST_CASE("shared models: imported as their meta.json says" *
          doctest::skip(!has_shared("models"))) {
  for (const char* name : kModels) {
    CAPTURE(name);
    Json meta = read_json_file(file_of(name, "meta.json"));
    OnnxModel model = OnnxModel::read(file_of(name, "model.onnx"));
    CHECK(model.opset() == 17);
    CHECK(static_cast<std::int64_t>(model.node_count()) == meta.at("nodes").as_int());
    for (const JsonMember& op : meta.at("ops").as_object()) {
      CHECK(static_cast<std::int64_t>(model.op_counts().at(op.key)) == op.value.as_int());
    }
    REQUIRE(missing_ops(model, all_ops()).empty());
    Graph graph = to_graph(model, all_ops(),
                           {.trainable = names_in(meta, "trainable"),
                            .frozen = names_in(meta, "frozen"),
                            .evaluate = &evaluate()});
    CHECK(verify(graph).empty());
    std::vector<std::string> parameters;
    for (ValueId v : graph.values_of(ValueKind::kParameter)) {
      parameters.push_back(graph.value(v).name);
    }
    CHECK(parameters == names_in(meta, "trainable"));
  }
}

TEST_CASE("shared models: f64 has no f32 left" * doctest::skip(!has_shared("models"))) {
  for (const char* name : kModels) {
    CAPTURE(name);
    OnnxModel model = OnnxModel::read(file_of(name, "model.onnx"));
    Graph graph = to_graph(model, all_ops(), {.float_type = DType::kF64, .evaluate = &evaluate()});
    CHECK(verify(graph).empty());
    for (ValueId v : graph.live_values()) {
      if (graph.value(v).type.dtype == DType::kF32) FAIL_CHECK(graph.value(v).name, " is f32");
    }
  }
}

TEST_CASE("shared models: export and import give the same graph" *
          doctest::skip(!has_shared("models"))) {
  for (const char* name : kModels) {
    CAPTURE(name);
    OnnxModel model = OnnxModel::read(file_of(name, "model.onnx"));
    Graph graph = to_graph(model, all_ops(), {.evaluate = &evaluate()});
    Graph back = to_graph(read_bytes(onnx_bytes(graph)), all_ops(), {.evaluate = &evaluate()});
    CHECK(print(back) == print(graph));
  }
}

TEST_CASE("shared models: the inference export computes the same outputs" *
          doctest::skip(!has_shared("models"))) {
  ScratchFolder folder;
  // Without batch norm, training form (ratio 0) and inference form are the same function.
  for (const char* name : {"mlp", "lenet", "gpt2", "bert", "llama"}) {
    CAPTURE(name);
    OnnxModel model = OnnxModel::read(file_of(name, "model.onnx"));
    fs::path path = folder / (std::string(name) + ".onnx");
    export_inference(model, path, {.weights = Weights::kExternal});
    OnnxModel exported = OnnxModel::read(path);
    CHECK(exported.op_counts().count("Dropout") == 0);
    Graph before = to_graph(model, all_ops(), {.evaluate = &evaluate()});
    Graph after = to_graph(exported, all_ops(), {.evaluate = &evaluate()});
    std::string output = before.value(before.outputs.front()).name;
    ReferenceValues expected = reference_run(before, zero_inputs(before), evaluate());
    ReferenceValues found = reference_run(after, zero_inputs(after), evaluate());
    std::span<const float> a = expected.at(output).values<float>();
    std::span<const float> b = found.at(output).values<float>();
    CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
}

TEST_CASE("shared models: cut short, each is refused" * doctest::skip(!has_shared("models"))) {
  for (const char* name : kModels) {
    std::string bytes = read_file(file_of(name, "model.onnx"), 1 << 24);
    for (std::size_t size = 0; size < bytes.size(); size += 997) {
      INFO(name, " with ", size, " bytes");
      std::optional<Error> error =
          error_of([&] { read_bytes(std::string_view(bytes).substr(0, size)); });
      REQUIRE(error.has_value());
      CHECK(error->code() == ErrorCode::kBadInput);
    }
  }
}

// Run by onnx_checker_test.py, which sets the folder and then checks what is in it.
TEST_CASE("onnx checker: files for it") {
  const char* given = std::getenv("TRAINSCOPE_CHECKER_FOLDER");
  ScratchFolder scratch;
  fs::path folder = given != nullptr ? fs::path(given) : scratch.path();
  OnnxModel small = read_proto(small_model());
  write_onnx(to_graph(small, all_ops()), folder / "small-stage.onnx");
  write_onnx(to_graph(small, all_ops()), folder / "small-omitted.onnx",
             {.weights = Weights::kOmit});
  export_inference(small, folder / "small-inference.onnx", {});
  CHECK(list_directory(folder).size() == 3);
  if (!has_shared("models")) return;
  for (const char* name : kModels) {
    OnnxModel model = OnnxModel::read(file_of(name, "model.onnx"));
    Graph graph = to_graph(model, all_ops(), {.evaluate = &evaluate()});
    write_onnx(graph, folder / (std::string(name) + "-stage.onnx"));
    write_onnx(graph, folder / (std::string(name) + "-external.onnx"),
               {.weights = Weights::kExternal});
    export_inference(model, folder / (std::string(name) + "-inference.onnx"), {});
  }
}

}  // namespace trainscope::test
