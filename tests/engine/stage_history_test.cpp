// The whole claim on models: every node and value of the model has a fate with a reason, every
// difference between neighbouring stages is explained, and no forward node is part of a gradient.
#include "engine/stage_history.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/bundle/writer.h"
#include "engine/core/file.h"
#include "engine/models/models.h"
#include "engine/record.h"
#include "tests/support/graph_text.h"
#include "tests/support/reference_models.h"
#include "tests/support/shared.h"

namespace trainscope::test {
namespace {

struct Compiling {
  OnnxModel model;
  CompileOptions options;

  StageHistory history() const {
    return StageHistory::of(std::move(compile(model, options)->stages));
  }
};

Compiling reference(std::string_view name, const std::filesystem::path& root) {
  const ReferenceMeta meta = read_reference_meta(root / name / "meta.json");
  CompileOptions options = reference_compile_options(meta, GraphMode::kTrain, {});
  options.passes.keep = KeepGraphs::kAll;
  options.training.keep_gradients = false;
  options.training.optimizer.clip_norm = 1.0;
  return {.model = OnnxModel::read(root / name / "model.onnx"), .options = std::move(options)};
}

Compiling built(std::string_view name, const ModelArguments& arguments) {
  const std::string bytes = onnx_bytes(build_model(name, arguments, 1));
  CompileOptions options;
  OnnxModel model = OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
  for (const ModelTensor& input : model.inputs()) {
    for (const ModelDim& dim : *input.dims) {
      if (!dim.size) options.import.dims[dim.symbol] = 4;
    }
  }
  return {.model = std::move(model), .options = std::move(options)};
}

const ModelArguments kSmallText{{"layers", std::int64_t{2}},
                                {"heads", std::int64_t{2}},
                                {"embedding", std::int64_t{16}},
                                {"vocab", std::int64_t{32}},
                                {"context", std::int64_t{8}}};

// How many nodes the file has, and values that are in the graph and not by the import alone.
std::size_t things_in(const OnnxModel& model, const StageHistory& stages) {
  const Graph imported = stages.graph(0);
  std::set<std::string> values;
  for (const ModelTensor& input : model.inputs()) values.insert(input.name);
  for (const ModelInitializer& initializer : model.initializers()) values.insert(initializer.name);
  for (NodeId id : imported.order()) {
    for (ValueId v : imported.node(id).outputs) {
      if (v != kNoValue) values.insert(imported.value(v).name);
    }
  }
  for (const RewriteEntry& entry : stages.history()[0].rewrites.entries) {
    if (!entry.thing.is_node && entry.kind == RewriteKind::kAdded) values.erase(entry.thing.name);
  }
  return model.node_count() + values.size();
}

void check_fates(const Compiling& compiling, const StageHistory& stages) {
  const std::vector<Fate> fates = imported_fates(stages);
  CHECK(fates.size() >= things_in(compiling.model, stages));
  for (const Fate& fate : fates) {
    INFO((fate.thing.is_node ? "node " : "value ") << fate.thing.name);
    CHECK(fate.kind != FateKind::kUnexplained);
    CHECK_FALSE(reason_of(stages.history(), fate).empty());
  }
}

// Of neighbours, and of the first and the last.
void check_diffs(const StageHistory& stages) {
  const std::size_t last = stages.history().size() - 1;
  for (std::size_t i = 0; i <= last; ++i) {
    const std::size_t j = i == last ? 0 : i;
    const std::size_t k = i == last ? last : i + 1;
    const Graph a = stages.graph(j);
    const Graph b = stages.graph(k);
    const StageDiff diff =
        diff_stages(stages.shared_history(), {.stage = j, .graph = a}, {.stage = k, .graph = b});
    INFO(stages.history()[j].label << " to " << stages.history()[k].label);
    CHECK(diff.unexplained == 0);
    CHECK(diff.rows.size() >= things_of(b).size());
    for (const DiffRow& row : diff.rows) {
      INFO(row.kind << " " << row.thing.name);
      CHECK_FALSE(row.reason.empty());
    }
  }
}

// What a forward node of the last stage stems from is what forward nodes stemmed from.
void check_forward_sources(const StageHistory& stages) {
  const std::size_t from = stages.find("differentiate") - 1;
  const std::size_t last = stages.history().size() - 1;
  const Graph before = stages.graph(from);
  const Graph after = stages.graph(last);
  std::map<std::string, std::set<std::string>> allowed;  // by node of the last stage
  for (const DiffRow& row : diff_stages(stages.shared_history(), {.stage = from, .graph = before},
                                        {.stage = last, .graph = after})
                                .rows) {
    if (!row.thing.is_node) continue;
    for (const NamedThing& now :
         row.kind == "rematerialized" ? std::vector{row.thing} : row.others) {
      const NodeId id =
          before.find_node(row.kind == "rematerialized" ? row.others[0].name : row.thing.name);
      if (id == kNoNode || before.node(id).phase != Phase::kForward) continue;
      const SourceNames& sources = before.node(id).provenance.sources;
      allowed[now.name].insert(sources.begin(), sources.end());
    }
  }
  for (NodeId id : after.order()) {
    const Node& node = after.node(id);
    if (node.phase != Phase::kForward) continue;
    INFO(node.name);
    CHECK(node.provenance.backward_of == kNoSerial);
    for (const std::string& source : node.provenance.sources) {
      CHECK(allowed[node.name].contains(source));
    }
  }
}

// Nodes of the backward phase lead back to what they are the gradient of.
void check_gradients(const StageHistory& stages) {
  const std::size_t at = stages.find("differentiate");
  const Graph graph = stages.graph(at);
  std::set<Serial> serials;
  for (const NamedThing& thing : things_of(graph)) serials.insert(thing.serial);
  std::set<Serial> of;
  for (ValueId id : graph.live_values()) {
    for (Serial serial : graph.value(id).gradient_of) {
      CHECK(serials.contains(serial));
      CHECK(of.insert(serial).second);  // one gradient each
    }
  }
  for (ValueId id : graph.values_of(ValueKind::kParameter)) {
    if (!graph.value(id).uses.empty()) CHECK(of.contains(graph.value(id).serial));
  }
  std::size_t backward = 0;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.provenance.backward_of == kNoSerial) continue;
    ++backward;
    CHECK(serials.contains(node.provenance.backward_of));
  }
  CHECK(backward > 0);
}

