// What frames of the window take, panels and all, without a screen: workspaces of runs of many
// nodes and events.
//   window_frames_bench
// One JSON line for each workspace and size. With a folder, such a run is put there instead:
//   window_frames_bench FOLDER EVENTS
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/measuring.h"
#include "gui/platform/headless.h"
#include "tests/gui/made_run.h"

namespace trainscope::gui {
namespace {

constexpr int kFrames = 61;

// Opens a second run, the active one being the first.
enum class Runs { kOne, kTwo };

struct Scene {
  const char* name;
  const char* key;  // of its workspace
  std::vector<std::string> commands = {};
  Runs runs = Runs::kOne;
};
const Scene kScenes[] = {
    {"graph", "F1"},
    {"graph, all of it", "F1", {"graph.fit"}},
    {"graph, against the model", "F1", {"graph.compare_model"}},
    {"stages", "F1", {"panel stages"}},
    {"inspector", "F1", {"select call:100"}},
    {"memory", "F2"},
    {"memory, gaps", "F2", {"memory.gaps"}},
    {"timeline", "F3"},
    {"kernels", "F4"},
    {"kernels, two runs", "F4", {"kernels.beside"}, Runs::kTwo},
    {"roofline", "F4", {"panel roofline"}},
    {"roofline, two runs", "F4", {"panel roofline", "kernels.beside"}, Runs::kTwo},
    {"overview", "F5"},
    {"runs", "F5", {"panel runs"}, Runs::kTwo}};

constexpr std::int64_t kManyLayers = 190;

std::unique_ptr<Compiled> step_of(std::int64_t layers) {
  ModelArguments arguments = test::kSmallText;
  arguments["layers"] = layers;
  return test::compiled("gpt2", arguments);
}

test::MadeRun run_of(const Compiled& step, std::size_t events) {
  const std::size_t calls = step.program.calls.size();
  return test::MadeRun("frames", step, static_cast<std::uint32_t>(events / (calls + 3) + 1));
}

void measure(std::int64_t layers, std::size_t events) {
  const auto step = step_of(layers);
  const test::MadeRun made = run_of(*step, events);
  for (const Scene& scene : kScenes) {
    Headless window(Settings{}, {.keeps_items = false});
    const double first_ms = bench::milliseconds([&] {
      window.workbench().open(made.folder());
      if (scene.runs == Runs::kTwo) {
        window.workbench().open(made.folder());
        window.workbench().activate(0);
      }
      window.key(scene.key);
      window.step();
    });
    for (const std::string& command : scene.commands) window.workbench().request(command);
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

int main(int count, char** words) {
  using namespace trainscope::gui;
  if (count == 3) {
    const auto step = step_of(kManyLayers);
    const auto made = run_of(*step, std::strtoull(words[2], nullptr, 10));
    std::filesystem::copy(made.folder(), words[1], std::filesystem::copy_options::recursive);
    return 0;
  }
  measure(47, 1'000'000);
  measure(kManyLayers, 4'000'000);
  return 0;
}
