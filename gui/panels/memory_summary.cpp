// The line above the plane: bytes at the cursor and of the step, and the call that the cursor is
// at.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gui/panels/memory_state.h"

namespace trainscope::gui {
namespace {

struct MemoryFact {
  std::string_view word = {};
  std::string_view name = {};
  std::int64_t bytes = 0;
  std::string_view fact = {};  // in the twin's JSON
  std::string_view help = {};
};

// A word and its number, from the left of what is left, where there is room.
void add_memory_fact(Ui& ui, Rect& rest, const MemoryFact& fact) {
  const Quantity quantity{static_cast<double>(fact.bytes), Unit::kBytes};
  const float word_width = std::ceil(ui.width(fact.word)) + 6.0F;
  const float number_width = std::ceil(ui.width(text_of(quantity).whole(), Face::kNumber)) + 4.0F;
  if (rest.width < word_width + number_width) return;
  Rect place = take_left(rest, word_width + number_width);
  ui.tooltip(ui.hit(fmt::format("{}/about", fact.name), place,
                    {.kind = ItemKind::kArea, .focusable = false}),
             fact.help);
  ui.text(take_left(place, word_width), fact.word, {.color = ui.theme().soft_ink});
  ui.number(fact.name, place, quantity, fact.fact);
  take_left(rest, 14.0F);
}

// "call 7 of 112  MatMul  /h.0/mlp  (forward)" at the right, or where that is wider than its place
// "call 7  /h.0/mlp".
class MemoryCallDrawer {
 public:
  MemoryCallDrawer(Ui& ui, const PlanView& plan, std::uint32_t id)
      : ui_(ui), id_(id), count_(plan.calls.size()), name_(plan.name_of(plan.calls[id])) {
    const PlanCall& call = plan.calls[id];
    const std::string_view op =
        call.kind == PlanCallKind::kKernel ? plan.op_of(call) : name_of(call.kind);
    whole_ = fmt::format("{}  {}  ({})", op, name_, name_of(call.phase));
  }

  void draw(Rect rest) const {
    const float number = width_of("call") + width_of(quantity_of(id_));
    const float count = width_of("of") + width_of(quantity_of(count_));
    if (rest.width < number) return;
    const bool is_whole = number + count + width_of(whole_) <= rest.width;
    const std::string& what = is_whole ? whole_ : name_;
    const float wanted = number + (is_whole ? count : 0.0F) + width_of(what);
    take_left(rest, std::max(0.0F, rest.width - wanted));
    draw_number(rest, "call", "call", id_);
    if (is_whole) draw_number(rest, "of", "call_count", count_);
    ui_.text(rest, what, {.color = ui_.theme().soft_ink, .fit = Fit::kMiddle});
  }

 private:
  static constexpr float kGap = 6.0F;

  static Quantity quantity_of(std::size_t count) {
    return {static_cast<double>(count), Unit::kCount};
  }
  float width_of(std::string_view word) const { return std::ceil(ui_.width(word)) + kGap; }
  float width_of(const Quantity& quantity) const { return width_of(text_of(quantity).whole()); }
  void draw_number(Rect& rest, std::string_view word, std::string_view name,
                   std::size_t count) const {
    const Color color = ui_.theme().soft_ink;
    const Quantity quantity = quantity_of(count);
    ui_.text(take_left(rest, width_of(word)), word, {.color = color});
    Rect place = take_left(rest, width_of(quantity));
    take_right(place, kGap);
    ui_.number(name, place, quantity, fmt::format("/{}", name),
               {.face = Face::kText, .color = color});
  }

  Ui& ui_;
  std::size_t id_;
  std::size_t count_;
  std::string name_;
  std::string whole_;
};

std::vector<MemoryFact> memory_facts(const MemoryState& state) {
  const MemoryMap& map = state.map;
  const std::int64_t live = state.cursor < map.live.size() ? map.live[state.cursor] : 0;
  std::vector<MemoryFact> facts = {{"alive here", "live", live, "/live_bytes",
                                    "Bytes of the buffers that are alive at the cursor"},
                                   {"free", "free", map.arena_bytes - live, "/free_bytes",
                                    "Bytes of the arena that nobody has at the cursor: its gaps"}};
  if (state.cursor < map.bound.size()) {
    facts.push_back({"measured", "bound_here", map.bound[state.cursor], "/measured/bound_bytes",
                     "Bytes of the arena that the first profiled step had bound at the cursor"});
  }
  facts.push_back({"peak", "peak", map.peak_bytes, "/peak_live_bytes",
                   "The most bytes that are alive at a call of the step"});
  facts.push_back({"arena", "arena", map.arena_bytes, "/arena_bytes",
                   "The one block of memory that the step uses, to the byte"});
  facts.push_back({"bound", "bound", map.bound_bytes, "/lower_bound_bytes",
                   "Lower bound: no placement of these buffers needs fewer bytes"});
  return facts;
}

}  // namespace

void draw_memory_summary(Ui& ui, const MemoryState& state, const PlanView& plan, const Rect& rect) {
  const Surface surface(ui, rect, ui.theme().header);
  Rect rest = rect.inset(8.0F, 0.0F);
  for (const MemoryFact& fact : memory_facts(state)) add_memory_fact(ui, rest, fact);
  if (state.map.proven && rest.width > 140.0F) {
    ui.text(take_left(rest, 120.0F), "proven least", {.color = ui.theme().good});
  }
  if (rest.width <= 120.0F) return;
  const std::uint32_t call = call_at_cursor(state);
  if (call != kNoRow) return MemoryCallDrawer(ui, plan, call).draw(rest);
  ui.text(rest, "no call", {.color = ui.theme().soft_ink, .align = Align::kRight});
}

}  // namespace trainscope::gui