void check(const Compiling& compiling) {
  const StageHistory stages = compiling.history();
  check_fates(compiling, stages);
  check_diffs(stages);
  check_forward_sources(stages);
  check_gradients(stages);
}

std::filesystem::path data_models() {
  return std::filesystem::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/models";
}

}  // namespace

TEST_CASE("fates: the reference models, as they are trained") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    check(reference(name, data_models()));
  }
}

TEST_CASE("fates: the shared models" * doctest::skip(!has_shared("models/mlp"))) {
  for (const char* name : {"mlp", "lenet", "resnet18", "gpt2", "bert", "llama"}) {
    CAPTURE(name);
    check(reference(name, shared_path("models")));
  }
}

TEST_CASE("fates: models of the builders") {
  check(built("mlp", {}));
  check(built("lenet", {}));
  check(built("gpt2", kSmallText));
  check(built("bert", kSmallText));
  ModelArguments llama = kSmallText;
  llama.emplace("kv-heads", std::int64_t{1});
  llama.emplace("feed-forward", std::int64_t{32});
  check(built("llama", llama));
  check(built("resnet", {{"size", std::string("18-cifar")}}));
}

TEST_CASE("fates: other forms of the step") {
  const auto with = [](std::string_view name, void (*change)(CompileOptions&)) {
    CAPTURE(name);
    Compiling compiling = reference(name, data_models());
    change(compiling.options);
    check(compiling);
  };
  for (const char* name : {"lenet", "gpt2", "bert", "llama"}) {
    with(name, [](CompileOptions& o) { o.training.precision = StepPrecision::kBF16; });
    with(name, [](CompileOptions& o) { o.training.precision = StepPrecision::kF16; });
    with(name, [](CompileOptions& o) { o.training.micro_batches = 2; });
    with(name, [](CompileOptions& o) { o.recompute.mode = RecomputeMode::kLevel2; });
    with(name, [](CompileOptions& o) {
      o.training.optimizer.clip_norm = 0.0;
      o.training.optimizer.in_backward = true;
      o.training.optimizer.sparse_embeddings = true;
    });
  }
  for (const char* name : {"gpt2", "llama"}) {
    with(name, [](CompileOptions& o) { o.training.skip_ignored = true; });
    with(name, [](CompileOptions& o) { o.training.loss_chunks = 2; });
  }
  with("gpt2", [](CompileOptions& o) { o.training.optimizer = {.kind = OptimizerKind::kSgd}; });
}

