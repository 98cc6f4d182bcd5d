// Decides which initializers are trained, updated or constant.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/composites/composites.h"
#include "engine/onnx/importer/import_plan.h"

namespace trainscope {
namespace {

struct Slot {
  std::string_view op;
  int input;
};
// Running statistics: training updates them, whatever form the model was exported in.
constexpr Slot kStateSlots[] = {{"BatchNormalization", 3}, {"BatchNormalization", 4}};
// Inputs that must be known when the graph is built, although they may be floats.
constexpr Slot kKnownSlots[] = {{"Clip", 1},    {"Clip", 2},   {"Dropout", 1}, {"Dropout", 2},
                                {"Pad", 2},     {"Range", 0},  {"Range", 1},   {"Range", 2},
                                {"Resize", 1},  {"Resize", 2}, {"Tile", 1},    {"Tile", 2},
                                {"Upsample", 1}};
// The same, of com.microsoft.
constexpr Slot kMicrosoftKnownSlots[] = {{"BiasDropout", 3},    {"BiasDropout", 4},
                                         {"BitmaskDropout", 1}, {"BitmaskDropout", 2},
                                         {"MatMulNBits", 2},    {"MatMulNBits", 3}};

bool is_one_of(std::span<const Slot> slots, const pb::NodeProto& node, int input) {
  return std::ranges::any_of(
      slots, [&](const Slot& slot) { return slot.op == node.op_type() && slot.input == input; });
}

struct Uses {
  int count = 0;
  int known = 0;  // of them, those that need the elements before the run
  bool state = false;
};

std::vector<Uses> count_uses(const OnnxModel::Impl& model) {
  std::vector<Uses> uses(model.facts.initializers.size());
  for (const pb::NodeProto& node : model.proto.graph().node()) {
    bool plain = plain_domain(node.domain()).empty();
    for (int i = 0; i < node.input_size(); ++i) {
      auto found = model.initializer_index.find(node.input(i));
      if (found == model.initializer_index.end()) continue;
      Uses& use = uses[static_cast<std::size_t>(found->second)];
      ++use.count;
      const bool microsoft = node.domain() == kMicrosoftDomain;
      if (plain && is_one_of(kKnownSlots, node, i)) ++use.known;
      if (microsoft && is_one_of(kMicrosoftKnownSlots, node, i)) ++use.known;
      if (plain && is_one_of(kStateSlots, node, i)) use.state = true;
    }
  }
  return uses;
}

bool matches_any(std::string_view name, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(
      patterns, [name](const std::string& pattern) { return matches_pattern(name, pattern); });
}

void check_patterns(const std::vector<ModelInitializer>& initializers,
                    const std::vector<std::string>& patterns, std::string_view what) {
  for (const std::string& pattern : patterns) {
    bool any = std::ranges::any_of(initializers, [&](const ModelInitializer& each) {
      return matches_pattern(each.name, pattern);
    });
    if (any) continue;
    std::vector<std::string> names;
    for (const ModelInitializer& each : initializers) names.push_back(each.name);
    throw Error(ErrorCode::kUsage,
                fmt::format("{} pattern '{}' matches no initializer of the model", what,
                            printable(pattern)))
        .hint(nearest_hint(pattern, names));
  }
}

}  // namespace

std::vector<ValueKind> initializer_kinds(const OnnxModel::Impl& model,
                                         const ImportOptions& options) {
  const std::vector<ModelInitializer>& initializers = model.facts.initializers;
  check_patterns(initializers, options.trainable, "trainable");
  check_patterns(initializers, options.frozen, "frozen");
  std::vector<Uses> uses = count_uses(model);
  std::vector<ValueKind> kinds;
  for (std::size_t i = 0; i < initializers.size(); ++i) {
    const ModelInitializer& each = initializers[i];
    // What nothing reads cannot be trained, what shapes depend on must not.
    bool usable = is_float(each.type.dtype) && uses[i].count > 0 && uses[i].known == 0;
    bool wanted = options.trainable.empty() || matches_any(each.name, options.trainable);
    bool trained = usable && wanted && !matches_any(each.name, options.frozen);
    kinds.push_back(uses[i].state ? ValueKind::kState
                    : trained     ? ValueKind::kParameter
                                  : ValueKind::kConstant);
  }
  return kinds;
}

}  // namespace trainscope
