// Why a value is not what its op makes of its inputs: what else would give it.
#pragma once

#include <string>
#include <vector>

#include "engine/bisect/defined_step.h"
#include "engine/bisect/local_fault.h"
#include "engine/bisect/observed.h"

namespace trainscope {

// A value beyond its limit, and the nodes that make it of what is known of the run.
struct Suspect {
  const UnfusedStep& step;
  const std::vector<SharedTensor>& values;  // by ValueId; of `out` what the nodes make
  const std::vector<NodeId>& cone;          // in order, the last makes `out`
  ValueId out;
  const Observed& seen;  // what the run has
  const std::string& key;
  bool alone;        // other values have these elements too, and the run has them there as it must
  bool special;      // NaN and infinities are not in both alike
  double tolerance;  // of a distance
};

struct Diagnosis {
  FaultKind kind = FaultKind::kOp;
  NamedNode node;
  std::string cause = "another result of the same inputs";
};

// Tries what is usually wrong: an edge of the gradient's sum missing or counted twice, a factor,
// elements in another order, an attribute with another value, operands swapped, an input left out,
// a parameter that did not move or moved by another factor.
Diagnosis diagnose(const Suspect& suspect);

}  // namespace trainscope
