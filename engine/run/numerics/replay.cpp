// A session of its own that begins at a checkpoint and records one step.
#include "engine/run/numerics/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/exec/backends.h"

namespace trainscope {
namespace {

struct CompiledKeeper final : RunEvents {
  std::shared_ptr<const Compiled> compiled;
  void session_begin(const SessionFacts& facts) override { compiled = facts.compiled; }
};

// "step-00000100" -> 100; 0 for anything else.
std::int64_t step_of(const std::string& name) {
  const std::size_t dash = name.find('-');
  if (dash == std::string::npos) return 0;
  const std::size_t digits = name.find_first_not_of('0', dash + 1);
  if (digits == std::string::npos) return 0;
  const std::int64_t step = std::atoll(name.c_str() + digits);
  return checkpoint_name(step) == name ? step : 0;
}

}  // namespace

ReplayStart replay_start(const RunReader& run, std::int64_t step) {
  ReplayStart start;
  const std::optional<Folder> root = run.checkpoints_folder();
  if (!root) return start;
  for (const std::string& name : root->list()) {
    const std::int64_t at = step_of(name);
    if (at <= start.step || at >= step) continue;
    try {
      load_checkpoint(*root, name);
    } catch (const Error&) {
      continue;  // an earlier one is as good
    }
    start = {.checkpoint = root->path() / name, .step = at};
  }
  return start;
}

Replayed replay(ReplayRequest request, const ReplayStart& start, std::stop_token stop) {
  TrainRequest& train = request.train;
  train.run_folder = request.scratch / "replay";
  train.resume = start.checkpoint.string();
  train.session_steps = request.step - start.step;
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
  Replayed result;
  try {
    TrainingRun(std::move(train), keeper, std::move(stop)).run();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNumeric) throw;
    result.failure = error;
  }
  result.compiled = keeper->compiled;
  result.trace = profiler::Trace::open(folder / kRunNumericsFolder);
  return result;
}

std::vector<std::string> differences_from(const RunSession& session, const TrainRequest& now) {
  std::vector<std::string> found;
  const auto note = [&found](std::string_view what, const auto& then, const auto& here) {
    if (then != here) found.push_back(fmt::format("{} was {}, is {}", what, then, here));
  };
  note("threads", session.threads, static_cast<std::int64_t>(now.compile.lower.threads));
  note("the instruction set", session.isa, std::string(cpu_isa()));
  note("the program", session.program_version, now.notes.program_version);
  return found;
}

}  // namespace trainscope
