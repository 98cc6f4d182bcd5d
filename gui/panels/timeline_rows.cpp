// The rows of a timeline with their axis: spans by thread, counters by step, and what connects the
// selected call with others.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "engine/core/numbers.h"
#include "engine/plan_classes.h"
#include "gui/panels/timeline_state.h"
#include "gui/ui/controls.h"
#include "gui/views/op_class.h"
#include "gui/views/plan_links.h"
#include "gui/views/ticks.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::gui {
namespace {

using profiler::Event;
using profiler::EventKind;

constexpr float kTimelineClick = 4.0F;  // pixels that a click may move
constexpr float kRowsMargin = 2.0F;     // above the first row

class RowsDrawer {
 public:
  RowsDrawer(Ui& ui, Workbench& workbench, TimelineState& state)
      : ui_(ui), workbench_(workbench), state_(state), plan_(workbench.run()->plan()) {}

  void draw(const Rect& rect) {
    Rect rest = rect;
    const bool roomy = rect.width > 420.0F;
    label_width_ =
        roomy ? std::ceil(ui_.width("667.56 ms to 927.51 ms", Face::kSmallNumber)) + 12.0F : 0.0F;
    // Where there is room for little more than the axis, a row tells more.
    const float axis_height = ui_.line_height(Face::kSmallNumber) + 6.0F;
    Rect axis = take_top(rest, rect.height < 2.5F * axis_height ? 0.0F : axis_height);
    take_left(axis, label_width_);
    row_height_ = row_height_within(rest.height);
    const bool scrolls = content_height() > rest.height;
    Rect scroller = rest;
    const Scrolled scroll =
        scrolls ? scrolled(ui_, "scroll", scroller, content_height()) : Scrolled{.view = rest};
    rest = scroll.view;
    offset_ = scroll.offset;
    labels_ = take_left(rest, label_width_);
    area_ = rest;
    axis.width = area_.width;
    if (area_.width < 20.0F || area_.height < 4.0F) return;
    interact();
    frame_timeline(state_.data, state_.view, area_.width, state_.frame);
    if (!axis.empty()) draw_axis(axis);
    draw_rows();
    draw_counters(ui_, state_,
                  {.labels = labels_,
                   .area = area_,
                   .top = y_of_row(state_.data.rows.size()),
                   .row_height = row_height_,
                   .query = query_of_profile(workbench_)});
  }

 private:
  // A strip, which has room for few rows, shows whole ones.
  float row_height_within(float height) const {
    const float line = std::ceil(ui_.line_height(Face::kSmall));
    const float usual = line + 4.0F;
    const float whole_rows = std::floor((height - kRowsMargin) / (line + 2.0F));
    if (whole_rows < 1.0F || height > 6.0F * usual) return usual;
    return (height - kRowsMargin) / whole_rows;
  }
  float content_height() const {
    return row_height_ * static_cast<float>(state_.data.rows.size()) +
           counters_height(state_, row_height_) + 6.0F;
  }
  double per_ns() const {
    return static_cast<double>(area_.width) / static_cast<double>(std::max<std::int64_t>(
                                                  1, state_.view.end_ns - state_.view.begin_ns));
  }
  float x_of(std::int64_t ns) const {
    return area_.x + static_cast<float>(static_cast<double>(ns - state_.view.begin_ns) * per_ns());
  }
  std::int64_t ns_at(float x) const {
    return state_.view.begin_ns +
           static_cast<std::int64_t>(static_cast<double>(x - area_.x) / per_ns());
  }
  float y_of_row(std::size_t row) const {
    return area_.y - offset_ + kRowsMargin + row_height_ * static_cast<float>(row);
  }
  Rect rect_of(const TimelineBox& box) const {
    return {area_.x + box.x, y_of_row(box.row) + 1.0F, std::max(1.0F, box.width),
            row_height_ - 2.0F};
  }

  void interact() {
    const Response response =
        ui_.hit("rows", area_, {.kind = ItemKind::kArea, .label = "timeline"});
    const Point mouse = ui_.input().mouse;
    if (response.wheel.y != 0.0F) {
      state_.view = zoomed(state_.data, state_.view, std::pow(0.8, response.wheel.y),
                           static_cast<double>((mouse.x - area_.x) / area_.width));
    }
    if (ui_.input().is_pressed(MouseButton::kLeft)) {
      state_.dragged = 0.0F;
      state_.draws_range = ui_.input().shift;
      state_.range_from = ns_at(mouse.x);
    } else if (response.held) {
      drag(response.dragged, mouse);
    }
    const TimelineBox* box = response.hovered ? box_at(mouse) : nullptr;
    if (box != nullptr) ui_.tooltip(response, text_of_box(*box));
    const bool is_click = response.clicked && state_.dragged < kTimelineClick;
    if (is_click || response.right_clicked || response.middle_clicked) {
      click(box, response.double_clicked || response.middle_clicked);
    }
    if (ui_.region_has_keys() || response.focused) take_keys();
  }

