// Masks of later tokens, element by element.
#include "engine/passes/fuse/causal_mask.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace trainscope {
namespace {

// Of a value: 4096 tokens squared, which is half of what `evaluate` computes in a compilation.
constexpr std::int64_t kMostElements = std::int64_t{1} << 24;
constexpr int kMostNodes = 64;  // that compute a mask

// Whether it is one matrix, of as many queries and keys as the scores have, and of each the same.
bool is_square_of(const Shape& s, const Shape& scores) {
  const std::int64_t n = scores[3];
  return s.rank >= 2 && s[s.rank - 2] == n && s[s.rank - 1] == n && scores[2] == n &&
         s.elements() == n * n;
}

std::size_t side_of(const Tensor& square) {
  const Shape& s = square.type().shape;
  return static_cast<std::size_t>(s[s.rank - 1]);
}

template <typename T>
std::optional<double> fill_of(std::span<const T> x, std::size_t n) {
  T fill = -std::numeric_limits<T>::infinity();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const T added = x[i * n + j];
      if (std::isnan(added) || (j <= i && added != T{})) return std::nullopt;
      if (j > i) fill = std::max(fill, added);
    }
  }
  return double{fill};
}

std::optional<double> fill_of(const Tensor& bias) {
  const std::size_t n = side_of(bias);
  if (bias.dtype() == DType::kF32) return fill_of(bias.values<float>(), n);
  const Tensor numbers = convert(bias, DType::kF64);
  return fill_of(numbers.values<double>(), n);
}

bool is_true_of(const Tensor& condition, bool later) {
  const std::size_t n = side_of(condition);
  const auto x = condition.values<bool>();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (x[i * n + j] != (later == (j > i))) return false;
    }
  }
  return true;
}

// What nodes compute from constants alone.
class KnownValues {
 public:
  KnownValues(const Graph& graph, const Evaluate* evaluate) : graph_(graph), evaluate_(evaluate) {}

  // Null: it depends on something else, is random, or takes more than the limits.
  SharedTensor of(ValueId v) {
    const Value& value = graph_.value(v);
    if (value.kind == ValueKind::kParameter || value.kind == ValueKind::kState) return nullptr;
    if (value.data != nullptr) return value.data;
    if (evaluate_ == nullptr || !*evaluate_ || value.producer == kNoNode) return nullptr;
    if (value.type.elements() > kMostElements) return nullptr;
    if (const auto done = computed_.find(v); done != computed_.end()) return done->second;
    const Node& node = graph_.node(value.producer);
    if (++nodes_ > kMostNodes || node.op->determinism == Determinism::kRandom) return nullptr;
    if (!compute(node)) return nullptr;
    return computed_[v];
  }

 private:
  bool compute(const Node& node) {
    std::vector<SharedTensor> held;
    std::vector<const Tensor*> inputs;
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) {
        held.push_back(of(input));
        if (held.back() == nullptr) return false;
      }
      inputs.push_back(input == kNoValue ? nullptr : held.back().get());
    }
    std::vector<TensorType> types;
    for (const ValueId output : node.outputs) {
      if (output == kNoValue || graph_.value(output).type.elements() > kMostElements) return false;
      types.push_back(graph_.value(output).type);
    }
    std::vector<Tensor> results = (*evaluate_)(*node.op, node.attributes, inputs, types);
    for (std::size_t i = 0; i < results.size(); ++i) {
      computed_[node.outputs[i]] = std::make_shared<const Tensor>(std::move(results[i]));
    }
    return !results.empty();
  }

  const Graph& graph_;
  const Evaluate* evaluate_;
  int nodes_ = 0;
  std::unordered_map<ValueId, SharedTensor> computed_;
};

}  // namespace

SharedTensor CausalMasks::known(ValueId v) const { return KnownValues(graph_, evaluate_).of(v); }

std::optional<double> CausalMasks::fill(ValueId bias, const Shape& scores) {
  const TensorType& type = graph_.value(bias).type;
  if (!is_float(type.dtype) || !is_square_of(type.shape, scores)) return std::nullopt;
  const auto [at, is_new] = fills_.try_emplace(bias);
  if (is_new) {
    const SharedTensor numbers = known(bias);
    if (numbers != nullptr) at->second = fill_of(*numbers);
  }
  return at->second;
}

bool CausalMasks::tells_later(ValueId condition, bool later, const Shape& scores) {
  const TensorType& type = graph_.value(condition).type;
  if (type.dtype != DType::kBool || !is_square_of(type.shape, scores)) return false;
  const auto [at, is_new] = truths_.try_emplace(condition, Truth::kNeither);
  if (is_new) {
    const SharedTensor truths = known(condition);
    if (truths != nullptr && is_true_of(*truths, true)) at->second = Truth::kOfLater;
    if (truths != nullptr && is_true_of(*truths, false)) at->second = Truth::kOfOthers;
  }
  return at->second == (later ? Truth::kOfLater : Truth::kOfOthers);
}

}  // namespace trainscope
