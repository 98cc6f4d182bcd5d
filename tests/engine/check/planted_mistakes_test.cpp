// verify must fail where the engine computes something else: mistakes planted in copies of models.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>

#include "engine/check/verify.h"
#include "engine/core/file.h"
#include "engine/ir/rewriter.h"
#include "engine/onnx/export.h"
#include "tests/support/graph_text.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

// A copy of a reference folder with another model.onnx or meta.json.
class ChangedFolder {
 public:
  explicit ChangedFolder(std::string_view model) {
    std::string pattern = (fs::temp_directory_path() / "trainscope-verify-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
    for (const auto& file : fs::directory_iterator(reference_folder(model))) {
      fs::create_symlink(file.path(), path_ / file.path().filename());
    }
  }
  ~ChangedFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ChangedFolder(const ChangedFolder&) = delete;

  const fs::path& path() const { return path_; }
  void change_graph(void (*change)(Graph&)) {
    const ReferenceMeta meta = read_reference_meta(path_ / "meta.json");
    Graph changed = graph(OnnxModel::read(path_ / "model.onnx"), {.trainable = meta.trainable});
    change(changed);
    fs::remove(path_ / "model.onnx");
    write_onnx(changed, path_ / "model.onnx");
  }
  void change_meta(std::string_view from, std::string_view to) {
    std::string text = read_file(path_ / "meta.json", 1 << 20);
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    fs::remove(path_ / "meta.json");
    write_file_atomic(path_ / "meta.json", text);
  }

 private:
  fs::path path_;
};

Node& first_of(Graph& graph, std::string_view op) {
  for (NodeId id : graph.order()) {
    if (graph.node(id).op->name == op) return graph.node(id);
  }
  FAIL("no node of this op");
  return graph.node(graph.first());
}

ValueId producer_input(const Graph& graph, ValueId v, std::size_t input) {
  return graph.node(graph.value(v).producer).inputs[input];
}

void scale_parameter(Graph& graph, std::string_view name, float factor) {
  Tensor scaled = *graph.value(graph.find(name)).data;
  for (float& element : scaled.values<float>()) element *= factor;
  graph.value(graph.find(name)).data = std::make_shared<const Tensor>(std::move(scaled));
}

void leave_alone(Graph&) {}

void wrong_epsilon(Graph& graph) {
  first_of(graph, "LayerNormalization").attributes.set("epsilon", 1.2e-5);
}

void wrong_batch_norm_momentum(Graph& graph) {
  first_of(graph, "SampleBatchNormalization").attributes.set("momentum", 0.91);
}

// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) becomes 0.5 x (1 + erf(x / sqrt 2)).
void erf_for_tanh(Graph& graph) {
  Rewriter rewriter(graph, op_table(), "test", nullptr);
  const Node tanh = first_of(graph, "Tanh");
  const ValueId cubic_sum = producer_input(graph, tanh.inputs[0], 0);  // Mul(sum, constant)
  const ValueId x = producer_input(graph, cubic_sum, 0);
  const NodeId id = graph.value(tanh.outputs[0]).producer;
  Builder& b = rewriter.before(id);
  rewriter.replace_node(id, {b("Erf", {b("Mul", {x, b.scalar(0.70710678, DType::kF32)})})});
}

void wrong_pooling(Graph& graph) {
  first_of(graph, "MaxPool").attributes.set("pads", Ints{0, 0, 2, 2});
}

void one_ulp_of_a_weight(Graph& graph) { scale_parameter(graph, "0.weight", 1.00001F); }

void dropped_bias(Graph& graph) { scale_parameter(graph, "2.bias", 0.0F); }

void relu_for_tanh(Graph& graph) {
  Rewriter rewriter(graph, op_table(), "test", nullptr);
  const NodeId id = graph.value(first_of(graph, "Tanh").outputs[0]).producer;
  rewriter.replace_node(id, {rewriter.before(id)("Relu", {graph.node(id).inputs[0]})});
}

// The loss no longer depends on a value that has a stored gradient: equal numbers by other nodes.
void value_off_the_path(Graph& graph) {
  Rewriter rewriter(graph, op_table(), "test", nullptr);
  const ValueId value = graph.find("/0/Gemm_output_0");
  const std::vector<ValueId> inputs = graph.node(graph.value(value).producer).inputs;
  const Use reader = graph.value(value).uses.front();
  Builder& b = rewriter.before(reader.node);
  const ValueId matmul = b("Gemm", {inputs[0], inputs[1]}, {{"transB", std::int64_t{1}}});
  const ValueId sum = b("Add", {matmul, inputs[2]});
  rewriter.set_input(reader.node, reader.input, sum);
}

struct Mistake {
  const char* model;
  void (*change)(Graph&);
  const char* found_in;  // rows of this kind must fail; null: none may
};

constexpr Mistake kMistakes[] = {
    {"gpt2", leave_alone, nullptr},      {"resnet18", leave_alone, nullptr},
    {"gpt2", wrong_epsilon, "grad"},     {"gpt2", erf_for_tanh, "grad"},
    {"lenet", relu_for_tanh, "loss"},    {"resnet18", wrong_batch_norm_momentum, "stat"},
    {"resnet18", wrong_pooling, "loss"}, {"mlp", one_ulp_of_a_weight, "loss"},
    {"mlp", dropped_bias, "act"},        {"mlp", value_off_the_path, "dact"},
};

bool fails(const VerifyReport& report, std::string_view what) {
  return std::ranges::any_of(report.rows,
                             [&](const VerifyRow& row) { return row.what == what && !row.ok(); });
}

}  // namespace