  void drag(Point by, Point mouse) {
    state_.dragged += std::abs(by.x) + std::abs(by.y);
    if (state_.dragged < kTimelineClick) return;
    if (state_.draws_range) {
      Selection selection = workbench_.selection();
      const TimeRange& whole = state_.data.whole;
      const std::int64_t to = std::clamp(ns_at(mouse.x), whole.begin_ns, whole.end_ns);
      selection.range = {.begin_ns = std::min(state_.range_from, to),
                         .end_ns = std::max(state_.range_from, to)};
      return workbench_.select(selection);
    }
    state_.view = moved(state_.data, state_.view,
                        -static_cast<std::int64_t>(static_cast<double>(by.x) / per_ns()));
  }

  // Of the frame before: what is seen.
  const TimelineBox* box_at(Point mouse) const {
    for (const TimelineBox& box : state_.frame.boxes) {
      if (box.row < state_.data.rows.size() && rect_of(box).contains(mouse)) return &box;
    }
    return nullptr;
  }

  bool is_of_call(const Event& event, EventKind kind) const {
    return event.kind == kind && plan_ != nullptr && event.id < plan_->calls.size();
  }
  bool is_call(const Event& event) const { return is_of_call(event, EventKind::kCall); }
  bool is_device_work(const Event& event) const {
    return is_of_call(event, EventKind::kDeviceWork);
  }

  void click(const TimelineBox* box, bool twice) {
    if (box == nullptr) return;
    const Event event = state_.data.index.event(box->event);
    if (twice) {
      const std::int64_t margin = static_cast<std::int64_t>(event.value / 4 + 20);
      state_.view = moved(
          state_.data, {.begin_ns = event.begin_ns - margin, .end_ns = event.end_ns() + margin}, 0);
    }
    Selection selection = workbench_.selection();
    const PlanLinks* links = workbench_.links();
    const bool has_call = is_call(event) || is_device_work(event);
    if (has_call && links != nullptr) selection = select_call(*links, selection, event.id);
    const StepSpan* step = step_at(state_.data, event.begin_ns);
    if (step != nullptr) selection.step = step->step;
    if (event.kind == EventKind::kStep) {
      selection.range = {.begin_ns = event.begin_ns, .end_ns = event.end_ns()};
    }
    workbench_.select(selection);
  }

  void take_keys() {
    if (ui_.take("+")) state_.view = zoomed(state_.data, state_.view, 0.7, 0.5);
    if (ui_.take("-")) state_.view = zoomed(state_.data, state_.view, 1.4, 0.5);
    if (ui_.take("Left")) step_call(-1);
    if (ui_.take("Right")) step_call(1);
  }

  // The call before or after the selected one, in the plan.
  void step_call(int by) {
    const PlanLinks* links = workbench_.links();
    if (links == nullptr || plan_ == nullptr || plan_->calls.empty()) return;
    const std::uint32_t call = workbench_.selection().call;
    const auto count = static_cast<std::int64_t>(plan_->calls.size());
    const std::int64_t next =
        call == kNoRow
            ? 0
            : std::clamp<std::int64_t>(static_cast<std::int64_t>(call) + by, 0, count - 1);
    Selection selection =
        select_call(*links, workbench_.selection(), static_cast<std::uint32_t>(next));
    selection.step = shown_step(state_, workbench_);
    workbench_.select(selection);
  }

