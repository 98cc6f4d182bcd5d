// The ops that a model may have and that are written with others while it is read, for lists.
#pragma once

#include <limits>
#include <string_view>
#include <vector>

namespace trainscope {

inline constexpr int kAnyNumberOfInputs = std::numeric_limits<int>::max();

// One form of an op: that of opsets from `from` on.
struct CompositeForm {
  std::string_view domain;  // empty: ONNX's
  std::string_view op;
  int from = 0;
  int most_inputs = 0;
  int most_outputs = 1;
  std::string_view attributes;  // with blanks between them
};

// Sorted by domain, name and opset; without ops that have a row too.
std::vector<CompositeForm> composite_forms();

}  // namespace trainscope