TEST_CASE("verify: a graph that computes something else fails, the same one written again passes") {
  for (const Mistake& mistake : kMistakes) {
    const auto number = static_cast<int>(&mistake - kMistakes);
    CAPTURE(number);
    ChangedFolder folder(mistake.model);
    folder.change_graph(mistake.change);
    const VerifyReport report = verify_reference(folder.path(), {});
    if (mistake.found_in == nullptr) {
      CHECK(report.failed == 0);
    } else {
      CHECK(fails(report, mistake.found_in));
    }
  }
}

TEST_CASE("verify: other settings of training fail") {
  struct Setting {
    const char* model;
    const char* from;
    const char* to;
    const char* found_in;
  };
  constexpr Setting kSettings[] = {
      {"mlp", "\"0.bias\",", "", "grad"},  // a gradient that is not computed
      {"mlp", "\"weight_decay\": 0.01", "\"weight_decay\": 0.011", "param"},
      {"mlp", "\"momentum\": 0.9", "\"momentum\": 0.91", "losses"},
      {"mlp", "\"weight_decay\": 0.0005", "\"weight_decay\": 0.0", "param"},
      {"gpt2", "\"clip_norm\": 1.0", "\"clip_norm\": 0.9", "param"},
      {"mlp", "\"kind\": \"cross_entropy\"", "\"kind\": \"nll\"", "grad"},
  };
  for (const Setting& setting : kSettings) {
    CAPTURE(std::string(setting.from));
    ChangedFolder folder(setting.model);
    folder.change_meta(setting.from, setting.to);
    CHECK(fails(verify_reference(folder.path(), {}), setting.found_in));
  }
}

TEST_CASE("verify: a folder without numbers or without files is refused") {
  const std::optional<Error> no_numbers =
      error_of([] { verify_reference(reference_folder("gpt2-dropout"), {}); });
  REQUIRE(no_numbers.has_value());
  CHECK(no_numbers->code() == ErrorCode::kUsage);
  CHECK(contains(no_numbers->message(), "holds no reference numbers"));
  const std::optional<Error> nothing =
      error_of([] { verify_reference(reference_folder("no-such-model"), {}); });
  REQUIRE(nothing.has_value());
  CHECK(nothing->code() == ErrorCode::kIo);
  ChangedFolder folder("mlp");
  fs::remove(folder.path() / "params.tsv");
  CHECK(error_of([&] { verify_reference(folder.path(), {}); })->code() == ErrorCode::kIo);
}

