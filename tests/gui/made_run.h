// A run's folder made of a compiled model: stages, plan, metrics, and a profile of steps in which
// every call of the plan takes some time.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/bundle/reader.h"
#include "engine/bundle/writer.h"
#include "engine/onnx/export.h"
#include "engine/record.h"
#include "engine/record_plan.h"
#include "profiler/store/event_file.h"
#include "tests/gui/views/views_models.h"

namespace trainscope::gui::test {

// Steps one after the other: a wait for the batch, then every call, on one thread.
inline std::vector<profiler::Event> steps_of(std::size_t calls, std::uint32_t steps) {
  using profiler::EventKind;
  std::vector<profiler::Event> events;
  const auto span = [&](EventKind kind, std::uint32_t id, std::int64_t begin, std::int64_t end) {
    events.push_back({.begin_ns = begin,
                      .value = static_cast<std::uint64_t>(end - begin),
                      .id = id,
                      .kind = kind});
  };
  std::int64_t now = 1000;
  for (std::uint32_t step = 1; step <= steps; ++step) {
    const std::int64_t begin = now;
    span(EventKind::kBatchWait, 0, now + 10, now + 60);
    now += 100;
    for (std::uint32_t call = 0; call < calls; ++call) {
      const std::int64_t ns = 500 + 37 * static_cast<std::int64_t>((call + step) % 29);
      span(EventKind::kCall, call, now, now + ns);
      now += ns + 20;
    }
    span(EventKind::kStepPart, 0, begin + 70, now);
    span(EventKind::kStep, step, begin, now + 30);
    now += 200;
  }
  return events;
}

// What a profiler counts of memory: of each step the process's, of the first the arena's.
inline void add_memory(const PlanRecord& plan, std::uint32_t steps,
                       std::vector<profiler::Event>& events) {
  using profiler::EventKind;
  const std::int64_t end = events.back().end_ns();
  const auto count = [&](EventKind kind, std::uint32_t id, double value) {
    events.push_back(
        {.begin_ns = end, .value = std::bit_cast<std::uint64_t>(value), .id = id, .kind = kind});
  };
  for (std::uint32_t step = 1; step <= steps; ++step) {
    count(EventKind::kResidentBytes, step, 1e8 + 4096.0 * ((step * 7) % 5));
  }
  std::uint32_t time = 0;
  for (const std::int64_t bytes : live_bytes(view_of(plan))) {
    count(EventKind::kBoundBytes, time++, static_cast<double>(bytes));
  }
}

// The profile of a run's folder, in place of the one that is there.
inline void write_profile(const std::filesystem::path& folder,
                          std::span<const profiler::Event> events) {
  std::string bytes;
  profiler::EventWriter writer({.threads = 1}, [&](std::span<const std::byte> more) {
    bytes.append(reinterpret_cast<const char*>(more.data()), more.size());
  });
  constexpr std::size_t kPiece = 4096;  // as a recorder writes them
  for (std::size_t i = 0; i < events.size(); i += kPiece) {
    writer.add(events.subspan(i, std::min(kPiece, events.size() - i)), 0);
  }
  write_file_atomic(folder / kRunEventsFile, bytes);
}

// What a session of five steps leaves, which are the first from `first_step` on.
inline void write_session(RunWriter& writer, const std::filesystem::path& folder,
                          const Compiled& step, std::int64_t first_step,
                          std::uint32_t profiled_steps) {
  for (std::size_t i = 0; i < step.stages.size(); ++i) {
    StageRecord record = stage_record(step.stages[i], i == 0 ? nullptr : &step.stages[i - 1]);
    if (!writer.repeats_last_stage(record)) {
      write_onnx(step.stages[i].graph, writer.next_stage_file(step.stages[i].name),
                 {.weights = Weights::kOmit, .tensor = {}});
    }
    writer.add_stage(std::move(record), rewrite_log_text(step.stages[i].rewrites));
  }
  const PlanRecord plan = plan_record(step);
  writer.write_plan(plan);
  for (std::int64_t i = first_step; i < first_step + 5; ++i) {
    writer.add_step({.step = i, .loss = 5.0 / static_cast<double>(i), .step_ms = 2.0});
  }
  if (profiled_steps > 0) {
    std::vector<profiler::Event> events = steps_of(plan.calls.size(), profiled_steps);
    add_memory(plan, profiled_steps, events);
    write_profile(folder, events);
  }
  writer.finish(RunStatus::kFinished, 0);
}

class MadeRun {
 public:
  // `machine` is what the session was planned with, as its record has it; null: nobody measured it.
  explicit MadeRun(std::string_view name, const Compiled& step, std::uint32_t profiled_steps = 3,
                   Json machine = {})
      : folder_(std::filesystem::temp_directory_path() /
                ("trainscope-gui-" + std::string(name) + "-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
    RunManifest manifest;
    manifest.model.set("file", "model.onnx");
    manifest.sessions = {{.command = {"trainscope", "train"},
                          .program_version = "0",
                          .threads = step.program.threads,
                          .machine = std::move(machine)}};
    RunWriter writer = RunWriter::create(folder_, std::move(manifest));
    write_session(writer, folder_, step, 1, profiled_steps);
  }
  MadeRun(const MadeRun&) = delete;
  MadeRun& operator=(const MadeRun&) = delete;
  ~MadeRun() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  const std::filesystem::path& folder() const { return folder_; }

  // Trains on for five steps with this one, on this device: a session more.
  void resume(const Compiled& step, std::uint32_t profiled_steps, std::string_view device_name) {
    RunLock lock = RunLock::take(folder_);
    const auto steps = static_cast<std::int64_t>(RunReader::open(folder_).metrics().steps.size());
    RunWriter writer = RunWriter::resume(std::move(lock), {.command = {"trainscope", "train"},
                                                           .program_version = "0",
                                                           .device = "cuda:0",
                                                           .device_name = std::string(device_name),
                                                           .threads = 3,
                                                           .isa = "AVX2",
                                                           .from_step = steps});
    write_session(writer, folder_, step, steps + 1, profiled_steps);
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace trainscope::gui::test
