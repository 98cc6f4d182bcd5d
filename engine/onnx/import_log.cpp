// Model and graph side by side, by names and sources.
#include "engine/onnx/import_log.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/onnx/model_impl.h"
#include "engine/onnx/node_names.h"
#include "engine/onnx/validate.h"

namespace trainscope {
namespace {

enum : std::uint16_t { kImportRule, kConstantRule, kNameRule, kUnreadRule, kRestoredRule };

std::vector<RewriteRule> import_rules() {
  return {{.name = "import", .reason = "Read the model as a graph of opset 17 ops."},
          {.name = "constant", .reason = "A Constant node is the tensor that it holds."},
          {.name = "name", .reason = "Each node needs a name of its own."},
          {.name = "unread output", .reason = "Nothing reads this output of the node."},
          {.name = "restored",
           .reason = "The exporter had merged, folded or left out this initializer."}};
}

NamedThing in_model(bool is_node, std::string name) {
  return {.is_node = is_node, .serial = kNoSerial, .name = std::move(name)};
}

class ImportLogMaker {
 public:
  ImportLogMaker(const OnnxModel::Impl& model, const Graph& graph)
      : model_(model.proto.graph()), graph_(graph), restored_(model.restored) {
    log_.rules = import_rules();
    for (NodeId id : graph.order()) {
      const SourceNames& sources = graph.node(id).provenance.sources;
      if (!sources.empty()) made_of_[*sources.begin()].push_back(id);
    }
    for (const pb::NodeProto& node : model_.node()) {
      read_.insert(node.input().begin(), node.input().end());
      for (std::string_view name : captured_names(node)) read_.insert(std::string(name));
    }
  }

  RewriteLog run() {
    NodeNames names(model_);
    for (int i = 0; i < model_.node_size(); ++i) {
      add_node(model_.node(i), names.take(model_.node(i), i));
    }
    for (const auto& input : model_.input()) values_.insert(input.name());
    for (const auto& initializer : model_.initializer()) values_.insert(initializer.name());
    for (const RestoredInitializer& each : restored_) add_restored(each);
    for (NodeId id : graph_.order()) add_new(id);
    for (ValueId id : graph_.live_values()) add_new(id);
    return log_.entries.empty() ? RewriteLog() : std::move(log_);
  }

 private:
  NamedThing named(NodeId id) const {
    return {.is_node = true, .serial = graph_.node(id).serial, .name = graph_.node(id).name};
  }
  NamedThing named(ValueId id) const {
    return {.is_node = false, .serial = graph_.value(id).serial, .name = graph_.value(id).name};
  }

  void add_node(const pb::NodeProto& node, const std::string& name) {
    nodes_.insert(name);
    RewriteEntry entry{.kind = RewriteKind::kRemoved, .thing = in_model(true, name)};
    const NodeId same = graph_.find_node(name);
    const auto made = made_of_.find(name);
    if (same != kNoNode) {
      if (node.name() != name && !node.name().empty()) {
        log_.entries.push_back({.kind = RewriteKind::kRenamed,
                                .thing = in_model(true, node.name()),
                                .others = {named(same)},
                                .detail = name,
                                .rule = kNameRule});
      }
    } else if (made != made_of_.end()) {
      for (NodeId id : made->second) entry.others.push_back(named(id));
      entry.kind = entry.others.size() == 1 ? RewriteKind::kInside : RewriteKind::kSplit;
    } else if (const ValueId constant = constant_of(node); constant != kNoValue) {
      entry.kind = RewriteKind::kFolded;
      entry.others = {named(constant)};
      entry.rule = kConstantRule;
    }
    for (const std::string& output : node.output()) add_output(output, entry.others);
    if (same == kNoNode) log_.entries.push_back(std::move(entry));
  }

  ValueId constant_of(const pb::NodeProto& node) const {
    if (node.op_type() != "Constant" || node.output_size() != 1) return kNoValue;
    return graph_.find(node.output(0));
  }

  void add_output(const std::string& name, const std::vector<NamedThing>& into) {
    if (name.empty()) return;
    values_.insert(name);
    if (graph_.find(name) != kNoValue) return;
    RewriteEntry entry{.kind = RewriteKind::kRemoved, .thing = in_model(false, name)};
    if (!read_.contains(name)) {
      entry.kind = RewriteKind::kDead;
      entry.rule = kUnreadRule;
    } else if (!into.empty()) {
      entry.kind = RewriteKind::kInside;
      entry.others = into;
    }
    log_.entries.push_back(std::move(entry));
  }

  void add_new(NodeId id) {
    const Node& node = graph_.node(id);
    if (nodes_.contains(node.name)) return;
    RewriteEntry entry{.kind = RewriteKind::kAdded, .thing = named(id)};
    for (const std::string& source : node.provenance.sources) {
      entry.others.push_back(in_model(true, source));
    }
    log_.entries.push_back(std::move(entry));
  }

  void add_new(ValueId id) {
    const Value& value = graph_.value(id);
    if (values_.contains(value.name)) return;
    RewriteEntry entry{.kind = RewriteKind::kAdded, .thing = named(id)};
    if (value.producer != kNoNode) entry.others = {named(value.producer)};
    log_.entries.push_back(std::move(entry));
  }

  // It is in the model as read, and was not in its file.
  void add_restored(const RestoredInitializer& restored) {
    const ValueId id = graph_.find(restored.name);
    if (id == kNoValue) return;
    log_.entries.push_back({.kind = RewriteKind::kChanged,
                            .thing = named(id),
                            .others = {},
                            .detail = restored.how,
                            .rule = kRestoredRule});
  }

  const pb::GraphProto& model_;
  const Graph& graph_;
  RewriteLog log_;
  std::unordered_map<std::string_view, std::vector<NodeId>> made_of_;  // by primary source
  std::unordered_set<std::string> nodes_;                              // names in the model
  std::unordered_set<std::string> values_;
  std::unordered_set<std::string_view> read_;  // values that nodes read
  const std::vector<RestoredInitializer>& restored_;
};

}  // namespace

RewriteLog import_log(const OnnxModel& model, const Graph& imported) {
  return ImportLogMaker(model.impl(), imported).run();
}

}  // namespace trainscope
