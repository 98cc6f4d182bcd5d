// Nodes whose gradient the user gives: a UserGradient stands behind each.
#include <fmt/format.h>

#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/well_known.h"
#include "engine/onnx/importer/importer.h"

namespace trainscope {

// The node's results get names of their own; the node that is given has those of before.
std::optional<SourceNode> Importer::take_user_gradient(SourceNode& node) {
  if (options_.gradients == nullptr || is_stage_ || !node.may_have_gradient) return std::nullopt;
  const GradientFunction* gradient = options_.gradients->find(node.domain, node.op, node.opset);
  if (gradient == nullptr) return std::nullopt;
  node.may_have_gradient = false;
  Importer* outermost = this;
  while (outermost->outer_ != nullptr) outermost = outermost->outer_;
  outermost->used_gradients_.insert(gradient);
  require(node.inputs.size() <= gradient->inputs && node.outputs.size() <= gradient->outputs,
          ErrorCode::kBadInput,
          "{}: the gradient of {} is for {} inputs and {} outputs, node '{}' has {} and {}",
          gradient->function.where, printable(node.op), gradient->inputs, gradient->outputs,
          printable(node.source), node.inputs.size(), node.outputs.size());
  SourceNode marker;
  marker.op = "UserGradient";
  marker.domain = kTrainscopeDomain;
  marker.name = scope_.fresh(fmt::format("{}/gradient", node.name));
  marker.source = node.source;
  marker.outputs = node.outputs;
  for (std::string& output : node.outputs) {
    if (!output.empty()) output = scope_.fresh(output + std::string(kForwardEnding));
  }
  marker.inputs = node.outputs;
  marker.inputs.insert(marker.inputs.end(), node.inputs.begin(), node.inputs.end());
  marker.attributes.set("op", node.domain.empty() ? node.op : node.domain + "." + node.op);
  marker.attributes.set("function", text_with(gradient->function, node.attributes));
  const std::string& where = gradient->function.where;
  marker.attributes.set("file", where.substr(0, where.rfind(':')));
  marker.attributes.set("line", static_cast<std::int64_t>(gradient->function.inputs_line));
  marker.depth = node.depth;
  marker.may_have_gradient = false;
  return marker;
}

// One that is for nothing is most likely misspelled.
void Importer::check_user_gradients() const {
  if (options_.gradients == nullptr || is_stage_ || outer_ != nullptr) return;
  for (const GradientFunction& gradient : options_.gradients->list()) {
    if (used_gradients_.contains(&gradient)) continue;
    const std::string& domain = gradient.function.domain;
    fail(ErrorCode::kUsage, "{}: the model has no node of {}{}{} of version {} or newer",
         gradient.function.where, printable(domain), domain.empty() ? "" : ".",
         printable(gradient.op), gradient.function.since);
  }
}

}  // namespace trainscope
