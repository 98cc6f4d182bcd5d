// ClassLoss: what a node of a loss over classes says, in whatever op it is written.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/ir/attributes.h"

namespace trainscope {

enum class LossReduction : std::uint8_t { kNone, kSum, kMean };

// Input 0 has a score for each class, input 1 the labels; the loss of a label is minus the
// logarithm of softmax at its class, perhaps times a weight of the class.
struct ClassLoss {
  int class_axis = 0;
  std::int64_t ignore_index = 0;                   // labels of this value do not count
  LossReduction reduction = LossReduction::kMean;  // over those that count, by their weights
  int weights_input = -1;                          // a weight for each class; -1: none
  // The op that has the same loss of some of the rows only, the classes being the last axis: its
  // inputs are scores, labels, weights where there are any, and at `divisor_input` of its row what
  // the sum is divided by.
  std::string_view rows_form = {};
  Attributes attributes = {};  // of a node of `rows_form`
};

}  // namespace trainscope
