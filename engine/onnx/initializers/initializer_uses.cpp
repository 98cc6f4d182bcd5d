// Slots of ops that decide what an initializer is.
#include "engine/onnx/initializers/initializer_uses.h"

#include <algorithm>
#include <cctype>
#include <span>

#include "engine/core/text.h"
#include "engine/onnx/composites/composites.h"

namespace trainscope {
namespace {

struct Slot {
  std::string_view op;
  int input;
};
// Running statistics: training updates them, whatever form the model was exported in.
constexpr Slot kStateSlots[] = {{"BatchNormalization", 3}, {"BatchNormalization", 4}};
constexpr Slot kMicrosoftStateSlots[] = {{"BatchNormInternal", 3}, {"BatchNormInternal", 4}};
// Inputs that must be known when the graph is built, although they may be floats.
constexpr Slot kKnownSlots[] = {{"Clip", 1},   {"Clip", 2},   {"Dropout", 1}, {"Dropout", 2},
                                {"OneHot", 1}, {"OneHot", 2}, {"Pad", 2},     {"Range", 0},
                                {"Range", 1},  {"Range", 2},  {"Resize", 1},  {"Resize", 2},
                                {"Tile", 1},   {"Tile", 2},   {"Upsample", 1}};
// The same, of com.microsoft.
constexpr Slot kMicrosoftKnownSlots[] = {
    {"BiasDropout", 3}, {"BiasDropout", 4}, {"BitmaskDropout", 1}, {"BitmaskDropout", 2},
    {"MatMulBnb4", 2},  {"MatMulNBits", 2}, {"MatMulNBits", 3}};
constexpr Slot kExponentSlots[] = {{"Pow", 1}};
// What integers are multiplied by: observed, as a rule, not trained.
constexpr Slot kScaleSlots[] = {
    {"QuantizeLinear", 1}, {"DequantizeLinear", 1}, {"QLinearMatMul", 1}, {"QLinearMatMul", 4},
    {"QLinearMatMul", 6},  {"QLinearConv", 1},      {"QLinearConv", 4},   {"QLinearConv", 6}};
constexpr Slot kMicrosoftScaleSlots[] = {{"FakeQuant", 1}, {"FakeQuant", 2}};
// Cosines and sines of positions.
constexpr Slot kTableSlots[] = {{"RotaryEmbedding", 1}, {"RotaryEmbedding", 2}};
constexpr Slot kMicrosoftTableSlots[] = {{"RotaryEmbedding", 2},
                                         {"RotaryEmbedding", 3},
                                         {"GroupQueryAttention", 7},
                                         {"GroupQueryAttention", 8}};
constexpr Slot kFillSlots[] = {{"Where", 1}, {"Where", 2}};

// Of a masked score next to nothing is left; where all masked ones are one number, a larger one
// leaves little enough: the windows of Swin have -100.
constexpr float kMasked = -1e4F;
constexpr float kMaskedAlike = -100.0F;

bool is_one_of(std::span<const Slot> slots, const pb::NodeProto& node, int input) {
  return std::ranges::any_of(
      slots, [&](const Slot& slot) { return slot.op == node.op_type() && slot.input == input; });
}

// Ones on one side of the diagonal, with it or without, zeros elsewhere.
bool is_triangle(std::span<const float> elements, std::int64_t size) {
  const auto matches = [&](auto is_one) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i) % (size * size);
      if (elements[i] != (is_one(at / size, at % size) ? 1.0F : 0.0F)) return false;
    }
    return true;
  };
  using Place = std::int64_t;
  return matches([](Place row, Place column) { return column <= row; }) ||
         matches([](Place row, Place column) { return column < row; }) ||
         matches([](Place row, Place column) { return column >= row; }) ||
         matches([](Place row, Place column) { return column > row; });
}

// Zeros, and numbers that leave nothing of the scores that they are added to.
bool hides_scores(std::span<const float> elements, int rank) {
  const float least = *std::ranges::min_element(elements);
  const bool alike = rank >= 2 && least <= kMaskedAlike;
  return least < 0.0F &&
         std::ranges::all_of(
             elements,
             [&](float x) { return x == 0.0F || x <= kMasked || (alike && x == least); }) &&
         (alike || least <= kMasked);
}