TEST_CASE("verify: numbers of a convergence folder that do not fit each other are refused") {
  struct Change {
    std::string from;
    std::string to;
    std::string message;
  };
  const Change changes[] = {
      {"\"steps\": 400", "\"steps\": -400", "key 'steps' is -400: expected 1 to 16777216"},
      {"\"batch\": 12", "\"batch\": 0", "key 'batch' is 0: expected 1 to 16777216"},
      {"\"seq\": 24", "\"seq\": 112000", "offsets.bin: window at "},
      {"\"first\": 100000", "\"first\": -1", "valid_starts: window at -1 of 112000 tokens"},
      {"\"count\": 499", "\"count\": 501", "valid_starts: window at 112000 of 112000 tokens"},
      {"\"lr\": 0.003", "\"lr\": []", "key 'lr': the list is empty"},
  };
  const std::string model = "\"model\": \"" + reference_folder("gpt2").string() + "\"";
  for (const Change& change : changes) {
    CAPTURE(change.from);
    ChangedFolder folder("convergence-gpt2");
    folder.change_meta("\"model\": \"gpt2\"", model);
    folder.change_meta(change.from, change.to);
    const std::optional<Error> error = error_of([&] { verify_reference(folder.path(), {}); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ErrorCode::kBadInput);
    CHECK(error->message().starts_with(change.message));
  }
}

TEST_CASE("verify: a convergence folder finds its model with a slash behind it too") {
  ChangedFolder folder("convergence-gpt2");
  fs::create_directory_symlink(reference_folder("gpt2"), folder.path() / "gpt2");
  fs::create_directory(folder.path() / "convergence");
  for (const auto& file : fs::directory_iterator(reference_folder("convergence-gpt2"))) {
    if (file.path().filename() == "validation.tsv") continue;
    fs::create_symlink(file.path(), folder.path() / "convergence" / file.path().filename());
  }
  const std::optional<Error> error =
      error_of([&] { verify_reference(folder.path() / "convergence" / "", {}); });
  REQUIRE(error.has_value());
  CHECK(contains(error->message(), "validation.tsv"));  // after the model
}

TEST_SUITE("slow") {
  TEST_CASE("verify: each pass left out changes no result") {
    // Without these there is no training step, or not the one that was asked for.
    const std::set<std::string, std::less<>> needed{"training_form", "loss", "decompose",
                                                    "differentiate", "optimizer_step"};
    std::set<std::string, std::less<>> left_out;
    for (const std::string& name : kReferenceModels) {
      if (name == "gpt2-dropout") continue;  // PyTorch draws other numbers
      CAPTURE(name);
      const ReferenceModel reference(name);
      std::set<std::string, std::less<>> changes;
      for (const Stage& stage :
           build_stages(reference.model, reference.options(GraphMode::kTrain))) {
        if (stage.changed && !needed.contains(stage.name)) changes.insert(stage.name);
      }
      changes.erase("imported");
      for (const std::string& pass : changes) {
        CAPTURE(pass);
        left_out.insert(pass);
        CHECK(
            verify_reference(reference_folder(name), {.lower = {}, .passes = {.disabled = {pass}}})
                .failed == 0);
      }
    }
    CHECK(left_out.size() >= 15);
  }

  TEST_CASE("verify: reference kernels and two threads change no result") {
    for (const std::string model : {"gpt2", "resnet18"}) {
      CHECK(verify_reference(reference_folder(model),
                             {.lower = {.kernels = KernelChoice::kReference}, .passes = {}})
                .failed == 0);
      CHECK(verify_reference(reference_folder(model), {.lower = {.threads = 2}, .passes = {}})
                .failed == 0);
    }
  }
}

TEST_CASE("error_norm: counts finite differences, infinite where the non-finite places differ") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(error_norm(floats({2}, {3, 5}), floats({2}, {0, 1})) == 5.0);
  CHECK(error_norm(floats({2}, {-inf, 5}), floats({2}, {-inf, 5})) == 0.0);
  CHECK(error_norm(floats({2}, {nan, 5}), floats({2}, {nan, 5})) == 0.0);
  CHECK(std::isinf(error_norm(floats({2}, {inf, 5}), floats({2}, {-inf, 5}))));
  CHECK(std::isinf(error_norm(floats({2}, {nan, 5}), floats({2}, {1, 5}))));
  CHECK(norm(floats({3}, {3, -inf, 4})) == 5.0);
  CHECK(error_of([] { error_norm(floats({2}, {1, 2}), floats({1, 2}, {1, 2})); }).has_value());
  CHECK_FALSE(VerifyRow{.what = "loss", .name = "", .error = std::nan(""), .limit = 1.0}.ok());
}

}  // namespace trainscope::test
