// What Loop's attributes say of its inputs and outputs; its gradient.
#pragma once

#include <cstdint>

#include "engine/ir/op_def.h"
#include "engine/ops/rules/gradient_rules.h"

namespace trainscope {

// The inputs of a Loop are the number of trips, then those that are carried, sliced and outer, the
// outputs those that are carried and stacked, then the number of trips that there were.
struct LoopForm {
  const Graph& body;
  int carried = 0;
  int sliced = 0;
  int stacked = 0;
  bool has_condition = false;
  bool backwards = false;
  std::int64_t most = 0;

  explicit LoopForm(const Attributes& attributes);
  int first_sliced() const { return 1 + carried; }
  int first_outer() const { return 1 + carried + sliced; }
  int input_count() const { return static_cast<int>(body.inputs.size()); }
  int output_count() const { return static_cast<int>(body.outputs.size()); }
  // Types of the body's inputs and outputs.
  const TensorType& input_type(int i) const;
  const TensorType& output_type(int i) const;
  Trips trips() const;
};

// A Loop that runs through the trips from the last to the first: each computes the body once more
// from what had been carried to it, and its gradient.
Values loop_gradient(const GradArgs& g);

}  // namespace trainscope