  void draw_axis(const Rect& axis) {
    const auto origin = static_cast<double>(state_.data.whole.begin_ns);
    const double low = static_cast<double>(state_.view.begin_ns) - origin;
    const double high = static_cast<double>(state_.view.end_ns) - origin;
    const float label = ui_.width("0000.000 ms", Face::kSmallNumber) + 16.0F;
    const std::vector<double> ticks =
        round_numbers(low, high, std::max(2, static_cast<int>(axis.width / label)));
    const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : high - low;
    const Clip clip(ui_, {axis.x, axis.y, axis.width, axis.height + area_.height});
    const Scope scope(ui_, "axis");
    for (const double tick : ticks) {
      const float x = x_of(state_.data.whole.begin_ns + static_cast<std::int64_t>(tick));
      ui_.canvas().line({x, axis.bottom() - 4.0F}, {x, area_.bottom()},
                        {.color = with_alpha(ui_.theme().line, 0.7F)});
      const std::string text = tick_time(tick, step);
      if (x + ui_.width(text, Face::kSmallNumber) + 4.0F > axis.right()) continue;
      ui_.text({x + 3.0F, axis.y, label, axis.height - 2.0F}, text,
               {.face = Face::kSmallNumber, .color = ui_.theme().soft_ink});
    }
  }

  void draw_rows() {
    draw_labels();
    const Clip clip(ui_, area_, Moves::kAll);
    draw_selected_range();
    for (const TimelineBox& box : state_.frame.boxes) draw_box(box);
    draw_flows();
  }

  void draw_labels() {
    if (labels_.width <= 0.0F) return;
    const Clip clip(ui_, labels_, Moves::kUpAndDown);
    std::uint16_t thread = std::numeric_limits<std::uint16_t>::max();
    for (std::size_t i = 0; i < state_.data.rows.size(); ++i) {
      const TimelineRow& row = state_.data.rows[i];
      const bool first = row.thread != thread;
      thread = row.thread;
      Rect rect{labels_.x + 6.0F, y_of_row(i), labels_.width - 10.0F, row_height_};
      if (first) {
        if (i > 0) {
          ui_.canvas().line({labels_.x, rect.y}, {area_.right(), rect.y},
                            {.color = ui_.theme().line});
        }
      }
      const std::string name = row.lane == 0 ? std::string(name_of(row.level))
                                             : fmt::format("{} +{}", name_of(row.level), row.lane);
      if (first) {
        Rect before = rect;
        take_right(before, std::ceil(ui_.width(name, Face::kSmall)) + 6.0F);
        ui_.text(before, name_of_thread(row.thread), {.face = Face::kSmall, .fit = Fit::kMiddle});
      }
      ui_.text(rect, name,
               {.face = Face::kSmall, .color = ui_.theme().soft_ink, .align = Align::kRight});
    }
  }

  // Of a device's stream the name that it has.
  std::string name_of_thread(std::uint16_t thread) const {
    const bool has_name = thread < state_.threads.size() && !state_.threads[thread].empty();
    return has_name ? state_.threads[thread] : fmt::format("thread {}", thread);
  }

  Color color_of(const Event& event) const {
    const Theme& theme = ui_.theme();
    if (is_call(event)) {
      const PlanCall& call = plan_->calls[event.id];
      const std::size_t place = legend_place(class_of(*plan_, call));
      return place < kSeriesColors ? theme.series[place]
                                   : mixed(theme.control, theme.soft_ink, 0.35F);
    }
    switch (event.kind) {
      case EventKind::kStep:
        return theme.header;
      case EventKind::kStepPart:
        return event.id == 1 ? theme.phases[2] : theme.phases[0];
      case EventKind::kBatchWait:
      case EventKind::kJoin:
      case EventKind::kIdle:
        return theme.hovered;
      case EventKind::kWork:
      case EventKind::kDeviceWork:
        return theme.series[5];
      default:
        return theme.series[2];
    }
  }

  void draw_box(const TimelineBox& box) {
    const Rect rect = rect_of(box);
    if (!ui_.canvas().visible(rect)) return;
    const Event event = state_.data.index.event(box.event);
    Color color = color_of(event);
    if (box.count > 1) color = mixed(ui_.theme().control, color, 0.45F);
    const Rect drawn =
        rect.width > 3.0F ? Rect{rect.x, rect.y, rect.width - 1.0F, rect.height} : rect;
    const Surface surface(ui_, drawn, color, rect.width > 8.0F ? 2.0F : 0.0F);
    const bool chosen = is_call(event) && event.id == workbench_.selection().call && box.count == 1;
    if (chosen) {
      ui_.canvas().outline(rect.inset(-1.0F), {.color = ui_.theme().accent, .width = 2.0F}, 2.0F);
    }
    if (rect.width > 34.0F) {
      const float from = std::max(rect.x, area_.x);
      const float to = std::min(rect.right(), area_.right());
      const Rect place{from + 4.0F, rect.y, to - from - 8.0F, rect.height};
      ui_.text(place, name_within(place.width, box, event),
               {.face = Face::kSmall, .color = ink_on(color), .fit = Fit::kEnd});
    }
    if (ui_.items().keeps_all()) {
      ui_.hit(fmt::format("span/{}", box.event), rect,
              {.kind = ItemKind::kMark, .label = name_of_box(box, event), .focusable = false});
    }
  }

