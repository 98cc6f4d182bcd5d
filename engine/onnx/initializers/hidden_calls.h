// Calls of PyTorch's program that the exporter left out, or merged with equal ones: the numbers are
// the same without them, what is trained need not be.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/onnx/initializers/model_edit.h"
#include "engine/onnx/initializers/program_calls.h"

namespace trainscope {

struct HiddenCalls {
  std::vector<std::string> readers;  // nodes that read their results
  std::vector<std::string> results;  // "view_1", "layer_norm_2"
  // Parameters, by their names in PyTorch, that calls before a merged one read.
  std::set<std::string> merged;
};

// Those on the way of a gradient to a parameter. What lies behind them, such as a detach(), the
// file does not tell: a note says so, or, where the file shows that the module detaches something,
// a fault. Before nodes are added to the model or removed.
HiddenCalls find_hidden_calls(ModelEdit& edit, const ProgramCalls& calls);

// What nodes that are of no call make of a parameter alone: its transpose, a view, copies. By
// value.
std::set<std::string> moved_parameters(const ModelEdit& edit, const ProgramCalls& calls);

// Whether `result` is what detach() returned: "detach", "detach_3", and not "detached_1".
bool is_detached(std::string_view result);

}  // namespace trainscope
