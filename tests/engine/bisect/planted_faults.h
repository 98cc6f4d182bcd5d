// The mistakes that bisecting must find: each names what it was planted in.
#pragma once

#include <span>
#include <string>

#include "tests/engine/bisect/planting.h"

namespace trainscope::test {

struct Expected {
  FaultKind kind = FaultKind::kOp;
  std::string node = {};  // of the model; empty: the key says it
  std::string key = {};   // "param:w"; empty: any
};

struct Fault {
  const char* model;
  const char* what;
  Expected (*plant)(Planter& planter);
  OptimizerKind optimizer = OptimizerKind::kAdamW;
};

std::span<const Fault> forward_faults();
std::span<const Fault> backward_faults();
std::span<const Fault> update_faults();

}  // namespace trainscope::test
