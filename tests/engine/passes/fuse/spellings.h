// Spellings of one fused op: each must become it, give the same results and gradients, and name all
// the nodes that it stands for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/graph_text.h"

namespace trainscope::test {

struct Spelling {
  std::string_view name;
  std::string_view nodes;  // from x to y, in ONNX's text form
  int count = 0;           // of the nodes that the fused one stands for
};

struct Fusion {
  std::string_view pass;
  std::string_view fused;   // op
  std::string_view inputs;  // "(float[5,7] x0) => (float[5,7] y) <initializers>"
  std::string_view before;  // nodes that make x of x0
  std::vector<std::string> constants;
  std::vector<std::string> trained = {};  // numbers that would be constant by themselves
};

// Of x [2,3,5], x0 times the parameter p; frozen numbers, and parameters w, b and row for each
// column.
Fusion fusion_on_rows(std::string_view pass, std::string_view fused);
std::string text_of(const Fusion& fusion, std::string_view nodes);
// What the stages of a fusion are made with: up to gradients of the sum of squares of y.
CompileOptions options_of(const Fusion& fusion);
Stages stages_of(const Fusion& fusion, std::string_view nodes, bool fuse = true);
const Stage& stage_named(const Stages& stages, std::string_view name);
void check_spelling(const Fusion& fusion, const Spelling& spelling);
// With the pass and without it, y and the gradients are the same; whether it changed anything.
bool changes_no_result(const Fusion& fusion, std::string_view nodes);
// The pass leaves the nodes alone; its near misses, joined by "; ".
std::string near_misses_of(const Fusion& fusion, std::string_view nodes);
// The same where the gradient of a value is asked for, which must be there then.
std::string near_misses_with_gradient_of(std::string_view value, const Fusion& fusion,
                                         std::string_view nodes);

// The nodes of a stage's near misses by the names of their first results, the one that a near miss
// stands at first: "y e s"; joined by "; ".
std::string matched_in_near_misses(const Stage& stage);

}  // namespace trainscope::test
