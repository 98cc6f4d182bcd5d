// What one stage has and another has not, as marks on nodes and rows of a table, with the reasons.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/passes/stage_diff.h"

namespace trainscope::gui {

enum class ChangeMark : std::uint8_t {
  kSame,
  kAdded,    // not there before
  kChanged,  // its inputs, type, attributes or name are others
  kTakesIn,  // does the work of nodes that are gone
  kGone,
};
// '+', '~', '<', '-'; ' ' of what is the same.
char sign_of(ChangeMark mark);

struct StageChange {
  ChangeMark mark = ChangeMark::kSame;
  std::string_view kind = {};  // "inside", "folded", "added", ...
  bool is_node = false;
  std::uint32_t serial = 0;
  std::string name = {};
  std::vector<std::uint32_t> others = {};  // serials: what it is now, or what it was made of
  std::string text = {};                   // names of those, or what changed
  std::string stage = {};                  // label of the one that decided
  std::string reason = {};
};

struct StageChanges {
  std::vector<StageChange> rows = {};  // nodes first; without what is the same
  std::unordered_map<std::uint32_t, std::uint32_t> row_of = {};  // of nodes and values, by serial
  std::unordered_map<std::uint32_t, ChangeMark> marks = {};      // of nodes, by serial
  std::map<std::string, std::int64_t> nodes = {};                // how many of each kind
  std::int64_t added = 0;
  std::int64_t gone = 0;
  std::int64_t changed = 0;

  ChangeMark mark_of(std::uint32_t serial) const {
    const auto found = marks.find(serial);
    return found == marks.end() ? ChangeMark::kSame : found->second;
  }
};

StageChanges changes_of(const StageDiff& diff);

}  // namespace trainscope::gui
