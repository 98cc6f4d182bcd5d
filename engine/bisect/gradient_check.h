// Whether the gradients of a step are those of its nodes, without another engine's numbers: in f64,
// node by node, on the values that the step has.
//
// Of each node of the forward phase, with inputs x, outputs y and the step's gradients w of y, the
// node alone is differentiated by its op's rule to J'w. By the adjoint test <J u, w> = <u, J'w> for
// a random direction u, where <J u, w> is a central difference of <y, w>. And the gradient that the
// step has of a value must be the sum of what its readers give. Nodes that draw random numbers or
// pass a gradient straight through have no such test, and values that they read none of their sums.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/bisect/defined_step.h"
#include "engine/bisect/local_fault.h"
#include "engine/ir/op_def.h"

namespace trainscope {

struct GradientCheck {
  std::vector<LocalFault> faults;  // in order of the backward phase
  std::int64_t nodes = 0;          // whose rule was tested
  std::int64_t kinks = 0;          // inputs left out: the result has a kink in that direction
  std::int64_t sums = 0;           // gradients that were compared with their readers'
};

// `graph`: that of an unfused step in f64, whose values `step` names; rules are those of `ops`.
// `inputs` by name, as for replays. Throws as reference_run.
GradientCheck check_gradients(const UnfusedStep& step, const Graph& graph, const OpTable& ops,
                              const std::map<std::string, Tensor>& inputs);

}  // namespace trainscope
