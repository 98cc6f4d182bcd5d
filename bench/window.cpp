// What the window's views take: layouts of large graphs, and the geometry of a frame of graph,
// memory and timeline together, of many nodes and events.
//   window_bench
// One JSON line for each size.
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/measuring.h"
#include "gui/views/graph/graph_frame.h"
#include "gui/views/memory_map.h"
#include "gui/views/timeline_frame.h"
#include "tests/gui/made_run.h"

namespace trainscope::gui {
namespace {

constexpr int kRounds = 31;
constexpr ViewSize kView{.width = 940.0f, .height = 582.0f};  // the main region at 1280x720

// A file of events in memory.
class EventBytes {
 public:
  EventBytes(std::size_t calls, std::size_t events) {
    const auto steps = static_cast<std::uint32_t>(events / (calls + 3) + 1);
    profiler::EventWriter writer({.threads = 1},
                                 [this](std::span<const std::byte> bytes) { put(bytes); });
    const std::vector<profiler::Event> made = test::steps_of(calls, steps);
    constexpr std::size_t kPiece = 4096;
    for (std::size_t i = 0; i < made.size(); i += kPiece) {
      writer.add(std::span(made).subspan(i, std::min(kPiece, made.size() - i)), 0);
    }
  }
  std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(words_.data()), size_};
  }

 private:
  void put(std::span<const std::byte> more) {
    words_.resize((size_ + more.size() + 7) / 8);
    std::memcpy(reinterpret_cast<std::byte*>(words_.data()) + size_, more.data(), more.size());
    size_ += more.size();
  }
  std::vector<std::uint64_t> words_;
  std::size_t size_ = 0;
};

double median_of(const std::function<void()>& work) {
  bench::Rounds rounds;
  for (int round = 0; round < kRounds; ++round) rounds.times.push_back(bench::milliseconds(work));
  return rounds.median();
}

struct Frames {
  GraphFrame graph;
  MemoryFrame memory;
  TimelineFrame timeline;
};

// The graph near one of its nodes or whole, memory and timeline whole or a part of them.
struct Scene {
  GraphCamera camera;
  MemoryRange memory;
  TimeRange time;
};

void measure(std::int64_t layers, std::size_t events) {
  ModelArguments arguments = test::kSmallText;
  arguments["layers"] = layers;
  const auto step = test::compiled("gpt2", arguments);
  const PlanRecord record = plan_record(*step);
  const PlanView plan = view_of(record);
  std::optional<GraphPicture> picture;
  const double picture_ms = median_of([&] { picture = picture_of(step->stages.back().graph); });
  GraphLayout layout;
  const double layout_ms = median_of([&] {
    LayoutMemory memory;
    layout = layout_graph(*picture, memory);
  });
  const MemoryMap memory = memory_map(plan);
  const EventBytes bytes(plan.calls.size(), events);
  const double open_ms = bench::milliseconds([&] { profiler::read_events(bytes.bytes()); });
  const profiler::EventView view = profiler::read_events(bytes.bytes()).view;
  TimelineData timeline;
  const double rows_ms = bench::milliseconds([&] { timeline = timeline_data(view); });
  Frames frames;
  const auto frame_ms = [&](const Scene& scene) {
    return median_of([&] {
      frame_graph(*picture, layout, scene.camera, kView, 0, frames.graph);
      frame_memory(memory, scene.memory, kView.width, kView.height, frames.memory);
      frame_timeline(timeline, scene.time, kView.width, frames.timeline);
    });
  };
  const Scene whole{
      .camera = fit_camera(layout, kView), .memory = whole_range(memory), .time = timeline.whole};
  const auto middle = static_cast<std::uint32_t>(layout.nodes.size() / 2);
  const Scene near{.camera = camera_at(layout, middle, kView, 0.6f),
                   .memory = zoomed(memory, whole.memory, 0.1, 0.5, 0.5),
                   .time = zoomed(timeline, whole.time, 1e-3, 0.5)};
  const double whole_ms = frame_ms(whole);
  const std::size_t whole_boxes = frames.timeline.boxes.size();
  const double near_ms = frame_ms(near);
  fmt::print(
      "{{\"nodes\":{},\"edges\":{},\"buffers\":{},\"events\":{},\"picture_ms\":{:.2f},"
      "\"layout_ms\":{:.2f},\"open_events_ms\":{:.1f},\"rows_ms\":{:.1f},\"frame_whole_ms\":{:.3f},"
      "\"frame_near_ms\":{:.3f},\"boxes_whole\":{},\"boxes_near\":{}}}\n",
      picture->nodes.size(), picture->edges.size(), plan.buffers.size(), timeline.index.size(),
      picture_ms, layout_ms, open_ms, rows_ms, whole_ms, near_ms, whole_boxes,
      frames.timeline.boxes.size());
}

}  // namespace
}  // namespace trainscope::gui

int main() {
  trainscope::gui::measure(47, 1'000'000);
  trainscope::gui::measure(190, 4'000'000);
  return 0;
}
