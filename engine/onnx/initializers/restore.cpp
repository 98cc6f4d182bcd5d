// Restores by names alone what a file without marks shows, then what the marks tell.
#include "engine/onnx/initializers/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/onnx/initializers/folded.h"
#include "engine/onnx/initializers/gradient_stops.h"
#include "engine/onnx/initializers/hidden_calls.h"
#include "engine/onnx/initializers/initializer_uses.h"
#include "engine/onnx/initializers/model_edit.h"
#include "engine/onnx/initializers/restore_program.h"

namespace trainscope {
namespace {

constexpr std::string_view kKeepScript =
    "export it as it is: torch.onnx.export(model, args, \"model.onnx\", dynamo=False, "
    "training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)";

// "Identity_12": such nodes the older exporter puts where it had merged equal initializers; their
// outputs keep the names that the initializers had.
bool is_merge(const pb::NodeProto& node) {
  if (node.op_type() != "Identity" || !node.name().starts_with("Identity_")) return false;
  const std::string& output = node.output(0);
  return !output.starts_with('/') && output.find("::") == std::string::npos;
}

bool is_output(const pb::GraphProto& graph, const std::string& name) {
  return std::ranges::any_of(
      graph.output(), [&name](const pb::ValueInfoProto& output) { return output.name() == name; });
}

std::string merged_text(const std::string& name) {
  return fmt::format("merged with '{}', whose elements were equal", printable(name));
}

void restore_merged(ModelEdit& edit) {
  if (edit.model().proto.producer_name() != "pytorch") return;
  for (int i = 0; i < edit.node_count(); ++i) {
    const pb::NodeProto& node = edit.node(i);
    if (node.input_size() != 1 || node.output_size() != 1 || !is_merge(node)) continue;
    if (!edit.is_float_initializer(node.input(0))) continue;
    if (is_output(edit.model().proto.graph(), node.output(0))) continue;
    edit.copy(edit.find(node.input(0)), node.output(0), merged_text(node.input(0)));
    edit.remove_node(i);
  }
}

// "bn1.weight" -> "bn1.running_var"; else the node's name before it.
std::string statistic_name(const ModelEdit& edit, const std::string& merged,
                           const pb::NodeProto& node, int slot) {
  const char* leaf = slot == 3 ? "running_mean" : "running_var";
  const std::size_t dot = merged.rfind('.');
  const std::string_view last =
      std::string_view(merged).substr(dot == std::string::npos ? 0 : dot + 1);
  std::string name = fmt::format("{}/{}", node.name(), leaf);
  if (last == "weight" || last == "bias") {
    name = dot == std::string::npos ? leaf : merged.substr(0, dot + 1) + leaf;
  }
  return edit.free_name(std::move(name));
}

// What batch norms have as scale or bias.
std::unordered_set<std::string> scales_and_biases(const ModelEdit& edit) {
  std::unordered_set<std::string> names;
  for (int i = 0; i < edit.node_count(); ++i) {
    const pb::NodeProto& node = edit.node(i);
    if (node.op_type() != "BatchNormalization" || node.input_size() != 5) continue;
    names.insert({node.input(1), node.input(2)});
  }
  return names;
}

// A running statistic of a batch norm that is also a scale or bias, its own or another one's: two
// initializers that were equal when the model was fresh.
void restore_statistics(ModelEdit& edit) {
  const std::unordered_set<std::string> trained = scales_and_biases(edit);
  for (int i = 0; i < edit.node_count(); ++i) {
    const pb::NodeProto& node = edit.node(i);
    if (node.op_type() != "BatchNormalization" || node.input_size() != 5) continue;
    for (int slot = 3; slot < 5; ++slot) {
      const std::string merged = edit.node(i).input(slot);
      if (!trained.contains(merged)) continue;
      if (!edit.is_float_initializer(merged)) continue;
      const std::string name = statistic_name(edit, merged, node, slot);
      edit.copy(edit.find(merged), name, merged_text(merged));
      edit.set_input(i, slot, name);
    }
  }
}

bool is_made_by_exporter(std::string_view name) { return name.starts_with("onnx::"); }

// Float matrices that embeddings take rows of.
std::vector<int> embedding_tables(const ModelEdit& edit) {
  std::vector<int> tables;
  for (int i = 0; i < edit.node_count(); ++i) {
    const pb::NodeProto& node = edit.node(i);
    if (node.op_type() != "Gather" || node.input_size() < 2) continue;
    const int table = edit.find(node.input(0));
    if (table < 0 || !edit.has_elements(table)) continue;
    if (edit.type(table).shape.rank == 2 && is_float(edit.type(table).dtype)) {
      tables.push_back(table);
    }
  }
  return tables;
}

bool is_transpose(const ModelEdit& edit, int table, int weight) {
  const Shape& rows = edit.type(table).shape;
  const Shape& columns = edit.type(weight).shape;
  if (columns.rank != 2 || rows[0] != columns[1] || rows[1] != columns[0]) return false;
  return edit.has_elements(weight) && edit.equal(table, transposed(*edit.elements(weight)));
}

// An embedding whose transpose the exporter folded into the last layer's weight: one parameter.
void restore_ties(ModelEdit& edit) {
  const std::vector<int> tables = embedding_tables(edit);
  for (int i = 0; i < edit.node_count() && !tables.empty(); ++i) {
    const pb::NodeProto node = edit.node(i);
    if (node.op_type() != "MatMul" || node.input_size() != 2) continue;
    const int weight = edit.find(node.input(1));
    if (weight < 0 || !is_made_by_exporter(node.input(1))) continue;
    const auto table =
        std::ranges::find_if(tables, [&](int each) { return is_transpose(edit, each, weight); });
    if (table == tables.end()) continue;
    const std::string name = edit.model().proto.graph().initializer(*table).name();
    const std::string moved = edit.free_name(fmt::format("{}/{}", name, node.name()));
    edit.insert_before(i, transpose_node(name, moved));
    edit.set_input(i, 1, moved);
    edit.model().restored.push_back(
        {.name = moved,
         .from = node.input(1),
         .how = fmt::format("it was folded into '{}', its transpose", printable(node.input(1)))});
  }
}

// A convolution's weight is never transposed or reshaped: one that the exporter made holds
// something else besides. The same of a Gemm that transposes its weight itself.
void find_folded(ModelEdit& edit) {
  std::string names;
  int count = 0;
  bool evaluates = false;
  for (int i = 0; i < edit.node_count(); ++i) {
    const pb::NodeProto& node = edit.node(i);
    const std::string& op = node.op_type();
    evaluates = evaluates || (op == "BatchNormalization" && node.output_size() == 1);
    const bool transposes = op == "Gemm" && attribute_number(node, "transB", 0) != 0;
    if ((op != "Conv" && op != "ConvTranspose" && !transposes) || node.input_size() < 2) continue;
    if (!is_made_by_exporter(node.input(1)) || edit.find(node.input(1)) < 0) continue;
    if (++count <= 8)
      names += fmt::format("{}'{}'", count == 1 ? "" : ", ", printable(node.name()));
  }
  if (count > 8) names += fmt::format(" and {} more", count - 8);
  if (count > 0) {
    edit.model().faults.push_back(
        {.message =
             fmt::format("the exporter computed weights of other parameters, as it does when "
                         "it fuses a batch norm into a convolution: those of {}",
                         names),
         .hint = std::string(kKeepScript)});
  }
  if (evaluates && edit.model().proto.producer_name() == "pytorch") {
    edit.model().notes.push_back(
        {.message = "the model was exported in eval mode: its dropouts are not in the file; "
                    "batch norms train on batches unless --batch-norm running is given",
         .hint = "torch.onnx.export(.., training=torch.onnx.TrainingMode.TRAINING, "
                 "do_constant_folding=False)"});
  }
}

// Inputs of norms that hold their scale.
int scale_slot(const std::string& op) {
  constexpr std::array<std::string_view, 6> kNorms = {
      "BatchNormalization", "GroupNormalization", "InstanceNormalization",
      "LayerNormalization", "RMSNormalization",   "SimplifiedLayerNormalization"};
  if (op == "SkipLayerNormalization" || op == "SkipSimplifiedLayerNormalization") return 2;
  return std::ranges::find(kNorms, op) == kNorms.end() ? -1 : 1;
}

bool is_fresh(const ModelEdit& edit, int scale) {
  if (!edit.has_elements(scale)) return false;
  const Tensor tensor = convert(*edit.elements(scale), DType::kF32);
  return std::ranges::all_of(tensor.values<float>(), [](float x) { return x == 1.0F; });
}

// "norm" of "norm_1", which is its second call.
std::string norm_module(const std::string& node) {
  const std::string module = script_module(node);
  const std::size_t end = module.find_last_not_of("0123456789");
  const bool counted = end != std::string::npos && end + 1 < module.size() && module[end] == '_';
  return counted ? module.substr(0, end) : module;
}

// Scales of ones that norms of several modules share: tied in the module, or merged by a tool.
void find_shared_scales(ModelEdit& edit) {
  std::map<std::string, std::map<std::string, std::string>> readers;  // scale, module, node
  for (int i = 0; i < edit.node_count(); ++i) {
    const pb::NodeProto& node = edit.node(i);
    const int slot = scale_slot(node.op_type());
    if (slot < 0 || slot >= node.input_size() || !edit.is_float_initializer(node.input(slot)))
      continue;
    const std::string module = norm_module(node.name());
    readers[node.input(slot)].emplace(module.empty() ? node.output(0) : module, node.name());
  }
  for (const auto& [scale, norms] : readers) {
    if (norms.size() < 2 || !is_fresh(edit, edit.find(scale))) continue;
    std::vector<std::string> names;
    for (const auto& [module, node] : norms) {
      names.push_back(fmt::format("'{}'", printable(node.empty() ? module : node)));
      if (names.size() == 4) break;
    }
    edit.model().notes.push_back(
        {.message = fmt::format("{} norms share the scale '{}' and train it as one ({}{}), as of a "
                                "module that ties them; if a tool merged equal scales, they differ "
                                "in PyTorch after the first step",
                                norms.size(), printable(scale), join(names, ", "),
                                norms.size() > 4 ? ", ..." : ""),
         .hint = "torch.onnx.export(model, args, \"model.onnx\", dynamo=True, optimize=False), "
                 "whose marks tell"});
  }
}

// Batch norms that keep nothing of their old running statistics: what the older exporter makes of
// momentum=None, whose statistics are means over all batches.
void find_last_statistics(ModelEdit& edit) {
  if (edit.model().proto.producer_name() != "pytorch") return;
  std::vector<std::string> names;
  for (int i = 0; i < edit.node_count(); ++i) {
    const pb::NodeProto& node = edit.node(i);
    if (node.op_type() != "BatchNormalization" || node.output_size() < 2) continue;
    if (attribute_number(node, "momentum", 0.9) == 0.0 && names.size() < 8)
      names.push_back(fmt::format("'{}'", printable(node.name())));
  }
  if (names.empty()) return;
  edit.model().notes.push_back(
      {.message =
           fmt::format("batch norms keep the statistics of the last batch alone, as the file "
                       "says: {}; with momentum=None PyTorch has means over all batches. "
                       "Losses are the same",
                       join(names, ", ")),
       .hint = "give them a momentum before the export"});
}

}  // namespace

void restore_initializers(OnnxModel::Impl& model) {
  model.marks = exporter_marks(model.proto);
  ModelEdit edit(model);
  if (model.marks.tell_parameters()) {
    find_gradient_stops(edit);
    find_mutated_buffers(edit);
    const HiddenCalls hidden = find_hidden_calls(edit, ProgramCalls(model.marks));
    ProgramRestorer(edit, hidden.merged).run();
  } else {
    restore_merged(edit);
    restore_ties(edit);
    find_folded(edit);
    find_shared_scales(edit);
    find_last_statistics(edit);
  }
  edit.finish();
  ModelEdit again(model);
  restore_statistics(again);
  again.finish();
  for (const ProgramInput& input : model.marks.program) {
    const bool rows = model.initializer_index.contains(rows_name(input.target));
    if (rows && model.initializer_index.contains(input.target)) model.partial.insert(input.target);
  }
  for (const pb::NodeProto& node : model.proto.graph().node()) {
    if (node.input_size() != 2) continue;
    if (node.input(1).ends_with(kShapeOfView)) model.reshaped.insert(node.input(0));
    if (node.input(1).ends_with(kOneOfSum)) model.added.insert(node.input(0));
  }
}

}  // namespace trainscope
