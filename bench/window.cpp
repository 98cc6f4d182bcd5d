// What the window's views take: layouts of large graphs, how far they stay the same from stage to
// stage, and the geometry of a frame of graph, memory and timeline together, of many nodes and
// events.
//   window_bench [--quick]
// One JSON line for each size. --quick: of a small one, to see that all of it runs.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measuring.h"
#include "gui/views/graph/graph_frame.h"
#include "gui/views/memory_map.h"
#include "gui/views/timeline_frame.h"
#include "tests/gui/made_run.h"
#include "tests/gui/views/graph/layout_stability.h"

namespace trainscope::gui {
namespace {

constexpr int kRounds = 31;
constexpr int kStageRounds = 7;                               // of the layouts of all stages
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

// Layouts of one stage after the other, as somebody sees them who goes through all.
struct StageLayouts {
  std::size_t nodes = 0;  // of the largest stage
  double first_ms = 0.0;
  double next_ms = 0.0;  // of the slowest that follows another one
  // Of the nodes that are in two stages that follow each other, as test::LayoutStability counts
  // them: the least share over all stages.
  double in_order = 1.0;
  double near_rows = 1.0;
};

void add_stability(StageLayouts& all, const test::LayoutStability& stability) {
  if (stability.survivors == 0) return;
  const auto survivors = static_cast<double>(stability.survivors);
  all.in_order = std::min(all.in_order, static_cast<double>(stability.in_order) / survivors);
  all.near_rows = std::min(all.near_rows, static_cast<double>(stability.near_rows) / survivors);
}

StageLayouts layouts_of(const std::vector<GraphPicture>& stages) {
  StageLayouts all;
  std::vector<bench::Rounds> times(stages.size());
  for (int round = 0; round < kStageRounds; ++round) {
    LayoutMemory memory;
    GraphLayout before;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      GraphLayout layout;
      times[i].times.push_back(
          bench::milliseconds([&] { layout = layout_graph(stages[i], memory); }));
      const bool counts = round == 0 && i > 0;  // every round lays out the same
      if (counts) add_stability(all, test::stability_of(stages[i - 1], before, stages[i], layout));
      before = std::move(layout);
    }
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    all.nodes = std::max(all.nodes, stages[i].nodes.size());
    double& slowest = i == 0 ? all.first_ms : all.next_ms;
    slowest = std::max(slowest, times[i].median());
  }
  return all;
}

// Of a step with all stages that there are: the last one rematerializes by ONNX Runtime's second
// level.
StageLayouts stage_layouts(const ModelArguments& arguments) {
  const OnnxModel model = test::model_of("gpt2", arguments);
  CompileOptions options = test::options_for(model);
  options.recompute.mode = RecomputeMode::kLevel2;
  const auto step = compile(model, options);
  std::vector<GraphPicture> pictures;
  for (const Stage& stage : step->stages) pictures.push_back(picture_of(stage.graph));
  return layouts_of(pictures);
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
  const StageLayouts stages = stage_layouts(arguments);
  fmt::print(
      "{{\"nodes\":{},\"edges\":{},\"buffers\":{},\"events\":{},\"picture_ms\":{:.2f},"
      "\"layout_ms\":{:.2f},\"open_events_ms\":{:.1f},\"rows_ms\":{:.1f},\"frame_whole_ms\":{:.3f},"
      "\"frame_near_ms\":{:.3f},\"boxes_whole\":{},\"boxes_near\":{},\"most_nodes\":{},"
      "\"layout_first_ms\":{:.2f},\"layout_next_ms\":{:.2f},\"in_order\":{:.4f},"
      "\"near_rows\":{:.4f}}}\n",
      picture->nodes.size(), picture->edges.size(), plan.buffers.size(), timeline.index.size(),
      picture_ms, layout_ms, open_ms, rows_ms, whole_ms, near_ms, whole_boxes,
      frames.timeline.boxes.size(), stages.nodes, stages.first_ms, stages.next_ms, stages.in_order,
      stages.near_rows);
}

}  // namespace
}  // namespace trainscope::gui

int main(int count, char** words) {
  using trainscope::gui::measure;
  if (count == 2 && std::string_view(words[1]) == "--quick") {
    measure(3, 10'000);
    return 0;
  }
  measure(48, 1'000'000);
  measure(191, 4'000'000);
  return 0;
}
