// Which of the contributions to a gradient explains what is wrong with their sum.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "engine/bisect/defined_step.h"
#include "engine/bisect/local_fault.h"
#include "engine/bisect/observed.h"

namespace trainscope {

// A hypothesis holds where it leaves so much of the error at most.
inline constexpr double kLeft = 0.02;

struct Explanation {
  std::size_t part = 0;  // of those given
  double factor = 0.0;   // so many times too often it is in the sum; -1: it is not there
  double left = 0.0;     // norm of what that does not explain
};
// What is wrong with a sum, by the part that leaves the least of it; none: all parts are 0.
std::optional<Explanation> explained_by(const Coordinates& wrong,
                                        std::span<const Coordinates> parts);

struct ContributionFault {
  FaultKind kind = FaultKind::kOp;
  std::string cause = {};
};
// Of a contribution that is in the sum so many times: "the contribution of Add '/h.0/Add' is
// missing", "... is counted twice", "... is 0.5 times what it must be".
ContributionFault contribution_fault(const NamedNode& reader, double times);
// "of the other sign", "0.5 times what it must be".
std::string factor_text(double factor);

}  // namespace trainscope
