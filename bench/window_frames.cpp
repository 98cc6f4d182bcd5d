// What frames of the window take, panels and all, without a screen: the panels of runs of many
// nodes and events, at rest and while somebody uses them, with an input before each frame.
//   window_frames_bench [--quick]
// One JSON line for each panel, size and kind of input: the frame in the middle, the one that 95 of
// 100 are no slower than, the slowest. Each panel is gone through in three windows, which get the
// same input; what a frame took is the median of the three. As in a real window, what selections
// ask for is read on threads behind the first frame; each scene but one waits for that. --quick:
// one window, few frames of few nodes, to see that all of it runs. With a folder, such a run is put
// there instead:
//   window_frames_bench FOLDER EVENTS
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bench/measuring.h"
#include "engine/core/error.h"
#include "gui/app/commands.h"
#include "gui/platform/headless.h"
#include "gui/platform/process_memory.h"
#include "tests/gui/made_run.h"

namespace trainscope::gui {
namespace {

// Opens a second run, the active one being the first.
enum class Runs { kOne, kTwo };
// Whether a key only changes what is drawn, or the frame first reads or computes it: a stage, rows
// of a filter, sums of a range, a panel that was not shown yet, another run.
enum class Work { kDraws, kReads };

struct Scene {
  const char* name;
  const char* key;  // of its workspace
  std::vector<std::string> commands = {};
  const char* area = nullptr;          // that the mouse goes over, and drags
  const char* clicked = nullptr;       // before the keys: it has the focus
  std::vector<const char*> keys = {};  // pressed in turn, one before each frame
  Runs runs = Runs::kOne;
  Work work = Work::kDraws;
  bool at_once = false;                  // nobody waits for what is read ahead
  std::chrono::milliseconds pause = {};  // between frames, for what threads have to say
};

const Scene kScenes[] = {
    {.name = "graph",
     .key = "F1",
     .area = "main/graph/canvas",
     .keys = {"Down", "Right", "+", "Down", "Left", "-", "Up"}},
    {.name = "graph, all of it",
     .key = "F1",
     .commands = {"graph.fit"},
     .area = "main/graph/canvas",
     .keys = {"+", "+", "-"}},
    {.name = "graph, against the model",
     .key = "F1",
     .commands = {"graph.compare_model"},
     .area = "main/graph/canvas",
     .keys = {"Down", "+", "Right", "-"}},
    {.name = "graph, as soon as it is there",
     .key = "F1",
     .keys = {"Down", "Right", "Down", "Left", "Up"},
     .at_once = true},
    {.name = "graph, stage by stage",
     .key = "F1",
     .keys = {"[", "[", "]"},
     .work = Work::kReads,
     .pause = std::chrono::milliseconds(50)},
    {.name = "stages", .key = "F1", .commands = {"panel stages"}, .keys = {"Up", "Up", "Down"}},
    {.name = "near misses",
     .key = "F1",
     .commands = {"panel stages", "stages.near_misses"},
     .keys = {"Down"}},
    {.name = "inspector",
     .key = "F5",
     .commands = {"select call:100", "select call:20", "select call:60"},
     .keys = {"Alt+Left", "Alt+Left", "Alt+Right", "Alt+Right"}},
    {.name = "memory",
     .key = "F2",
     .area = "main/memory/plane",
     .keys = {"Right", "+", "Left", "Right", "-", "Right", "+"}},
    {.name = "memory, near a buffer",
     .key = "F2",
     .commands = {"select buffer:20", "memory.to_buffer"},
     .area = "main/memory/plane",
     .keys = {"Right", "-", "Left", "+"}},
    {.name = "memory, gaps",
     .key = "F2",
     .commands = {"memory.gaps"},
     .keys = {"Right", "Right", "Left"}},
    {.name = "budget",
     .key = "F2",
     .commands = {"panel budget", "budget.1"},
     .area = "main/budget/slider",
     .clicked = "main/budget/slider",
     .keys = {"Left", "Left", "Right"},
     .pause = std::chrono::milliseconds(16)},
    {.name = "timeline",
     .key = "F3",
     .area = "main/timeline/rows",
     .keys = {"w", "d", "w", "a", "s"}},
    {.name = "timeline, near",
     .key = "F3",
     .commands = {"timeline.nearer", "timeline.nearer", "timeline.nearer", "timeline.nearer"},
     .area = "main/timeline/rows",
     .keys = {"Right", "d", "Right", "w", "a", "s"}},
    {.name = "timeline, ranges", .key = "F3", .keys = {"w", "r", "d", "r"}, .work = Work::kReads},
    {.name = "kernels", .key = "F4", .keys = {"Down"}},
    {.name = "kernels, a filter typed",
     .key = "F4",
     .clicked = "main/kernels/filter",
     .keys = {"m", "s", ">", "0", ".", "1", "Backspace", "Backspace", "Backspace", "Backspace",
              "Backspace", "Backspace"},
     .work = Work::kReads},
    {.name = "kernels, two runs",
     .key = "F4",
     .commands = {"kernels.beside"},
     .keys = {"Down"},
     .runs = Runs::kTwo},
    {.name = "roofline",
     .key = "F4",
     .commands = {"panel roofline"},
     .area = "main/roofline/plot",
     .keys = {"Down"}},
    {.name = "roofline, two runs",
     .key = "F4",
     .commands = {"panel roofline", "kernels.beside"},
     .keys = {"Down"},
     .runs = Runs::kTwo},
    {.name = "overview", .key = "F5"},
    {.name = "runs",
     .key = "F5",
     .commands = {"panel runs"},
     .keys = {"Down"},  // goes to the other run
     .runs = Runs::kTwo,
     .work = Work::kReads},
    {.name = "panels, one after the other",
     .key = "F5",
     .keys = {"F1", "F2", "F3", "F4", "F5"},
     .work = Work::kReads},
    {.name = "palette",
     .key = "F1",
     .commands = {"go.palette"},
     .keys = {"m", "a", "t", "m", "u", "l", "Backspace", "Backspace", "Backspace", "Backspace",
              "Backspace", "Backspace"}}};

enum class Inputs : std::uint8_t { kNone, kHover, kDrag, kKeys };
constexpr std::array kInputs = {Inputs::kNone, Inputs::kHover, Inputs::kDrag, Inputs::kKeys};
constexpr std::array<std::string_view, kInputs.size()> kInputNames = {"none", "hover", "drag",
                                                                      "keys"};

bool has(const Scene& scene, Inputs inputs) {
  if (inputs == Inputs::kNone) return true;
  return inputs == Inputs::kKeys ? !scene.keys.empty() : scene.area != nullptr;
}

// How much is measured.
struct Effort {
  int windows = 3;
  int frames = 61;  // of each kind of input
};

// What a scene took in one window.
struct Times {
  double first_ms = 0.0;     // the run opened, and its first frame
  double commands_ms = 0.0;  // the scene's commands, with a frame after each
  std::array<std::vector<double>, kInputs.size()> frames_ms = {};
};

// A window that shows a scene, and somebody who uses it.
class Visit {
 public:
  Visit(const Scene& scene, const test::MadeRun& made)
      : scene_(scene), window_(Settings{}, {.keeps_items = false}) {
    times_.first_ms = bench::milliseconds([&] { open(made); });
    for (const std::string& command : scene.commands) {
      times_.commands_ms += bench::milliseconds([&] {
        const bool has_run = run_command(window_.workbench(), command);
        require(has_run, ErrorCode::kUsage, "{}: {}", command, window_.workbench().notice.text);
        window_.frame();
      });
    }
    if (!scene.at_once) settle();
  }

