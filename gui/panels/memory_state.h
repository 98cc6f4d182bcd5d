// What the Memory panel remembers, and its parts: the plane and the lists beside it.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/data/run_data.h"
#include "gui/ui/table.h"
#include "gui/ui/ui.h"
#include "gui/views/memory_map.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

enum class MemoryList : std::uint8_t { kAlive, kGaps, kIdle, kResident };

struct MemoryState {
  const RunData* of = nullptr;
  std::uint64_t version = 0;
  MemoryMap map = {};
  std::vector<IdleWait> idle = {};
  profiler::MeasuredMemory measured = {};
  MemoryRange range = {};
  MemoryFrame frame = {};
  std::uint32_t cursor = 0;  // a time
  Selection selected = {};   // when the cursor last followed it
  Selection listed = {};     // when the list last went to its row
  float dragged = 0.0F;      // pixels since the button went down
  bool shows_touched = false;
  MemoryList list = MemoryList::kAlive;
  TableState alive_table = {.sorted_by = 1};
  TableState gap_table = {.sorted_by = 1};
  TableState idle_table = {.sorted_by = 3};
  TableState resident_table = {.sorted_by = 0, .descending = false};

  // Of the time `alive_time`: by offset, as `inspect --memory` has them, and as the tables have
  // them.
  std::uint32_t alive_time = kNoRow;
  std::vector<std::uint32_t> alive = {};
  std::vector<std::uint32_t> alive_rows = {};  // positions in `alive`
  std::vector<PlanGap> gaps = {};
  std::vector<std::uint32_t> gap_rows = {};   // positions in `gaps`
  std::uint32_t chosen_gap = kNoRow;          // of `gaps`
  std::vector<std::uint32_t> idle_rows = {};  // positions in `idle`
};

// Brings the state to the active run and its selection. The run has a plan.
void update_memory(MemoryState& state, Workbench& workbench);
// The first call at the cursor; kNoRow: there is none.
std::uint32_t call_at_cursor(const MemoryState& state);
void set_cursor(MemoryState& state, Workbench& workbench, std::uint32_t time);
// What is alive and what is free at the cursor. A gap stays chosen as long as there is one at its
// place.
void take_moment(MemoryState& state, const PlanView& plan);
// The gap at a byte of the cursor's time; kNoRow: none.
std::uint32_t gap_at(const MemoryState& state, double byte);

// The plane shows the selected buffer and as much again on each side; without one nothing is done.
void see_selected_buffer(MemoryState& state, const Workbench& workbench);

// Bytes at the cursor and of the step, and the call that the cursor is at.
void draw_memory_summary(Ui& ui, const MemoryState& state, const PlanView& plan, const Rect& rect);
// Each class of buffers with the bytes that it has at the cursor, and what is hatched.
void draw_memory_legend(Ui& ui, const MemoryState& state, const PlanView& plan, Rect rect);
// Lines across what is computed a second time.
void draw_hatch(Ui& ui, const Rect& rect, Color ink);
// The live-bytes curve, the plane and their axes.
void draw_memory_plane(Ui& ui, Workbench& workbench, MemoryState& state, const Rect& rect);
// What is alive or free at the cursor, what lies idle, or what the process took.
void draw_memory_list(Ui& ui, Workbench& workbench, MemoryState& state, const Rect& rect);

}  // namespace trainscope::gui