  std::string name_of_box(const TimelineBox& box, const Event& event) const {
    if (box.count > 1) return fmt::format("{} spans", box.count);
    if (is_call(event)) {
      const PlanCall& call = plan_->calls[event.id];
      const std::string_view op = plan_->op_of(call);
      return fmt::format("{} {}", op.empty() ? name_of(call.kind) : op, plan_->name_of(call));
    }
    if (is_device_work(event)) {
      return std::string(profiler::kernel_of(*plan_, plan_->calls[event.id]));
    }
    if (event.kind == EventKind::kStep) return fmt::format("step {}", event.id);
    if (event.kind == EventKind::kStepPart) return event.id == 1 ? "update" : "micro-step";
    return std::string(profiler::name_of(event.kind));
  }

  // Where there is no room for all of it: of a call its op, and no part of a count, which would be
  // another one.
  std::string name_within(float width, const TimelineBox& box, const Event& event) const {
    std::string name = name_of_box(box, event);
    if (ui_.width(name, Face::kSmall) <= width) return name;
    return box.count > 1 ? std::string() : name.substr(0, name.find(' '));
  }

  std::string text_of_box(const TimelineBox& box) const {
    const Event event = state_.data.index.event(box.event);
    if (box.count > 1) {
      return fmt::format("{} spans of less than two pixels; the longest: {}, {}", box.count,
                         name_of_box({.event = box.event}, event),
                         text_of({static_cast<double>(event.value), Unit::kNanoseconds}).whole());
    }
    std::string text =
        fmt::format("{}: {}", name_of_box(box, event),
                    text_of({static_cast<double>(event.value), Unit::kNanoseconds}).whole());
    if (!is_call(event) && !is_device_work(event)) return text;
    const PlanCall& call = plan_->calls[event.id];
    return text + fmt::format(", call {}, {}, kernel {}, node {}", event.id, name_of(call.phase),
                              profiler::kernel_of(*plan_, call),
                              profiler::onnx_node_of(*plan_, call));
  }

  void draw_selected_range() {
    const TimeRange range = workbench_.selection().range;
    if (range.empty()) return;
    const float from = std::max(area_.x, x_of(range.begin_ns));
    const float to = std::min(area_.right(), x_of(range.end_ns));
    if (to <= from) return;
    ui_.canvas().fill({from, area_.y, to - from, area_.height},
                      with_alpha(ui_.theme().accent, 0.13F));
    for (const float x : {from, to}) {
      ui_.canvas().line({x, area_.y}, {x, area_.bottom()}, {.color = ui_.theme().accent});
    }
  }

  Point end_of(const SpanPlace& place, bool at_end) const {
    const Event event = state_.data.index.event(state_.data.rows[place.row].events[place.at]);
    return {x_of(at_end ? event.end_ns() : event.begin_ns),
            y_of_row(place.row) + row_height_ / 2.0F};
  }

  // Curves from what the selected call reads to it, and from it to its readers.
  void draw_flows() {
    for (const Flow& flow : state_.flows) {
      const Point from = end_of(flow.from, true);
      const Point to = end_of(flow.to, false);
      if (std::max(from.x, to.x) < area_.x || std::min(from.x, to.x) > area_.right()) continue;
      const float drop = row_height_ * 0.9F;
      const std::array<Point, 4> points = {from, from + Point{0.0F, drop}, to + Point{0.0F, drop},
                                           to};
      ui_.canvas().bezier(points, {.color = ui_.theme().accent, .width = 1.5F});
      ui_.canvas().circle(to, 2.5F, ui_.theme().accent);
    }
  }

  Ui& ui_;
  Workbench& workbench_;
  TimelineState& state_;
  const PlanView* plan_;
  float row_height_ = 18.0F;
  float label_width_ = 0.0F;
  float offset_ = 0.0F;
  Rect labels_ = {};
  Rect area_ = {};
};

}  // namespace

void draw_timeline_rows(Ui& ui, Workbench& workbench, TimelineState& state, const Rect& rect) {
  const Surface surface(ui, rect, ui.theme().inset);
  RowsDrawer(ui, workbench, state).draw(rect);
}

}  // namespace trainscope::gui
