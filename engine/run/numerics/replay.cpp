// A session of its own that begins at a checkpoint and records one step.
#include "engine/run/numerics/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "engine/exec/backends.h"
#include "engine/run/resume.h"

namespace trainscope {
namespace {

struct CompiledKeeper final : RunEvents {
  std::shared_ptr<const Compiled> compiled;
  void session_begin(const SessionFacts& facts) override { compiled = facts.compiled; }
};

// Options of `train` that change no bit of what is trained.
constexpr std::array<std::string_view, 14> kOfRecords = {
    "record-numerics", "record-steps", "record-values", "record-full", "profile",
    "save-every",      "keep",         "keep-best",     "eval-every",  "early-stop",
    "metrics",         "time-limit",   "model",         "export"};

void note(std::vector<std::string>& found, std::string_view what, const auto& then,
          const auto& now) {
  if (then != now) found.push_back(fmt::format("{} was {}, is {}", what, then, now));
}

// Runs of earlier programs do not know it.
void note_gpu(std::vector<std::string>& found, const std::string& then, const std::string& now) {
  if (!then.empty() && !now.empty()) note(found, "the GPU", then, now);
}

}  // namespace

ReplayStart replay_start(const RunReader& run, std::int64_t step) {
  const std::optional<Folder> root = run.checkpoints_folder();
  if (!root) return {};
  for (const std::int64_t at : find_checkpoints(*root)) {
    if (at >= step) continue;
    const std::string name = checkpoint_name(at);
    try {
      load_checkpoint(*root, name);
      return {.checkpoint = root->path() / name, .step = at};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadInput) throw;
    }  // it is damaged: an earlier one is as good
  }
  return {};
}

Replayed replay(ReplayRequest request, const ReplayStart& start, std::shared_ptr<RunEvents> events,
                std::stop_token stop) {
  TrainRequest& train = request.train;
  train.run_folder = request.scratch / "replay";
  train.resume = start.checkpoint.string();
  if (!start.tensors.empty()) train.start = {.step = start.step, .tensors = start.tensors};
  train.session_steps = request.step - start.step;
  train.keeps_result = false;
  train.save_every = 0;
  train.evaluate_every = 0;
  train.early_stop.reset();
  train.deadline.reset();
  train.metrics = {};
  train.export_file.clear();
  train.profile.reset();
  train.numerics = std::move(request.numerics);
  const std::filesystem::path folder = train.run_folder;
  const auto keeper = std::make_shared<CompiledKeeper>();
  const auto listeners = std::make_shared<RunListeners>(std::vector{std::move(events)});
  listeners->add(keeper);
  Replayed result;
  try {
    TrainingRun(std::move(train), listeners, std::move(stop)).run();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNumeric) throw;
    result.failure = error;
  }
  result.compiled = keeper->compiled;
  result.data = RunReader::open(folder).manifest().data;
  result.trace = profiler::Trace::open(folder / kRunNumericsFolder);
  return result;
}

std::vector<RunSession> sessions_between(const RunManifest& run, std::int64_t from,
                                         std::int64_t to) {
  std::vector<RunSession> made;
  for (auto session = run.sessions.rbegin(); session != run.sessions.rend() && to > from;
       ++session) {
    if (session->from_step >= to) continue;
    made.push_back(*session);
    to = session->from_step;
  }
  return made;
}

std::vector<std::string> differences_from(const RunSession& session, const TrainRequest& now) {
  std::vector<std::string> found;
  const DeviceHandle device = now.compile.device ? now.compile.device : cpu_device();
  note(found, "the device", session.device, std::string(device->facts().name));
  note_gpu(found, session.device_name, now.notes.device_name);
  note(found, "threads", session.threads, static_cast<std::int64_t>(now.compile.lower.threads));
  note(found, "the instruction set", session.isa, std::string(cpu_isa()));
  note(found, "the program", session.program_version, now.notes.program_version);
  return found;
}

std::vector<std::string> differences_between(const RunSession& a, const RunSession& b) {
  std::vector<std::string> found;
  note(found, "the device", a.device, b.device);
  note_gpu(found, a.device_name, b.device_name);
  note(found, "threads", a.threads, b.threads);
  note(found, "the instruction set", a.isa, b.isa);
  note(found, "the program", a.program_version, b.program_version);
  for (const std::string& difference : differences(a.options, b.options)) {
    const std::string_view name = std::string_view(difference).substr(0, difference.find(' '));
    if (std::ranges::find(kOfRecords, name) == kOfRecords.end()) found.push_back(difference);
  }
  return found;
}

}  // namespace trainscope
