// The memory-time plane with its axes: bytes upwards, calls to the right.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "engine/core/numbers.h"
#include "gui/panels/memory_state.h"
#include "gui/panels/plot.h"
#include "gui/views/plan_links.h"

namespace trainscope::gui {
namespace {

constexpr float kCurveHeight = 58.0F;
constexpr float kLeastBoxLabel = 64.0F;  // of a box, in pixels, that shows its name
constexpr float kHatchEvery = 7.0F;
constexpr float kPlaneClick = 4.0F;  // pixels that a click may move

class PlaneDrawer {
 public:
  PlaneDrawer(Ui& ui, Workbench& workbench, MemoryState& state)
      : ui_(ui), workbench_(workbench), state_(state), plan_(*workbench.run()->plan()) {}

  void draw(const Rect& rect) {
    Rect rest = rect;
    const bool roomy = rect.height > 150.0F && rect.width > 260.0F;
    gutter_ = roomy ? std::ceil(ui_.width("0000.0 MiB", Face::kSmallNumber)) + 8.0F : 0.0F;
    if (roomy) {
      Rect curve = take_top(rest, kCurveHeight);
      take_left(curve, gutter_);
      curve_ = curve;
      axis_ = take_bottom(rest, ui_.line_height(Face::kSmall) + 6.0F);
      take_left(axis_, gutter_);
      take_top(rest, 4.0F);
    }
    plane_ = rest;
    take_left(plane_, gutter_);
    if (plane_.empty()) return;
    take_moment(state_, plan_);
    interact();
    take_moment(state_, plan_);
    frame_memory(state_.map, state_.range, plane_.width, plane_.height, state_.frame);
    if (roomy) draw_curve();
    draw_plane();
    if (roomy) draw_axes();
  }

 private:
  float x_of(double time) const {
    const double share =
        (time - state_.range.first_time) / (state_.range.last_time - state_.range.first_time);
    return plane_.x + static_cast<float>(share) * plane_.width;
  }
  float y_of(double byte) const {
    const double share =
        (byte - state_.range.first_byte) / (state_.range.last_byte - state_.range.first_byte);
    return plane_.bottom() - static_cast<float>(share) * plane_.height;
  }
  double time_at(float x) const {
    return state_.range.first_time + static_cast<double>((x - plane_.x) / plane_.width) *
                                         (state_.range.last_time - state_.range.first_time);
  }
  double byte_at(float y) const {
    return state_.range.first_byte + static_cast<double>((plane_.bottom() - y) / plane_.height) *
                                         (state_.range.last_byte - state_.range.first_byte);
  }

  void interact() {
    const Response response =
        ui_.hit("plane", plane_, {.kind = ItemKind::kArea, .label = "memory-time plane"});
    const Point mouse = ui_.input().mouse;
    if (response.wheel.y != 0.0F) {
      state_.range = zoomed(state_.map, state_.range, std::pow(0.85, response.wheel.y),
                            static_cast<double>((mouse.x - plane_.x) / plane_.width),
                            static_cast<double>((plane_.bottom() - mouse.y) / plane_.height));
    }
    if (ui_.input().is_pressed(MouseButton::kLeft)) {
      state_.dragged = 0.0F;
    } else if (response.held) {
      drag(response.dragged);
    }
    const std::uint32_t at = rectangle_at(state_.map, time_at(mouse.x), byte_at(mouse.y));
    if (response.hovered) hovered_ = at;
    const bool is_click = response.clicked && state_.dragged < kPlaneClick;
    if (is_click || response.right_clicked || response.middle_clicked) click(at, mouse);
    if (response.middle_clicked) see_selected_buffer(state_, workbench_);
    if (hovered_ != kNoRow) {
      ui_.tooltip(response, text_of_box(hovered_));
    } else if (response.hovered) {
      hovered_gap_ = gap_at_point(mouse);
      if (hovered_gap_ != kNoRow) ui_.tooltip(response, text_of_gap(state_.gaps[hovered_gap_]));
    }
    walk(response);
  }

  void drag(Point by) {
    state_.dragged += std::abs(by.x) + std::abs(by.y);
    if (state_.dragged < kPlaneClick) return;
    const double times =
        (state_.range.last_time - state_.range.first_time) / static_cast<double>(plane_.width);
    const double bytes =
        (state_.range.last_byte - state_.range.first_byte) / static_cast<double>(plane_.height);
    state_.range = moved(state_.map, state_.range, -static_cast<double>(by.x) * times,
                         static_cast<double>(by.y) * bytes);
  }

