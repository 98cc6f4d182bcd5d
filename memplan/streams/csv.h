// Placement problems of several streams as two CSV files.
//   operations: id,stream,after             `after`: ids of operations, separated by spaces
//   buffers:    id,size,producer,readers    `producer` empty: there from the beginning; `readers`:
//                                           ids separated by spaces, `*` for "kept until the end"
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "memplan/streams/problem.h"

namespace trainscope::memplan {

struct StreamTexts {
  std::string_view operations = {};
  std::string_view buffers = {};
};

struct ParsedStreams {
  StreamProblem problem = {};  // byte-aligned, rows in the files' order
  std::string message = {};    // what is wrong, in which file and line; empty if nothing is
};

[[nodiscard]] ParsedStreams parse_streams_csv(const StreamTexts& texts);

// The buffers' rows in their order with a fifth column `offset`; one offset per buffer.
[[nodiscard]] std::string write_solution_csv(const StreamProblem& problem,
                                             std::span<const std::int64_t> offsets);

}  // namespace trainscope::memplan
