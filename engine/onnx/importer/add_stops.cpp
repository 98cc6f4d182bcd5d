// Nodes at which PyTorch lets no gradient flow: the forward pass stays the same to the bit.
#include <fmt/format.h>

#include <utility>

#include "engine/onnx/composites/composition.h"
#include "engine/onnx/importer/importer.h"

namespace trainscope {

void Importer::add_with_stops(SourceNode node) {
  const std::string output = node.outputs.empty() ? "" : node.outputs.front();
  const auto padding = model_.padding_rows.find(output);
  if (padding != model_.padding_rows.end()) {
    add_padded_lookup(std::move(node), padding->second);
    return;
  }
  const auto stopped = model_.stopped_inputs.find(output);
  if (stopped != model_.stopped_inputs.end()) {
    for (int slot : stopped->second) stop_input(node, slot);
  }
  add_source_node(std::move(node));
}

// rows = weight[ids], and Where(ids == row, rows without a gradient, rows): what the padding row
// gives gets no gradient.
void Importer::add_padded_lookup(SourceNode node, std::int64_t row) {
  Composition lookup({.graph = graph_,
                      .builder = builder_,
                      .scope = scope_,
                      .provenance = provenance_,
                      .shared = shared_constants_},
                     node);
  const ValueId ids = lookup.input(1);
  const ValueId rows = lookup("Gather", {lookup.input(0), ids});
  const ValueId padding =
      lookup("Equal", {ids, lookup.scalar(static_cast<double>(row), lookup.dtype(ids))});
  const ValueId mask = lookup("Unsqueeze", {padding, lookup.ints({-1})});
  lookup.result(0, lookup("Where", {mask, lookup("StopGradient", {rows}), rows}));
  lookup.finish();
}

void Importer::stop_input(SourceNode& node, int slot) {
  const auto index = static_cast<std::size_t>(slot);
  if (index >= node.inputs.size() || node.inputs[index].empty()) return;
  const ValueId input = scope_.value(node, index);
  if (!is_float(graph_.value(input).type.dtype)) return;
  Builder::Spec spec;
  spec.op = &ops_.get("StopGradient");
  spec.name = scope_.fresh(fmt::format("{}/detached{}", node.name, slot));
  spec.inputs = {input};
  spec.output_names = {spec.name};
  spec.provenance = provenance_;
  node.inputs[index] = spec.name;
  builder_.add(std::move(spec));
}

}  // namespace trainscope
