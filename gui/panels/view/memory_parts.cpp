// Views of Memory and Budget: the cursor, what is seen of the plane, the list, the budget, the
// pins.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "engine/core/text.h"
#include "gui/panels/budget_parts.h"
#include "gui/panels/memory_state.h"
#include "gui/panels/panels.h"
#include "gui/panels/view/view_parts.h"
#include "gui/workbench/view_text.h"

namespace trainscope::gui {
namespace {

// Of the active run's plan; null where there is none.
MemoryState* memory_of(Workbench& workbench) {
  const RunData* run = workbench.run();
  if (run == nullptr || !run->has_memory_plan()) return nullptr;
  auto& state = workbench.state<MemoryState>();
  update_memory(state, workbench);
  state.selected = workbench.selection();
  return &state;
}

// Where the cursor is without being moved: at the selected call, or at the peak.
std::uint32_t usual_cursor(const MemoryState& state, const Workbench& workbench) {
  const std::span<const PlanCall> calls = workbench.run()->plan()->calls;
  const std::uint32_t call = workbench.selection().call;
  return call < calls.size() ? calls[call].time : state.map.peak_time;
}

std::string cursor_now(Workbench& workbench) {
  const MemoryState* state = memory_of(workbench);
  const bool is_usual = state == nullptr || state->cursor == usual_cursor(*state, workbench);
  return is_usual ? std::string() : std::to_string(state->cursor);
}

bool put_cursor(Workbench& workbench, std::string_view time) {
  MemoryState* state = memory_of(workbench);
  if (state == nullptr) return time.empty();
  const std::optional<std::int64_t> wanted =
      time.empty() ? usual_cursor(*state, workbench) : parse_int(time);
  if (!wanted || *wanted < 0 || *wanted >= state->map.times) return false;
  state->cursor = static_cast<std::uint32_t>(*wanted);
  return true;
}

// "first_time:last_time:first_byte:last_byte".
std::string seen_now(Workbench& workbench) {
  const MemoryState* state = memory_of(workbench);
  if (state == nullptr || state->range == whole_range(state->map)) return {};
  const MemoryRange& seen = state->range;
  return fmt::format("{}:{}:{}:{}", seen.first_time, seen.last_time, seen.first_byte,
                     seen.last_byte);
}

bool see_range(Workbench& workbench, std::string_view text) {
  MemoryState* state = memory_of(workbench);
  if (state == nullptr) return text.empty();
  state->range = whole_range(state->map);
  if (text.empty()) return true;
  const std::vector<std::string_view> words = split(text, ':');
  std::array<double, 4> ends = {};
  if (words.size() != ends.size()) return false;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::optional<double> end = parse_number(words[i]);
    if (!end) return false;
    ends[i] = *end;
  }
  const MemoryRange whole = state->range;
  const bool is_within = whole.first_time <= ends[0] && ends[0] < ends[1] &&
                         ends[1] <= whole.last_time && whole.first_byte <= ends[2] &&
                         ends[2] < ends[3] && ends[3] <= whole.last_byte;
  if (is_within) state->range = {ends[0], ends[1], ends[2], ends[3]};
  return is_within;
}

constexpr std::array<std::string_view, 4> kLists = {"", "gaps", "idle", "process"};

std::string memory_list_now(Workbench& workbench) {
  return std::string(kLists[static_cast<std::size_t>(workbench.state<MemoryState>().list)]);
}

bool list_memory_as(Workbench& workbench, std::string_view name) {
  const auto found = std::ranges::find(kLists, name);
  if (found == kLists.end()) return false;
  workbench.state<MemoryState>().list = static_cast<MemoryList>(found - kLists.begin());
  return true;
}

std::string touched_now(Workbench& workbench) {
  return workbench.state<MemoryState>().shows_touched ? "touched" : "";
}

bool show_touched(Workbench& workbench, std::string_view text) {
  workbench.state<MemoryState>().shows_touched = !text.empty();
  return text.empty() || text == "touched";
}

// The active run's model of budgets; null where there is none.
BudgetModel* budget_of(Workbench& workbench) {
  const RunData* run = workbench.run();
  if (run == nullptr || run->reader() == nullptr) return nullptr;
  BudgetModel& model = workbench.state<BudgetPanel>().model;
  model.look_at(*run);
  return &model;
}

std::string budget_now(Workbench& workbench) {
  const BudgetModel* model = budget_of(workbench);
  if (model == nullptr || model->request() == model->first_request()) return {};
  const PlanRequest& request = model->request();
  return request.level == PlanLevel::kAuto ? std::to_string(request.budget_bytes)
                                           : std::string(name_of(request.level));
}

bool show_budget(Workbench& workbench, std::string_view text) {
  BudgetModel* model = budget_of(workbench);
  if (model == nullptr) return text.empty();
  if (text.empty()) return model->ask_first(), true;
  for (const PlanLevel level : {PlanLevel::kNone, PlanLevel::kLevel1, PlanLevel::kLevel2}) {
    if (name_of(level) == text) return model->ask_level(level), true;
  }
  return ask_budget(workbench, text);
}

using Pins = std::vector<std::string> PlanRequest::*;

template <Pins kPins>
std::string pins_now(Workbench& workbench) {
  const BudgetModel* model = budget_of(workbench);
  std::string text;
  if (model == nullptr) return text;
  for (const std::string& pin : model->request().*kPins) {
    text += (text.empty() ? "" : "|") + escaped(pin, "|");
  }
  return text;
}

template <Pins kPins>
bool show_pins(Workbench& workbench, std::string_view text) {
  BudgetModel* model = budget_of(workbench);
  if (model == nullptr) return text.empty();
  PlanRequest request = model->request();
  (request.*kPins).clear();
  if (!text.empty()) {
    for (const std::string_view pin : split(text, '|')) (request.*kPins).push_back(unescaped(pin));
  }
  if (!(request == model->request())) model->ask(std::move(request));
  return true;
}

}  // namespace

std::span<const ViewPart> memory_view() {
  static constexpr ViewPart kParts[] = {
      {.key = "cursor", .now = cursor_now, .show = put_cursor},
      {.key = "range", .now = seen_now, .show = see_range},
      {.key = "list", .now = memory_list_now, .show = list_memory_as},
      {.key = "curve", .now = touched_now, .show = show_touched}};
  return kParts;
}

std::span<const ViewPart> budget_view() {
  static constexpr ViewPart kParts[] = {
      {.key = "budget", .now = budget_now, .show = show_budget},
      {.key = "keep", .now = pins_now<&PlanRequest::keep>, .show = show_pins<&PlanRequest::keep>},
      {.key = "recompute",
       .now = pins_now<&PlanRequest::recompute>,
       .show = show_pins<&PlanRequest::recompute>}};
  return kParts;
}

}  // namespace trainscope::gui