  Times times(int frames) {
    constexpr int kMostReads = 19;  // each takes long
    for (const Inputs inputs : kInputs) {
      if (!has(scene_, inputs)) continue;
      const bool reads = scene_.work == Work::kReads && inputs == Inputs::kKeys;
      take_frames(inputs, reads ? std::min(frames, kMostReads) : frames);
    }
    return std::move(times_);
  }
  std::uint64_t events() { return window_.workbench().run()->events()->events; }

 private:
  void open(const test::MadeRun& made) {
    Workbench& workbench = window_.workbench();
    workbench.works_ahead = true;  // as for somebody who looks
    workbench.open(made.folder());
    if (scene_.runs == Runs::kTwo) {
      workbench.open(made.folder());
      workbench.activate(0);
    }
    window_.key(scene_.key);
    window_.step();
  }

  // Until nothing is under way: a plan of many nodes takes longer than one wait.
  void settle() {
    constexpr int kMostWaits = 5;
    for (int i = 0; i < kMostWaits; ++i) {
      window_.settle();
      if (!window_.workbench().under_way) return;
    }
    fail(ErrorCode::kUsage, "{}: something is still under way", scene_.name);
  }

  void take_frames(Inputs inputs, int frames) {
    begin(inputs);
    for (int i = 0; i < frames; ++i) {
      act(inputs, i);
      std::this_thread::sleep_for(scene_.pause);
      times_.frames_ms[static_cast<std::size_t>(inputs)].push_back(
          bench::milliseconds([&] { window_.frame(); }));
    }
    end(inputs);
  }

  void begin(Inputs inputs) {
    if (inputs == Inputs::kKeys && scene_.clicked != nullptr) {
      require(window_.click(scene_.clicked), ErrorCode::kUsage, "there is no {}", scene_.clicked);
      settle();
    }
    if (inputs != Inputs::kHover && inputs != Inputs::kDrag) return;
    const Item* item = window_.items().find(scene_.area);
    require(item != nullptr, ErrorCode::kUsage, "there is no {}", scene_.area);
    area_ = item->seen;
    if (inputs != Inputs::kDrag) return;
    push({.kind = InputEvent::Kind::kPress, .at = place(0)});
    window_.step();
  }

