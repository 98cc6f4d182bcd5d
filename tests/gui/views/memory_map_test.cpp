// The memory map of a compiled step against its plan, and what views of it show.
#include "gui/views/memory_map.h"

#include <doctest/doctest.h>

#include "tests/gui/views/views_models.h"

namespace trainscope::gui {
namespace {

using test::compiled;
using test::kSmallText;

struct Mapped {
  PlanRecord record;
  PlanView plan;
  MemoryMap map;

  explicit Mapped(const Compiled& step)
      : record(plan_record(step)), plan(view_of(record)), map(memory_map(plan)) {}
};

TEST_CASE("memory_map: every placed buffer is a rectangle, and their heights are the live bytes") {
  const auto step = compiled("gpt2", kSmallText);
  const Mapped mapped(*step);
  const MemoryMap& map = mapped.map;
  CHECK(map.arena_bytes == mapped.plan.arena().bytes);
  CHECK(map.bound_bytes <= map.arena_bytes);
  CHECK(map.peak_bytes <= map.arena_bytes);
  std::vector<std::int64_t> live(map.times, 0);
  for (const MemoryRectangle& rectangle : map.rectangles) {
    const PlanBuffer& buffer = mapped.plan.buffers[rectangle.buffer];
    CHECK(rectangle.offset == buffer.offset);
    CHECK(rectangle.bytes == buffer.bytes);
    CHECK(rectangle.offset + rectangle.bytes <= map.arena_bytes);
    for (std::uint32_t time = rectangle.begin; time < rectangle.end; ++time) {
      live[time] += rectangle.bytes;
    }
  }
  CHECK(live == map.live);
  CHECK(map.backward_begin > 0);
  CHECK(map.backward_begin < map.update_begin);
  CHECK(map.update_begin < map.times);
}

TEST_CASE("memory_map: holders are those alive, the largest first, and add up to the live bytes") {
  const auto step = compiled("bert", kSmallText);
  const Mapped mapped(*step);
  const std::vector<std::uint32_t> holders = holders_at(mapped.plan, mapped.map.peak_time);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    sum += mapped.plan.buffers[holders[i]].bytes;
    if (i > 0) {
      CHECK(mapped.plan.buffers[holders[i]].bytes <= mapped.plan.buffers[holders[i - 1]].bytes);
    }
  }
  CHECK(sum == mapped.map.peak_bytes);
  std::int64_t by_class = 0;
  for (const std::int64_t bytes : bytes_by_class(mapped.plan, holders)) by_class += bytes;
  CHECK(by_class == sum);
}

TEST_CASE("memory_map: what recompute runs again is marked") {
  const OnnxModel model = test::model_of("gpt2", kSmallText);
  CompileOptions options = test::options_for(model);
  const auto plain = compile(model, options);
  options.recompute.mode = RecomputeMode::kLevel1;
  const auto step = compile(model, options);
  REQUIRE(step->recompute);
  REQUIRE(step->recompute->repeats > 0);
  std::size_t marked = 0;
  const Mapped again(*step);
  for (const MemoryRectangle& rectangle : again.map.rectangles) marked += rectangle.recomputed;
  CHECK(marked > 0);
  const Mapped once(*plain);
  for (const MemoryRectangle& rectangle : once.map.rectangles) CHECK(!rectangle.recomputed);
}

MemoryMap map_of(std::vector<MemoryRectangle> rectangles, std::uint32_t times, std::int64_t arena) {
  MemoryMap map{.rectangles = std::move(rectangles), .times = times, .arena_bytes = arena};
  map.live.assign(times, 0);
  for (const MemoryRectangle& rectangle : map.rectangles) {
    for (std::uint32_t t = rectangle.begin; t < rectangle.end; ++t) map.live[t] += rectangle.bytes;
  }
  return map;
}

TEST_CASE("memory_map: boxes are in proportion, the offset upwards") {
  const MemoryMap map = map_of({{.buffer = 7, .begin = 10, .end = 20, .offset = 0, .bytes = 500},
                                {.buffer = 8, .begin = 20, .end = 40, .offset = 500, .bytes = 250}},
                               100, 1000);
  MemoryFrame frame;
  frame_memory(map, whole_range(map), 200.0f, 100.0f, frame);
  REQUIRE(frame.boxes.size() == 2);
  CHECK(frame.boxes[0].x == doctest::Approx(20.0));
  CHECK(frame.boxes[0].width == doctest::Approx(20.0));
  CHECK(frame.boxes[0].y == doctest::Approx(50.0));
  CHECK(frame.boxes[0].height == doctest::Approx(50.0));
  CHECK(frame.boxes[1].y == doctest::Approx(25.0));
  CHECK(frame.live[21] == 500);
  CHECK(frame.live[60] == 250);
  CHECK(rectangle_at(map, 15.0, 100.0) == 0);
  CHECK(rectangle_at(map, 25.0, 600.0) == 1);
  CHECK(rectangle_at(map, 25.0, 100.0) == kNoRow);
}

TEST_CASE("memory_map: boxes below a pixel are drawn once a pixel") {
  std::vector<MemoryRectangle> rectangles;
  for (std::uint32_t i = 0; i < 10000; ++i) {
    rectangles.push_back({.buffer = i, .begin = i, .end = i + 1, .offset = i % 3, .bytes = 1});
  }
  const MemoryMap map = map_of(std::move(rectangles), 10000, 1000);
  MemoryFrame frame;
  frame_memory(map, whole_range(map), 100.0f, 100.0f, frame);
  CHECK(frame.boxes.size() <= 200);
  CHECK(frame.boxes.size() + frame.merged == 10000);
}

TEST_CASE("memory_map: zooming keeps the place under the mouse and stays within the map") {
  const MemoryMap map = map_of({}, 1000, 1 << 20);
  const MemoryRange whole = whole_range(map);
  const MemoryRange half = zoomed(map, whole, 0.5, 0.25, 0.5);
  CHECK(half.last_time - half.first_time == doctest::Approx(500.0));
  CHECK(half.first_time + 0.25 * 500.0 == doctest::Approx(250.0));
  CHECK(zoomed(map, half, 100.0, 0.5, 0.5) == whole);
  const MemoryRange right = moved(map, half, 1e9, 0.0);
  CHECK(right.last_time == doctest::Approx(1000.0));
}

}  // namespace
}  // namespace trainscope::gui