TEST_CASE("fates: padding removal") {
  ModelArguments arguments = kSmallText;
  arguments.emplace("mask", true);
  Compiling compiling = built("bert", arguments);
  for (const ModelTensor& input : compiling.model.inputs()) {
    if (input.name.find("mask") != std::string::npos) {
      compiling.options.training.skip_padding = input.name;
    }
  }
  REQUIRE(!compiling.options.training.skip_padding.empty());
  const StageHistory stages = compiling.history();
  CHECK_FALSE(stages.history()[stages.find("skip_padding")].rewrites.entries.empty());
  check(compiling);
}

TEST_CASE("fates: a node that runs a second time says under which name") {
  Compiling compiling = reference("gpt2", data_models());
  compiling.options.recompute.mode = RecomputeMode::kLevel2;
  const StageHistory stages = compiling.history();
  std::size_t again = 0;
  for (const Fate& fate : imported_fates(stages)) {
    for (const FateStep& step : fate.steps) {
      if (step.entry->kind != RewriteKind::kRematerialized) continue;
      ++again;
      CHECK(step.entry->thing.name.ends_with("/rematerialized"));
      CHECK(stages.history()[step.stage].label.ends_with("-recompute"));
    }
  }
  CHECK(again > 0);
}

TEST_CASE("fates: unknown names have the nearest one in the hint") {
  const StageHistory stages = reference("mlp", data_models()).history();
  CHECK(imported_fates(stages, "/0/Gemm").size() == 1);
  CHECK(contains(refusal_of([&] { imported_fates(stages, "/0/Gem"); }), "did you mean '/0/Gemm'?"));
  CHECK(contains(refusal_of([&] { stages.find("lss"); }), "there is no stage 'lss'"));
  CHECK(stages.find("transposed_products") == stages.find("fuse_transpose"));
  CHECK(stages.find("") == stages.history().size() - 1);
}

TEST_CASE("fates: the same from a run's folder as from the compilation itself") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("trainscope-history-{}", getpid());
  const Compiling compiling = reference("gpt2", data_models());
  const auto compiled = compile(compiling.model, compiling.options);
  {
    RunWriter writer = RunWriter::create(
        folder, {.sessions = {{.command = {"test"}, .program_version = "0", .device = "cpu"}}});
    const Stages& stages = compiled->stages;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      StageRecord record = stage_record(stages[i], i == 0 ? nullptr : &stages[i - 1]);
      if (!writer.repeats_last_stage(record)) {
        write_onnx(stages[i].graph, writer.next_stage_file(stages[i].name),
                   {.weights = Weights::kOmit});
      }
      writer.add_stage(std::move(record), rewrite_log_text(stages[i].rewrites));
    }
  }
  const RunReader reader = RunReader::open(folder);
  const StageHistory recorded = StageHistory::of(reader);
  const StageHistory own = StageHistory::of(compiled->stages);
  const std::vector<Fate> fates = imported_fates(own);
  const std::vector<Fate> read = imported_fates(recorded);
  REQUIRE(read.size() == fates.size());
  for (std::size_t i = 0; i < fates.size(); ++i) {
    INFO(fates[i].thing.name);
    CHECK(read[i].thing == fates[i].thing);
    CHECK(read[i].kind == fates[i].kind);
    CHECK(read[i].now == fates[i].now);
    CHECK(read[i].steps.size() == fates[i].steps.size());
    CHECK(read[i].gradient == fates[i].gradient);
  }
  check_diffs(recorded);
  // A changed stage without its log is an older program's.
  std::filesystem::remove(folder / "stages" /
                          (recorded.history()[recorded.find("loss")].label + ".rewrites.jsonl"));
  CHECK(contains(refusal_of([&] { StageHistory::of(reader); }), "no rewrite log of stage"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("compile: with the last graph alone kept there are no rewrite logs") {
  Compiling compiling = reference("mlp", data_models());
  compiling.options.passes.keep = KeepGraphs::kLast;
  const auto compiled = compile(compiling.model, compiling.options);
  for (const Stage& stage : compiled->stages) {
    CHECK(stage.rewrites.entries.empty());
    CHECK(stage.graph.notes.list.empty());
  }
}

}  // namespace trainscope::test