void note_use(const pb::NodeProto& node, int input, InitializerUses& use) {
  ++use.count;
  const bool plain = plain_domain(node.domain()).empty();
  const bool microsoft = node.domain() == kMicrosoftDomain;
  use.known = use.known || (microsoft && is_one_of(kMicrosoftKnownSlots, node, input));
  use.table = use.table || (microsoft && is_one_of(kMicrosoftTableSlots, node, input));
  use.state = use.state || (microsoft && is_one_of(kMicrosoftStateSlots, node, input));
  use.scale = use.scale || (microsoft && is_one_of(kMicrosoftScaleSlots, node, input));
  if (!plain) return;
  use.table = use.table || is_one_of(kTableSlots, node, input);
  use.known = use.known || is_one_of(kKnownSlots, node, input);
  use.state = use.state || is_one_of(kStateSlots, node, input);
  use.exponent = use.exponent || is_one_of(kExponentSlots, node, input);
  use.scale = use.scale || is_one_of(kScaleSlots, node, input);
  use.fill = use.fill || is_one_of(kFillSlots, node, input);
}

}  // namespace

std::vector<InitializerUses> initializer_uses(const OnnxModel::Impl& model) {
  std::vector<InitializerUses> uses(model.facts.initializers.size());
  std::vector<const pb::GraphProto*> waiting{&model.proto.graph()};  // and the bodies in it
  while (!waiting.empty()) {
    const pb::GraphProto& graph = *waiting.back();
    waiting.pop_back();
    for (const pb::NodeProto& node : graph.node()) {
      for (int i = 0; i < node.input_size(); ++i) {
        auto found = model.initializer_index.find(node.input(i));
        if (found == model.initializer_index.end()) continue;
        note_use(node, i, uses[static_cast<std::size_t>(found->second)]);
      }
      for (const pb::AttributeProto& a : node.attribute()) {
        if (a.has_g()) waiting.push_back(&a.g());
      }
    }
    if (&graph == &model.proto.graph()) continue;
    for (const pb::ValueInfoProto& output : graph.output()) {
      auto found = model.initializer_index.find(output.name());
      if (found != model.initializer_index.end())
        ++uses[static_cast<std::size_t>(found->second)].count;
    }
  }
  return uses;
}

bool is_mask(const OnnxModel::Impl& model, int index) {
  const TensorType& type = model.facts.initializers[static_cast<std::size_t>(index)].type;
  if (!is_float(type.dtype) || type.elements() < 2 || model.is_unread(index)) return false;
  const Tensor tensor = convert(*model.tensor(index), DType::kF32);
  const std::span<const float> elements = tensor.values<float>();
  const int rank = type.shape.rank;
  if (hides_scores(elements, rank)) return true;
  return rank >= 2 && type.shape[rank - 1] > 1 && type.shape[rank - 1] == type.shape[rank - 2] &&
         is_triangle(elements, type.shape[rank - 1]);
}

bool is_name_of_constant(const std::string& name) {
  if (name.starts_with("onnx::")) return true;
  const auto is_number = [](std::string_view text) {
    return std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  // "Constant", "/layers.0/Constant_12_output_0"
  std::string_view last = std::string_view(name).substr(name.rfind('/') + 1);
  if (last.ends_with("_output_0")) last.remove_suffix(9);
  if (last == "Constant") return true;
  if (last.starts_with("Constant_")) return is_number(last.substr(9));
  const std::string_view rest = std::string_view(name).substr(name.starts_with('_') ? 1 : 0);
  return rest.starts_with("val_") && rest.size() > 4 && is_number(rest.substr(4));
}

std::string script_module(const std::string& node) {
  std::vector<std::string_view> parts = split(node, '/');
  if (parts.size() < 3 || !parts.front().empty()) return {};
  parts.pop_back();
  std::string module;
  for (std::string_view part : std::span(parts).subspan(1)) {
    // A child of a list repeats the list's name: "/layers/layers.0".
    const std::size_t last = module.rfind('.') == std::string::npos ? 0 : module.rfind('.') + 1;
    const std::string parent = module.substr(last) + ".";
    if (!module.empty() && part.starts_with(parent)) {
      module = module.substr(0, last) + std::string(part);
    } else {
      module += (module.empty() ? "" : ".") + std::string(part);
    }
  }
  return module;
}

}  // namespace trainscope
