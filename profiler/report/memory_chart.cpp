// Buffers in the memory-time plane.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/core/byte_count.h"
#include "engine/core/numbers.h"
#include "profiler/report/charts.h"
#include "profiler/report/html.h"
#include "profiler/report/svg.h"

namespace trainscope::profiler {
namespace {

constexpr double kHeight = 420.0;

std::string bytes_tick(double bytes) {
  return bytes_text(static_cast<std::int64_t>(std::max(0.0, bytes)));
}

std::string time_tick(double time) { return fmt::format("{:.0f}", time); }

double area_of(const PlanBuffer& buffer) {
  return static_cast<double>(buffer.end - buffer.begin) * static_cast<double>(buffer.bytes);
}

// Those of the arena that take up room, the largest areas first, but no more than are drawn.
std::vector<const PlanBuffer*> drawn_buffers(const PlanView& plan, std::size_t& all) {
  std::vector<const PlanBuffer*> buffers;
  for (const PlanBuffer& buffer : plan.buffers) {
    const bool placed = buffer.space == PlanSpaceKind::kDevice && buffer.external == 0;
    if (placed && buffer.bytes > 0 && buffer.end > buffer.begin) buffers.push_back(&buffer);
  }
  all = buffers.size();
  std::ranges::stable_sort(
      buffers, [](const PlanBuffer* a, const PlanBuffer* b) { return area_of(*a) > area_of(*b); });
  if (buffers.size() > kMostDrawnBuffers) buffers.resize(kMostDrawnBuffers);
  return buffers;
}

std::string rectangle(const PlanView& plan, const PlanBuffer& buffer, const Plane& plane) {
  const double left = plane.x(buffer.begin);
  const double right = plane.x(buffer.end);
  const double top = plane.y(static_cast<double>(buffer.offset + buffer.bytes));
  const double bottom = plane.y(static_cast<double>(buffer.offset));
  const std::string title = fmt::format("{}: {}, {} at {}, calls {} to {}", plan.text(buffer.label),
                                        name_of(buffer.holds), bytes_text(buffer.bytes),
                                        buffer.offset, buffer.begin, buffer.end);
  return fmt::format(
      "<rect class=\"c{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">"
      "<title>{}</title></rect>\n",
      static_cast<int>(buffer.holds), left, top, std::max(0.4, right - left),
      std::max(0.4, bottom - top), escaped(title));
}

std::string class_legend(const std::vector<const PlanBuffer*>& buffers) {
  std::array<bool, 9> used = {};
  for (const PlanBuffer* buffer : buffers) used[static_cast<std::size_t>(buffer->holds)] = true;
  std::string text;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    text += element("span", {{"class", fmt::format("key c{}", i)}}, "") +
            std::string(name_of(static_cast<BufferClass>(i))) + " ";
  }
  return element("p", {{"class", "legend"}}, text);
}

}  // namespace

std::string memory_chart(const PlanView& plan) {
  const auto arena = static_cast<double>(plan.arena().bytes);
  const auto times = static_cast<double>(plan.facts().times);
  if (arena <= 0.0 || times <= 0.0) return {};
  std::size_t all = 0;
  const std::vector<const PlanBuffer*> buffers = drawn_buffers(plan, all);
  const Plane plane({.low = 0.0, .high = times}, {.low = 0.0, .high = arena}, kHeight);
  std::string svg = plane.axes({.x_label = "time: the calls of a step, in order",
                                .y_label = "offset in the arena",
                                .x_text = time_tick,
                                .y_text = bytes_tick},
                               round_numbers(0.0, times, 6), round_byte_counts(0.0, arena, 6));
  for (const PlanBuffer* buffer : buffers) svg += rectangle(plan, *buffer, plane);
  const double update = plan.facts().update_begin;
  svg += fmt::format(
      "<path class=\"mark\" d=\"M{:.1f} {:.1f}V{:.1f}\"><title>the update begins"
      "</title></path>\n",
      plane.x(update), plane.y(arena), plane.y(0.0));
  std::string text = plane.svg("buffers in the memory-time plane", svg) + class_legend(buffers);
  if (all > buffers.size()) {
    text += element("p", {},
                    fmt::format("The {} largest of {} buffers are drawn.", buffers.size(), all));
  }
  return figure("Memory-time plane: every buffer of the arena", text);
}

}  // namespace trainscope::profiler