  void act(Inputs inputs, int frame) {
    if (inputs == Inputs::kNone) return;
    if (inputs == Inputs::kKeys)
      return press(scene_.keys[static_cast<std::size_t>(frame) % scene_.keys.size()]);
    push({.kind = InputEvent::Kind::kMove, .at = place(frame + 1)});
  }

  void end(Inputs inputs) {
    if (inputs == Inputs::kDrag) push({.kind = InputEvent::Kind::kRelease, .at = area_.center()});
    settle();
  }

  // To and fro over the area.
  Point place(int frame) const {
    const float x = 0.35F * area_.width * std::sin(0.13F * static_cast<float>(frame));
    const float y = 0.35F * area_.height * std::sin(0.21F * static_cast<float>(frame));
    return area_.center() + Point{x, y};
  }

  void press(std::string_view key) {
    if (key.size() == 1) return push({.kind = InputEvent::Kind::kText, .text = std::string(key)});
    push({.kind = InputEvent::Kind::kChord, .chord = *chord_named(key)});
  }

  void push(InputEvent event) { window_.app().input().push(std::move(event)); }

  const Scene& scene_;
  Headless window_;
  Rect area_ = {};
  Times times_;
};

// Frame by frame the median of all windows.
std::vector<double> frames_of(const std::vector<Times>& windows, std::size_t inputs) {
  std::vector<double> frames;
  for (std::size_t i = 0; i < windows[0].frames_ms[inputs].size(); ++i) {
    bench::Rounds rounds;
    for (const Times& times : windows) rounds.times.push_back(times.frames_ms[inputs][i]);
    frames.push_back(rounds.median());
  }
  std::ranges::sort(frames);
  return frames;
}

struct Size {
  std::int64_t nodes = 0;
  std::uint64_t events = 0;
};

void print(const Scene& scene, const Size& size, const std::vector<Times>& windows) {
  bench::Rounds first;
  bench::Rounds commands;
  for (const Times& times : windows) {
    first.times.push_back(times.first_ms);
    commands.times.push_back(times.commands_ms);
  }
  for (std::size_t i = 0; i < kInputs.size(); ++i) {
    const std::vector<double> frames = frames_of(windows, i);
    if (frames.empty()) continue;
    const bool reads = scene.work == Work::kReads && kInputs[i] == Inputs::kKeys;
    fmt::print(
        "{{\"scene\":\"{}\",\"input\":\"{}\",\"reads\":{},\"nodes\":{},\"events\":{},"
        "\"first_frames_ms\":{:.0f},\"commands_ms\":{:.1f},\"median_ms\":{:.2f},\"p95_ms\":{:.2f},"
        "\"worst_ms\":{:.2f}}}\n",
        scene.name, kInputNames[i], reads, size.nodes, size.events, first.median(),
        commands.median(), frames[frames.size() / 2], frames[frames.size() * 95 / 100],
        frames.back());
  }
  std::fflush(stdout);
}

constexpr std::int64_t kManyLayers = 191;  // more than 8,000 nodes

std::unique_ptr<Compiled> step_of(std::int64_t layers) {
  ModelArguments arguments = test::kSmallText;
  arguments["layers"] = layers;
  return test::compiled("gpt2", arguments);
}

test::MadeRun run_of(const Compiled& step, std::size_t events) {
  const std::size_t calls = step.program.calls.size();
  return test::MadeRun("frames", step, static_cast<std::uint32_t>(events / (calls + 3) + 1));
}

void measure(std::int64_t layers, std::size_t events, const Effort& effort) {
  const auto step = step_of(layers);
  const test::MadeRun made = run_of(*step, events);
  for (const Scene& scene : kScenes) {
    Size size{.nodes = step->stages.back().nodes};
    std::vector<Times> windows;
    for (int i = 0; i < effort.windows; ++i) {
      Visit visit(scene, made);
      size.events = visit.events();
      windows.push_back(visit.times(effort.frames));
    }
    print(scene, size, windows);
  }
}

void run(int count, char** words) {
  if (count == 3) {
    const auto step = step_of(kManyLayers);
    const auto made = run_of(*step, std::strtoull(words[2], nullptr, 10));
    std::filesystem::copy(made.folder(), words[1], std::filesystem::copy_options::recursive);
    return;
  }
  if (count == 2 && std::string_view(words[1]) == "--quick") {
    return measure(8, 10'000, {.windows = 1, .frames = 13});
  }
  measure(48, 1'000'000, {});
  measure(kManyLayers, 4'000'000, {});
}

}  // namespace
}  // namespace trainscope::gui

int main(int count, char** words) {
  trainscope::gui::keep_process_small();
  try {
    trainscope::gui::run(count, words);
  } catch (const std::exception& exception) {
    fmt::print(stderr, "{}\n", exception.what());
    return 1;
  }
  return 0;
}
