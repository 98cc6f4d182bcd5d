// The one selection that all panels share, and the way back to those before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/bundle/plan_rows.h"

namespace trainscope::gui {

// Nanoseconds of the profile's clock, [begin, end).
struct TimeRange {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  bool empty() const { return end_ns <= begin_ns; }
  bool operator==(const TimeRange&) const = default;
};

// What was selected; the rest of a selection is what that has to do with.
enum class Subject : std::uint8_t { kNothing, kNode, kValue, kCall, kKernel, kBuffer, kModelNode };

// Nodes and values are known by their serials in all stages, 0: none; calls and buffers by their
// positions in the plan, kNoRow: none.
struct Selection {
  Subject subject = Subject::kNothing;
  std::int32_t stage = -1;  // a position in the stages; -1: the last
  std::uint32_t node = 0;
  std::uint32_t value = 0;
  std::uint32_t call = kNoRow;
  std::uint32_t buffer = kNoRow;
  std::string kernel = {};
  std::string model_node = {};  // of kModelNode: the name of a node of the ONNX model
  std::string stage_node = {};  // of kNode, where the plan does not have it: "STAGE:NAME"
  std::int64_t step = 0;        // its number; 0: none
  TimeRange range = {};

  bool operator==(const Selection&) const = default;
};

inline constexpr std::size_t kMostSelections = 200;

class SelectionHistory {
 public:
  const Selection& now() const { return entries_[at_]; }
  // What was ahead is forgotten; selecting the same again changes nothing. True where it changed.
  bool select(Selection selection);
  bool can_go_back() const { return at_ > 0; }
  bool can_go_forward() const { return at_ + 1 < entries_.size(); }
  bool go_back();
  bool go_forward();
  void clear();

 private:
  std::vector<Selection> entries_ = {Selection{}};
  std::size_t at_ = 0;
};

}  // namespace trainscope::gui
