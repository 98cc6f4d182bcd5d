// What losses over classes have in common in their rows.
#pragma once

#include <string_view>

#include "engine/ir/op_def.h"

namespace trainscope {

inline constexpr std::int64_t kDefaultIgnoreIndex = -100;  // PyTorch's

// Of an op of ours, which has the same loss of some rows by itself.
inline ClassLoss own_class_loss(const OpArgs& args, std::string_view op, int weights_input) {
  ClassLoss loss{
      .class_axis = args.axis("class_axis", -1, args.rank(0)),
      .ignore_index = args.attributes.integer("ignore_index", kDefaultIgnoreIndex),
      .weights_input = weights_input >= 0 && args.has(weights_input) ? weights_input : -1,
      .rows_form = op,
      .attributes = args.attributes};
  loss.attributes.set("class_axis", std::int64_t{-1});
  loss.attributes.set("ignore_index", loss.ignore_index);
  return loss;
}

}  // namespace trainscope
