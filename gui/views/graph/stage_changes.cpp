// Rows of a difference of stages -> marks.
#include "gui/views/graph/stage_changes.h"

#include <algorithm>

namespace trainscope::gui {
namespace {

ChangeMark mark_of_row(const DiffRow& row) {
  if (row.kind == "added" || row.kind == "rematerialized") return ChangeMark::kAdded;
  if (row.kind == "kept" || row.kind == "same") {
    return row.changes.empty() ? ChangeMark::kSame : ChangeMark::kChanged;
  }
  if (row.kind == "renamed" || row.kind == "differs") return ChangeMark::kChanged;
  return ChangeMark::kGone;
}

std::string text_of_row(const DiffRow& row) {
  if (!row.changes.empty()) return row.changes;
  std::string text;
  for (const NamedThing& other : row.others) {
    text += text.empty() ? other.name : ", " + other.name;
  }
  return text;
}

StageChange change_of(const DiffRow& row, ChangeMark mark) {
  StageChange change{.mark = mark,
                     .kind = row.kind,
                     .is_node = row.thing.is_node,
                     .serial = static_cast<std::uint32_t>(row.thing.serial),
                     .name = row.thing.name,
                     .text = text_of_row(row),
                     .stage = row.stage,
                     .reason = row.reason};
  for (const NamedThing& other : row.others) {
    change.others.push_back(static_cast<std::uint32_t>(other.serial));
  }
  return change;
}

void count(ChangeMark mark, StageChanges& changes) {
  if (mark == ChangeMark::kAdded) ++changes.added;
  if (mark == ChangeMark::kGone) ++changes.gone;
  if (mark == ChangeMark::kChanged) ++changes.changed;
}

}  // namespace

char sign_of(ChangeMark mark) {
  switch (mark) {
    case ChangeMark::kAdded:
      return '+';
    case ChangeMark::kChanged:
      return '~';
    case ChangeMark::kTakesIn:
      return '<';
    case ChangeMark::kGone:
      return '-';
    default:
      return ' ';
  }
}

StageChanges changes_of(const StageDiff& diff) {
  StageChanges changes{.nodes = diff.nodes};
  for (const DiffRow& row : diff.rows) {
    const ChangeMark mark = mark_of_row(row);
    if (mark == ChangeMark::kSame) continue;
    changes.rows.push_back(change_of(row, mark));
    if (!row.thing.is_node) continue;
    count(mark, changes);
    changes.marks[static_cast<std::uint32_t>(row.thing.serial)] = mark;
  }
  std::ranges::stable_partition(changes.rows, [](const StageChange& row) { return row.is_node; });
  for (std::uint32_t i = 0; i < changes.rows.size(); ++i) {
    const StageChange& row = changes.rows[i];
    changes.row_of.emplace(row.serial, i);
    if (!row.is_node || row.mark != ChangeMark::kGone) continue;
    for (const std::uint32_t other : row.others) {
      changes.marks.try_emplace(other, ChangeMark::kTakesIn);
    }
  }
  return changes;
}

}  // namespace trainscope::gui