  // Where no buffer is, the gap is chosen that is there at that time.
  void click(std::uint32_t at, Point mouse) {
    const auto last = static_cast<double>(std::max(1U, state_.map.times) - 1);
    state_.cursor = static_cast<std::uint32_t>(std::clamp(time_at(mouse.x), 0.0, last));
    take_moment(state_, plan_);
    state_.chosen_gap = at == kNoRow ? gap_at(state_, byte_at(mouse.y)) : kNoRow;
    const PlanLinks* links = workbench_.links();
    if (at == kNoRow || links == nullptr) return;
    workbench_.select(
        select_buffer(*links, workbench_.selection(), state_.map.rectangles[at].buffer));
    state_.selected = workbench_.selection();
  }

  void walk(const Response& response) {
    if (!ui_.region_has_keys() && !response.focused) return;
    const std::uint32_t last = std::max(1U, state_.map.times) - 1;
    if (ui_.take("Left") && state_.cursor > 0) set_cursor(state_, workbench_, state_.cursor - 1);
    if (ui_.take("Right") && state_.cursor < last) {
      set_cursor(state_, workbench_, state_.cursor + 1);
    }
    if (ui_.take("Home")) set_cursor(state_, workbench_, 0);
    if (ui_.take("End")) set_cursor(state_, workbench_, last);
    if (ui_.take("+")) state_.range = zoomed(state_.map, state_.range, 0.7, share_of_cursor(), 0.5);
    if (ui_.take("-")) state_.range = zoomed(state_.map, state_.range, 1.4, share_of_cursor(), 0.5);
  }

  double share_of_cursor() const {
    const double share = (static_cast<double>(state_.cursor) - state_.range.first_time) /
                         (state_.range.last_time - state_.range.first_time);
    return std::clamp(share, 0.0, 1.0);
  }

  std::string text_of_box(std::uint32_t index) const {
    const MemoryRectangle& box = state_.map.rectangles[index];
    const PlanBuffer& buffer = plan_.buffers[box.buffer];
    return fmt::format(
        "{}: {}{}, {} at offset {}, alive for {} calls ({} to {}), from {}",
        plan_.text(buffer.label), box.recomputed ? "recomputed " : "", name_of(buffer.holds),
        gui::text_of({static_cast<double>(box.bytes), Unit::kBytes}).whole(),
        gui::text_of({static_cast<double>(box.offset), Unit::kBytes}).whole(), box.end - box.begin,
        box.begin, box.end,
        plan_.text(buffer.producer).empty() ? "nothing" : plan_.text(buffer.producer));
  }

  std::uint32_t gap_at_point(Point point) const {
    const std::uint32_t gap = gap_at(state_, byte_at(point.y));
    if (gap == kNoRow) return kNoRow;
    const double time = time_at(point.x);
    const bool is_free = static_cast<double>(state_.gaps[gap].begin) <= time &&
                         time < static_cast<double>(state_.gaps[gap].end);
    return is_free ? gap : kNoRow;
  }

  static std::string text_of_gap(const PlanGap& gap) {
    return fmt::format("gap: {} at offset {}, free for {} calls ({} to {})",
                       gui::text_of({static_cast<double>(gap.bytes), Unit::kBytes}).whole(),
                       gui::text_of({static_cast<double>(gap.offset), Unit::kBytes}).whole(),
                       gap.calls(), gap.begin, gap.end);
  }

  void draw_curve() {
    const Surface surface(ui_, curve_, ui_.theme().inset);
    const Clip clip(ui_, curve_);
    const double top =
        1.04 * static_cast<double>(std::max<std::int64_t>(1, state_.map.arena_bytes));
    const auto height_of = [&](double bytes) {
      return static_cast<float>(bytes / top) * curve_.height;
    };
    draw_columns(state_.frame.live, ui_.theme().phases[0], height_of);
    if (state_.shows_touched) {
      draw_columns(state_.frame.touched, ui_.theme().phases[1], height_of);
    }
    draw_bound_bytes(height_of);
    const float bound = curve_.bottom() - height_of(static_cast<double>(state_.map.bound_bytes));
    ui_.canvas().line({curve_.x, bound}, {curve_.right(), bound},
                      {.color = ui_.theme().warning, .dashed = true});
    draw_cursor(curve_);
    const float line = ui_.line_height(Face::kSmall);
    const float label = bound - line > curve_.y ? bound - line : bound + 1.0F;
    constexpr std::string_view kBound = "lower bound";
    const Rect place{curve_.x, label, std::ceil(ui_.width(kBound, Face::kSmall)) + 8.0F, line};
    const Surface paper(ui_, place, ui_.theme().inset);
    ui_.text(place.inset(4.0F, 0.0F), kBound, {.face = Face::kSmall, .color = ui_.theme().warning});
  }

