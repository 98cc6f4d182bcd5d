// How many labels the highest score names: counted on the host, from what a program's output holds.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/api/tensor_view.h"

namespace trainscope {

// Which output scores the classes, and what the labels that name one look like.
struct ScoredClasses {
  std::string output;
  std::string labels;
  std::int64_t class_axis = -1;
  std::int64_t ignore_index = -100;
};

struct LabelCount {
  std::int64_t labels = 0;  // that are not ignored
  std::int64_t correct =
      0;  // of these, those whose class has the highest score (the first of ties)
};

// scores: f32 or f64, labels: i32 or i64, their shape that of the scores without the class axis.
LabelCount count_correct(const TensorView& scores, const TensorView& labels,
                         const ScoredClasses& classes);

}  // namespace trainscope
