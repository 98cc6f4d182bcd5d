// How often each fusion finds its op in the reference models and in the builders' models.
#include "engine/models/models.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "engine/onnx/plain_model.h"
#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

using Counts = std::map<std::string, std::int64_t>;  // by pass; passes that find nothing are absent

Counts fused_counts(const OnnxModel& model, const std::map<std::string, std::int64_t>& dims,
                    const std::vector<std::string>& frozen = {}) {
  CompileOptions options;
  options.import.dims = dims;
  options.import.frozen = frozen;
  options.training.mode = GraphMode::kInference;
  Counts counts;
  for (const Stage& stage : build_stages(model, options)) {
    const auto fused = stage.counters.find("fused");
    if (fused != stage.counters.end()) counts[stage.name] = fused->second;
    CHECK_MESSAGE(stage.near_misses.empty(), stage.name);
  }
  return counts;
}

OnnxModel reference(std::string_view name) {
  return OnnxModel::read(std::filesystem::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/models" / name /
                         "model.onnx");
}

OnnxModel built(std::string_view name, const ModelArguments& arguments) {
  const std::string bytes = onnx_bytes(build_model(name, arguments, 1));
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

Counts in_reference(std::string_view name) {
  // A buffer that PyTorch exports as an initializer, like the parameters.
  const bool has_mask = name.starts_with("gpt2");
  return fused_counts(
      reference(name), {},
      has_mask ? std::vector<std::string>{"*.attn.mask"} : std::vector<std::string>{});
}

struct Built {
  std::string name;
  ModelArguments arguments;
  std::map<std::string, std::int64_t> dims;
  Counts counts;
};

}  // namespace

TEST_CASE("fusions: counts in the reference models") {
  const Counts gpt2{{"fuse_gelu", 2}, {"fuse_attention", 2}, {"fuse_bias", 8}};
  CHECK(in_reference("gpt2") == gpt2);
  CHECK(in_reference("gpt2-dropout") == gpt2);
  CHECK(in_reference("bert") ==
        Counts{{"fuse_gelu", 3}, {"fuse_attention", 2}, {"fuse_bias", 14}, {"merge_matmuls", 2}});
  CHECK(in_reference("llama") == Counts{{"fuse_rms_norm", 5},
                                        {"fuse_silu", 2},
                                        {"fuse_rotary", 4},
                                        {"fuse_attention", 2},
                                        {"merge_matmuls", 4}});
  for (const char* plain : {"mlp", "lenet", "resnet18"}) CHECK(in_reference(plain).empty());
}

// Each layer drops out attention weights and two residuals, and the model its embeddings.
TEST_CASE("fusions: attention takes the dropout of its weights along") {
  const ModelArguments small{{"layers", 2}, {"heads", 2},   {"embedding", 16},
                             {"vocab", 13}, {"context", 8}, {"dropout", 0.1}};
  const std::filesystem::path exported =
      std::filesystem::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/models/gpt2-dropout/model.onnx";
  for (const std::string name : {"exported", "gpt2", "bert"}) {
    CAPTURE(name);
    const bool read = name == "exported";
    const OnnxModel model = read ? OnnxModel::read(exported) : built(name, small);
    CompileOptions options;
    if (read) {
      options.import.frozen = {"*.attn.mask"};
    } else {
      options.import.dims = {{"batch", 2}, {"sequence", 8}};
    }
    const Stages all = build_stages(model, options);
    const Stage& stage = stage_named(all, "fuse_attention");
    CHECK(count_ops((&stage - 1)->graph, "RandomDropout") == 7);
    CHECK(count_ops(stage.graph, "RandomDropout") == 5);
    CHECK(count_ops(stage.graph, "Attention") == 2);
    CHECK(stage.near_misses.empty());
  }
}

TEST_CASE("fusions: batch norms of residual networks in training") {
  CompileOptions options;
  options.training.mode = GraphMode::kTrain;
  options.passes.stop_after = "fuse_norm_relu";
  const auto fused = [&options](const OnnxModel& model) {
    const Stages stages = build_stages(model, options);
    const Stage& last = stages.back();
    CHECK(last.near_misses.empty());
    CHECK(count_ops(last.graph, "Relu") == 0);
    return last.counters.at("fused");
  };
  CHECK(fused(reference("resnet18")) == 17);
  options.import.dims = {{"batch", 2}};
  for (const auto& [size, count] :
       std::map<std::string, std::int64_t>{{"18", 17}, {"18-cifar", 17}, {"50", 49}}) {
    CAPTURE(size);
    CHECK(fused(built("resnet", {{"size", size}, {"width", std::int64_t{2}}})) == count);
  }
}

TEST_CASE("fusions: counts in the builders' models") {
  const std::map<std::string, std::int64_t> tokens{{"batch", 2}, {"sequence", 8}};
  const ModelArguments small{
      {"layers", 2}, {"heads", 2}, {"embedding", 16}, {"vocab", 13}, {"context", 8}};
  ModelArguments bert = small;
  bert.insert({"feed-forward", 32});
  ModelArguments llama = bert;
  llama.insert({"kv-heads", 2});
  ModelArguments shared_heads = bert;
  shared_heads.insert({"kv-heads", 1});
  const Counts of_llama{{"fuse_rms_norm", 5},
                        {"fuse_silu", 2},
                        {"fuse_rotary", 4},
                        {"fuse_attention", 2},
                        {"merge_matmuls", 4}};
  const ModelArguments vit{{"layers", 2}, {"heads", 2},  {"embedding", 16}, {"feed-forward", 32},
                           {"patch", 4},  {"image", 16}, {"classes", 5}};
  const Built models[] = {
      {"gpt2", small, tokens, {{"fuse_gelu", 2}, {"fuse_attention", 2}, {"fuse_bias", 8}}},
      {"bert",
       bert,
       tokens,
       {{"fuse_gelu", 3}, {"fuse_attention", 2}, {"fuse_bias", 14}, {"merge_matmuls", 2}}},
      {"llama", llama, tokens, of_llama},
      {"llama", shared_heads, tokens, of_llama},
      {"vit",
       vit,
       {{"batch", 2}},
       {{"fuse_gelu", 2}, {"fuse_attention", 2}, {"fuse_bias", 12}, {"merge_matmuls", 2}}},
      {"resnet",
       {{"blocks", Ints{1, 1}}, {"width", 4}, {"image", 32}, {"classes", 5}},
       {{"batch", 2}},
       {}},
  };
  for (const Built& each : models) {
    CAPTURE(each.name);
    CHECK(fused_counts(built(each.name, each.arguments), each.dims) == each.counts);
  }
}

}  // namespace trainscope::test