  // What a step had bound, as measured: a line where the plan's bytes should end.
  template <typename Height>
  void draw_bound_bytes(Height height_of) {
    const std::vector<std::int64_t>& columns = state_.frame.bound;
    if (columns.empty()) return;
    std::vector<Point> points;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (i > 0 && columns[i] == columns[i - 1]) continue;
      const float x = curve_.x + static_cast<float>(i);
      if (!points.empty()) points.push_back({x, points.back().y});
      points.push_back({x, curve_.bottom() - height_of(static_cast<double>(columns[i]))});
    }
    points.push_back({curve_.right(), points.back().y});
    ui_.canvas().polyline(points, {.color = ui_.theme().ink});
  }

  // Neighbouring columns of one height are one rectangle.
  template <typename Height>
  void draw_columns(const std::vector<std::int64_t>& columns, Color color, Height height_of) {
    for (std::size_t begin = 0; begin < columns.size();) {
      std::size_t end = begin + 1;
      while (end < columns.size() && columns[end] == columns[begin]) ++end;
      const float height = std::min(curve_.height, height_of(static_cast<double>(columns[begin])));
      ui_.canvas().fill({curve_.x + static_cast<float>(begin), curve_.bottom() - height,
                         static_cast<float>(end - begin), height},
                        with_alpha(color, 0.55F));
      begin = end;
    }
  }

  void draw_plane() {
    const Surface surface(ui_, plane_, ui_.theme().inset);
    const Clip clip(ui_, plane_, Moves::kAll);
    for (const MemoryBox& box : state_.frame.boxes) draw_box(box);
    draw_gaps();
    for (const MemoryBox& box : state_.frame.boxes) draw_marked(box);
    draw_phases();
    draw_cursor(plane_);
  }

  Rect rect_of(const MemoryBox& box) const {
    return {plane_.x + box.x, plane_.y + box.y, std::max(1.0F, box.width),
            std::max(1.0F, box.height)};
  }

  void draw_box(const MemoryBox& box) {
    const MemoryRectangle& rectangle = state_.map.rectangles[box.index];
    Rect rect = rect_of(box);
    const Color color = ui_.theme().series[static_cast<std::size_t>(rectangle.holds)];
    const bool has_edge = rect.width > 4.0F && rect.height > 4.0F;
    ui_.canvas().fill(has_edge ? Rect{rect.x, rect.y, rect.width - 1.0F, rect.height - 1.0F} : rect,
                      color);
    if (rectangle.recomputed) draw_hatch(ui_, rect, ink_on(color));
    if (rect.width > kLeastBoxLabel && rect.height > ui_.line_height(Face::kSmall) + 2.0F) {
      draw_box_name(rect, plan_.text(plan_.buffers[rectangle.buffer].label), color);
    }
    if (ui_.items().keeps_all()) {
      ui_.hit(fmt::format("box/{}", rectangle.buffer), rect,
              {.kind = ItemKind::kMark,
               .label = plan_.text(plan_.buffers[rectangle.buffer].label),
               .focusable = false});
    }
  }

  // On paper of its own, which keeps the hatching off it.
  void draw_box_name(const Rect& box, std::string_view name, Color color) {
    const float line = ui_.line_height(Face::kSmall);
    const Rect place{box.x + 4.0F, box.y + std::floor((box.height - line) / 2.0F),
                     std::min(box.width - 8.0F, ui_.width(name, Face::kSmall)), line};
    const Surface surface(ui_, place, color);
    ui_.text(place, name, {.face = Face::kSmall, .color = ink_on(color), .fit = Fit::kMiddle});
  }

  void draw_marked(const MemoryBox& box) {
    const std::uint32_t buffer = state_.map.rectangles[box.index].buffer;
    const bool chosen = buffer == workbench_.selection().buffer;
    if (!chosen && box.index != hovered_) return;
    ui_.canvas().outline(
        rect_of(box).inset(-1.0F),
        {.color = chosen ? ui_.theme().accent : ui_.theme().ink, .width = chosen ? 2.5F : 1.0F});
  }

