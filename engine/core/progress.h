// How far a piece of long work is, and the wish to end it early.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <stop_token>
#include <string_view>

namespace trainscope {

// A moment of long work. The texts are valid during the call alone.
struct Progress {
  std::string_view work;      // "passes", "order", "placement", "recompute", "training"
  std::string_view now = {};  // what is done now: a pass's name; may be empty
  std::int64_t done = 0;      // pieces: passes, plans that were tried, steps
  std::int64_t total = 0;     // of so many; 0: not known
};

// Thrown by work that was asked to stop. Nothing of its result is left; it is no error.
class Stopped final : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped as asked"; }
};

// What long work looks at between its pieces. Copies watch the same wish.
struct Watch {
  std::stop_token stop = {};                                // default: nobody can ask
  std::function<void(const Progress&)> progress = nullptr;  // called by the thread that works

  // Throws Stopped once somebody has asked to stop. By any thread.
  void check() const {
    if (stop.stop_requested()) throw Stopped();
  }
  // The same, and says how far the work is.
  void report(const Progress& moment) const {
    check();
    if (progress) progress(moment);
  }
};

}  // namespace trainscope
