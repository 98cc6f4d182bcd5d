// Work in a child process, of which a failing device, a crash or a hang takes only one piece.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace trainscope::test {

struct SupervisedOptions {
  std::size_t pieces = 0;
  double piece_seconds = 60.0;    // a piece that takes longer is ended
  double total_seconds = 3600.0;  // no piece begins later
};

// How a piece reports: a line at a time, and whether the process can go on with the next piece.
using Report = std::function<void(const std::string& line)>;
using Piece = std::function<bool(std::size_t piece, const Report& report)>;

struct SupervisedEvents {
  std::function<void(const std::string& line)> line;
  // The process ended inside a piece, or said that it cannot go on: by itself, a signal or us.
  std::function<void(std::size_t piece, const std::string& how)> lost;
};

// Runs the pieces in order, in as few processes as can be. Returns how many began.
// `start` runs in each new process before its first piece; what it throws ends everything.
std::size_t run_supervised(const SupervisedOptions& options, const std::function<void()>& start,
                           const Piece& piece, const SupervisedEvents& events);

}  // namespace trainscope::test
