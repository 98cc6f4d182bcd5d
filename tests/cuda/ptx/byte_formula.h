// Formulas of the counters' table (counters.tsv): what a kernel moves or multiplies, by the sizes
// of its operands.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/ir/op_def.h"

namespace trainscope::test {

// Sums, differences, products, quotients (rounded up) and parentheses of whole numbers and of
//
//   read, written   bytes of the cost model
//   x0, y1          bytes of input 0 and of output 1; 0 where it is left out
//   x0.n            its elements
//   x0.2            the size of its axis 2
//
// Throws std::runtime_error, with the formula, for anything else.
std::int64_t value_of_formula(std::string_view formula, const OpArgs& args, const Cost& cost);

}  // namespace trainscope::test