  void draw_gaps() {
    for (std::uint32_t i = 0; i < state_.gaps.size(); ++i) {
      const PlanGap& gap = state_.gaps[i];
      const float top = y_of(static_cast<double>(gap.offset + gap.bytes));
      const float left = x_of(gap.begin);
      const Rect rect{left, top, std::max(1.0F, x_of(gap.end) - left),
                      std::max(1.0F, y_of(static_cast<double>(gap.offset)) - top)};
      const Rect seen = rect.intersected(plane_);
      if (seen.empty()) continue;
      draw_gap(seen, i == state_.chosen_gap, i == hovered_gap_);
      if (!ui_.items().keeps_all()) continue;
      ui_.hit(fmt::format("gap/{}", i), rect,
              {.kind = ItemKind::kMark, .label = text_of_gap(gap), .focusable = false});
    }
  }

  void draw_gap(const Rect& rect, bool is_chosen, bool is_hovered) {
    const Theme& theme = ui_.theme();
    const bool is_thin = rect.width < 4.0F || rect.height < 4.0F;
    if (is_thin) return ui_.canvas().fill(rect, is_chosen ? theme.accent : theme.soft_ink);
    ui_.canvas().fill(rect, with_alpha(theme.soft_ink, is_chosen ? 0.3F : 0.15F));
    ui_.canvas().outline(rect.inset(0.5F),
                         {.color = is_hovered ? theme.ink : theme.soft_ink, .dashed = !is_chosen});
    if (is_chosen) ui_.canvas().outline(rect, {.color = theme.accent, .width = 2.0F});
  }

  void draw_phases() {
    for (const std::uint32_t time : {state_.map.backward_begin, state_.map.update_begin}) {
      const float x = std::round(x_of(time));
      ui_.canvas().line({x, plane_.y}, {x, plane_.bottom()},
                        {.color = ui_.theme().soft_ink, .dashed = true});
    }
  }

  void draw_cursor(const Rect& rect) {
    const float x = std::round(x_of(static_cast<double>(state_.cursor) + 0.5));
    if (x < rect.x || x > rect.right()) return;
    ui_.canvas().line({x, rect.y}, {x, rect.bottom()}, {.color = ui_.theme().accent});
  }

  void draw_axes() {
    const Scope scope(ui_, "axis");
    const float line = ui_.line_height(Face::kSmallNumber);
    const int most = std::max(2, static_cast<int>(plane_.height / 44.0F));
    const std::vector<double> ticks =
        round_byte_counts(state_.range.first_byte, state_.range.last_byte, most);
    const std::vector<std::string> texts = byte_tick_texts(ticks);
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      const float y = y_of(ticks[i]);
      const float top = std::clamp(y - line / 2.0F, plane_.y, plane_.bottom() - line);
      ui_.text({plane_.x - gutter_, top, gutter_ - 6.0F, line}, texts[i],
               {.face = Face::kSmallNumber, .color = ui_.theme().soft_ink, .align = Align::kRight});
    }
    draw_phase_names(ui_, axis_,
                     {x_of(0.0), x_of(state_.map.backward_begin), x_of(state_.map.update_begin),
                      x_of(state_.map.times)});
  }

  Ui& ui_;
  Workbench& workbench_;
  MemoryState& state_;
  const PlanView& plan_;
  Rect plane_ = {};
  Rect curve_ = {};
  Rect axis_ = {};
  float gutter_ = 0.0F;
  std::uint32_t hovered_ = kNoRow;
  std::uint32_t hovered_gap_ = kNoRow;
};

}  // namespace

void draw_hatch(Ui& ui, const Rect& rect, Color ink) {
  if (rect.width < kHatchEvery || rect.height < 3.0F) return;
  const Clip clip(ui, rect);
  for (float x = rect.x - rect.height; x < rect.right(); x += kHatchEvery) {
    ui.canvas().line({x, rect.bottom()}, {x + rect.height, rect.y},
                     {.color = with_alpha(ink, 0.45F)});
  }
}

void draw_memory_plane(Ui& ui, Workbench& workbench, MemoryState& state, const Rect& rect) {
  PlaneDrawer(ui, workbench, state).draw(rect);
}

}  // namespace trainscope::gui
