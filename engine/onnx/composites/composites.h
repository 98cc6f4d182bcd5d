// Ops without a row of their own that the importer writes with the ops that have one. Passes see
// what these nodes are made of, and gradients come from there.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/onnx/composites/composition.h"

namespace trainscope {

inline constexpr std::string_view kMicrosoftDomain = "com.microsoft";

// The form that an op has in opsets from `from` on, up to the next one's.
struct CompositeOp {
  std::string_view op;
  int from = 0;
  int most_inputs = 0;
  int most_outputs = 1;
  std::string_view attributes = {};  // names that the op knows, with blanks between them
  void (*compose)(Composition&) = nullptr;
  // Of an op that has a row: which of its nodes are written with others all the same. Null: none.
  bool (*applies)(const Composition&) = nullptr;
};

// Null when there is none.
const CompositeOp* find_composite(std::string_view domain, std::string_view op, int opset);
// Builds what the node stands for. kBadInput or unsupported, naming the node, when it cannot.
void compose(const CompositeOp& op, Composition& composition);

// The tables, of ONNX's domain and of com.microsoft.
std::span<const CompositeOp> elementwise_composites();
std::span<const CompositeOp> norm_composites();
std::span<const CompositeOp> attention_composites();
std::span<const CompositeOp> recurrence_composites();
std::span<const CompositeOp> recurrent_composites();
std::span<const CompositeOp> fourier_composites();
std::span<const CompositeOp> label_loss_composites();
std::span<const CompositeOp> pool_composites();
std::span<const CompositeOp> microsoft_composites();
std::span<const CompositeOp> microsoft_attention_composites();
std::span<const CompositeOp> microsoft_training_composites();

// The tables of a domain; none for one that has none.
std::vector<std::span<const CompositeOp>> composite_tables(std::string_view domain);

// Why an op is not going to be imported; empty when that is not settled.
std::string_view out_of_scope(std::string_view domain, std::string_view op);
// What to do about an op that cannot be imported.
std::string_view advice_for_missing(std::string_view domain, std::string_view op);

}  // namespace trainscope
