// What frames of the window take, panels and all, without a screen: workspaces of runs of many
// nodes and events.
//   window_frames_bench
// One JSON line for each workspace and size.
#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "bench/measuring.h"
#include "gui/platform/headless.h"
#include "tests/gui/made_run.h"

namespace trainscope::gui {
namespace {

constexpr int kFrames = 61;

struct Scene {
  const char* name;
  const char* key;      // of its workspace
  const char* command;  // empty: none
};
constexpr Scene kScenes[] = {{"graph", "F1", ""},
                             {"graph, all of it", "F1", "graph.fit"},
                             {"graph, against the model", "F1", "graph.compare_model"},
                             {"memory", "F2", ""},
                             {"timeline", "F3", ""}};

void measure(std::int64_t layers, std::size_t events) {
  ModelArguments arguments = test::kSmallText;
  arguments["layers"] = layers;
  const auto step = test::compiled("gpt2", arguments);
  const std::size_t calls = step->program.calls.size();
  const test::MadeRun made("frames", *step, static_cast<std::uint32_t>(events / (calls + 3) + 1));
  for (const Scene& scene : kScenes) {
    Headless window(Settings{}, {.keeps_items = false});
    const double first_ms = bench::milliseconds([&] {
      window.workbench().open(made.folder());
      window.key(scene.key);
      window.step();
    });
    if (*scene.command != '\0') window.workbench().request(scene.command);
    window.settle();
    bench::Rounds frames;
    for (int i = 0; i < kFrames; ++i) {
      frames.times.push_back(bench::milliseconds([&] { window.step(); }));
    }
    fmt::print(
        "{{\"scene\":\"{}\",\"nodes\":{},\"events\":{},\"first_frames_ms\":{:.0f},"
        "\"median_ms\":{:.2f},\"least_ms\":{:.2f}}}\n",
        scene.name, step->stages.back().nodes, window.workbench().run()->events()->events, first_ms,
        frames.median(), frames.least());
  }
}

}  // namespace
}  // namespace trainscope::gui

int main() {
  trainscope::gui::measure(47, 1'000'000);
  trainscope::gui::measure(190, 4'000'000);
  return 0;
}
