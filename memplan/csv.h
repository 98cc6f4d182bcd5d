// Placement problems as MiniMalloc's CSV files: rows `id,lower,upper,size`, `upper` exclusive.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "memplan/problem.h"

namespace trainscope::memplan {

struct ParsedProblem {
  Problem problem = {};      // byte-aligned (the format knows no alignment), rows in file order
  std::string message = {};  // what is wrong and in which line; empty if nothing is
};

[[nodiscard]] ParsedProblem parse_problem_csv(std::string_view text);

// The problem's rows in their order with a fifth column `offset`; one offset per buffer.
[[nodiscard]] std::string write_solution_csv(const Problem& problem,
                                             std::span<const std::int64_t> offsets);

}  // namespace trainscope::memplan
