// Graphs inside of nodes: their own rules, and what they read of the graph around them.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/validate.h"

namespace trainscope {
namespace {

// In the order in which they are first read, each once.
class FreeNames {
 public:
  std::vector<std::string_view> run(const pb::GraphProto& graph) {
    for (const pb::ValueInfoProto& input : graph.input()) made_.insert(input.name());
    for (const pb::TensorProto& tensor : graph.initializer()) made_.insert(tensor.name());
    for (const pb::NodeProto& node : graph.node()) {
      for (const std::string& input : node.input()) read(input);
      for (std::string_view name : captured_names(node)) read(name);
      made_.insert(node.output().begin(), node.output().end());
    }
    for (const pb::ValueInfoProto& output : graph.output()) read(output.name());
    return std::move(names_);
  }

 private:
  void read(std::string_view name) {
    if (name.empty() || made_.contains(name) || !seen_.insert(name).second) return;
    names_.push_back(name);
  }

  std::unordered_set<std::string_view> made_;
  std::unordered_set<std::string_view> seen_;
  std::vector<std::string_view> names_;
};

void check_body(const pb::GraphProto& body, ExternalFiles& files, const CheckNodes& check_nodes) {
  if (!body.name().empty()) check_name(body.name(), "graph");
  std::vector<std::string_view> given;
  for (const pb::ValueInfoProto& input : body.input()) {
    check_name(input.name(), "input");
    given.push_back(input.name());
  }
  for (const pb::TensorProto& tensor : body.initializer()) {
    check_name(tensor.name(), "initializer");
    check_tensor(tensor, fmt::format("initializer '{}'", printable(tensor.name())), files);
    const bool is_input = std::ranges::find(given, std::string_view(tensor.name())) != given.end();
    if (!is_input) given.push_back(tensor.name());
  }
  require_supported(body.sparse_initializer_size() == 0, "sparse tensors are not supported");
  check_nodes(body.node());
  std::vector<std::string_view> results;
  for (const pb::ValueInfoProto& output : body.output()) {
    check_name(output.name(), "output");
    results.push_back(output.name());
  }
  for (std::string_view name : FreeNames().run(body)) given.push_back(name);
  check_edges(body.node(), given, results);
}

}  // namespace

bool is_control_flow(std::string_view op) { return op == "If" || op == "Loop" || op == "Scan"; }

std::vector<std::string_view> captured_names(const pb::NodeProto& node) {
  std::vector<std::string_view> names;
  for (const pb::AttributeProto& a : node.attribute()) {
    if (!a.has_g()) continue;
    for (std::string_view name : FreeNames().run(a.g())) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

void check_bodies(const pb::NodeProto& node, std::string_view where, ExternalFiles& files,
                  const CheckNodes& check_nodes) {
  for (const pb::AttributeProto& a : node.attribute()) {
    if (!a.has_g()) continue;
    try {
      check_body(a.g(), files, check_nodes);
    } catch (Error& error) {
      error.at(fmt::format("{}: graph '{}'", where, printable(a.name())));
      throw;
    }
  }
}

}  // namespace trainscope
