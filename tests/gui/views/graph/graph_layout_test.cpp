// Layouts of real stages: nothing overlaps, edges flow as they should, and nodes stay where they
// were from stage to stage.
#include "gui/views/graph/graph_layout.h"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "tests/gui/views/graph/layout_stability.h"
#include "tests/gui/views/views_models.h"

namespace trainscope::gui {
namespace {

using test::compiled;
using test::kSmallText;
using test::LayoutStability;
using test::model_of;
using test::stability_of;

TEST_CASE("graph_blocks: the scope of a block ends at its first numbered level") {
  CHECK(block_scope("/h.3/attn/MatMul") == "h.3");
  CHECK(block_scope("/model/layers.0/mlp/up/MatMul") == "model/layers.0");
  CHECK(block_scope("/layer1/layer1.0/conv1/Conv") == "layer1/layer1.0");
  CHECK(block_scope("/embeddings/word/Gather") == "embeddings");
  CHECK(block_scope("MatMul_12") == "");
  CHECK(block_scope("/Gemm") == "");
}

TEST_CASE("graph_picture: it has what it shows, whatever becomes of the graph") {
  auto step = compiled("gpt2", kSmallText);
  Graph& graph = step->stages.back().graph;
  const std::string name = graph.node(graph.first()).name;
  const GraphPicture picture = picture_of(graph);
  const std::size_t nodes = graph.node_count();
  step.reset();
  REQUIRE(picture.nodes.size() == nodes);
  CHECK(picture.nodes.front().name == name);
  CHECK(picture.graph->node(picture.nodes.back().id).name == picture.nodes.back().name);
}

void check_no_overlap(const GraphLayout& layout) {
  std::set<std::tuple<std::uint32_t, Column, std::int32_t, std::int32_t>> taken;
  for (const LaidNode& node : layout.nodes) {
    const bool is_new = taken.emplace(node.block, node.column, node.row, node.lane).second;
    CHECK(is_new);
    CHECK(node.lane < kMostLanes);
    const LaidBlock& block = layout.blocks[node.block];
    CHECK(node.x >= block.rect.x);
    CHECK(node.x + kNodeWidth <= block.rect.right());
    CHECK(node.y >= block.rect.y + kBlockHeader - 0.5f);
    CHECK(node.y + kNodeHeight <= block.rect.bottom());
  }
  for (std::size_t b = 1; b < layout.blocks.size(); ++b) {
    CHECK(layout.blocks[b].rect.y >= layout.blocks[b - 1].rect.bottom());
  }
}

// Forward and update rows grow along edges, backward rows shrink.
void check_flow(const GraphPicture& picture, const GraphLayout& layout) {
  for (const PictureEdge& edge : picture.edges) {
    const LaidNode& from = layout.nodes[edge.from];
    const LaidNode& to = layout.nodes[edge.to];
    if (from.block != to.block || from.column != to.column) continue;
    if (from.column == Column::kBackward) {
      CHECK(to.row < from.row);
    } else {
      CHECK(to.row > from.row);
    }
  }
}

TEST_CASE("graph_layout: the last stage of a transformer is bands of layers that mirror") {
  const auto step = compiled("gpt2", kSmallText);
  const Graph& graph = step->stages.back().graph;
  const GraphPicture picture = picture_of(graph);
  LayoutMemory memory;
  const GraphLayout layout = layout_graph(picture, memory);
  REQUIRE(layout.nodes.size() == graph.node_count());
  check_no_overlap(layout);
  check_flow(picture, layout);
  std::map<std::string, std::size_t> at;
  for (std::size_t b = 0; b < layout.blocks.size(); ++b) at[layout.blocks[b].name] = b;
  REQUIRE(at.contains("h.0"));
  REQUIRE(at.contains("h.2"));
  CHECK(at["h.0"] < at["h.1"]);
  CHECK(at["h.1"] < at["h.2"]);
  const LaidBlock& layer = layout.blocks[at["h.1"]];
  CHECK(layer.nodes[0] > 10);
  CHECK(layer.nodes[1] > 10);
  // One call updates all parameters: it is of no layer.
  REQUIRE(at.contains("update"));
  CHECK(layout.blocks[at["update"]].nodes[2] > 0);
}

TEST_CASE("graph_layout: a collapsed block is its header") {
  const auto step = compiled("gpt2", kSmallText);
  const GraphPicture picture = picture_of(step->stages.back().graph);
  LayoutMemory memory;
  const GraphLayout open = layout_graph(picture, memory);
  const GraphLayout layout = layout_graph(picture, memory, {"h.1"});
  REQUIRE(open.blocks.size() == layout.blocks.size());
  CHECK(layout.height < open.height);
  for (const LaidBlock& block : layout.blocks) {
    CHECK(block.collapsed == (block.name == "h.1"));
    if (block.collapsed) CHECK(block.rect.height == kBlockHeader);
  }
}

// Of stages that follow each other; the last one's layout.
GraphLayout check_stability(const Stages& stages) {
  LayoutMemory memory;
  std::optional<GraphPicture> before;
  GraphLayout layout_before;
  for (const Stage& stage : stages) {
    GraphPicture picture = picture_of(stage.graph);
    GraphLayout layout = layout_graph(picture, memory);
    check_flow(picture, layout);
    if (before) {
      const LayoutStability stability = stability_of(*before, layout_before, picture, layout);
      CAPTURE(stage.label);
      CHECK(100 * stability.in_order >= 95 * stability.survivors);
      CHECK(100 * stability.near_rows >= 95 * stability.survivors);
    }
    before = std::move(picture);
    layout_before = std::move(layout);
  }
  return layout_before;
}

void check_stability(std::string_view name, const ModelArguments& arguments) {
  CAPTURE(name);
  check_stability(compiled(name, arguments)->stages);
}

const ModelArguments kSmallUnet{
    {"image", std::int64_t{16}}, {"width", std::int64_t{4}}, {"depth", std::int64_t{2}}};

TEST_CASE("graph_layout: nodes keep their order and their rows from stage to stage") {
  check_stability("gpt2", kSmallText);
  check_stability("bert", kSmallText);
  ModelArguments llama = kSmallText;
  llama["kv-heads"] = std::int64_t{2};
  check_stability("llama", llama);
  check_stability("mlp", {});
  check_stability("lenet", {});
  check_stability("resnet", {});
  check_stability("unet", kSmallUnet);
  check_stability("vit", {{"layers", std::int64_t{2}},
                          {"heads", std::int64_t{2}},
                          {"embedding", std::int64_t{16}},
                          {"feed-forward", std::int64_t{32}},
                          {"patch", std::int64_t{8}},
                          {"image", std::int64_t{16}},
                          {"classes", std::int64_t{10}}});
}

// Of a step whose last stage runs nodes a second time; what runs again has a place of its own.
void check_recompute(std::string_view name, const ModelArguments& arguments, RecomputeMode mode) {
  CAPTURE(name);
  CAPTURE(static_cast<int>(mode));
  const OnnxModel model = model_of(name, arguments);
  CompileOptions options = test::options_for(model);
  options.recompute.mode = mode;
  const auto step = compile(model, options);
  const Stages& stages = step->stages;
  REQUIRE(stages.back().name == "recompute");
  REQUIRE(stages.back().nodes > stages[stages.size() - 2].nodes);
  check_no_overlap(check_stability(stages));
}

TEST_CASE("graph_layout: nodes keep their order and their rows where some run a second time") {
  check_recompute("gpt2", kSmallText, RecomputeMode::kLevel1);
  check_recompute("gpt2", kSmallText, RecomputeMode::kLevel2);
  check_recompute("unet", kSmallUnet, RecomputeMode::kLevel2);
}

}  // namespace
}  // namespace trainscope::gui
