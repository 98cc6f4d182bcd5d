// The run's options, where its replay begins, and what keeps that from its bits.
#include "cli/replay/replayable.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/flags/run_options.h"
#include "cli/signal_listener.h"
#include "engine/core/byte_count.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// Options of the call that the run had otherwise.
std::vector<std::string> given_otherwise(const Settings& settings, const Json& options,
                                         std::span<const Flag> own) {
  std::vector<std::string> found;
  for (const auto& [name, setting] : settings.all()) {
    const bool is_own = std::ranges::find(own, name, &Flag::name) != own.end();
    if (setting.origin <= Origin::kRun || is_own || !is_recorded(name)) continue;
    const Json* then = options.find(name);
    const bool same = then != nullptr && *then == json_of(setting);
    if (!same) found.push_back(fmt::format("{} says --{}", printable(setting.where), name));
  }
  return found;
}

const Json& options_of(const RunManifest& run, const std::vector<RunSession>& sessions) {
  const bool old = sessions.empty() || sessions.front().options.as_object().empty();
  return old ? run.options : sessions.front().options;
}

// One process has neither their batches nor, in the same order, their sums.
void refuse_ranks(const RunSession& session) {
  const Json* ranks = session.options.find(kRanksOption);
  if (ranks == nullptr) return;
  fail(ErrorCode::kUsage, "the run had {} ranks: its steps cannot be run again yet", ranks->dump());
}

}  // namespace

Source run_named(const std::string& folder) {
  Source source = Source::open(folder);
  require(source.is_run(), ErrorCode::kUsage, "'{}' is no run", printable(folder));
  source.original_model();  // refuses a model that has changed since
  return source;
}

Replayable::Replayable(const Invocation& given, Source run_source, std::int64_t first,
                       std::int64_t last, std::span<const Flag> own)
    : source(std::move(run_source)),
      step(last),
      start(replay_start(run(), first)),
      sessions(sessions_between(run().manifest(), start.step, step)),
      invocation(given.with_run(options_of(run().manifest(), sessions))
                     .with_argument(source.model_file().string())),
      differences(
          given_otherwise(invocation.settings(), options_of(run().manifest(), sessions), own)) {
  const auto note = [this](const std::vector<std::string>& more) {
    differences.insert(differences.end(), more.begin(), more.end());
  };
  std::ranges::for_each(sessions, refuse_ranks);
  if (!sessions.empty() && sessions.back().from_step > start.step) {
    throw Error(ErrorCode::kUsage,
                fmt::format("the checkpoint of step {}, which the run began from, is gone",
                            sessions.back().from_step))
        .hint("train with a larger --keep, so that it stays");
  }
  if (!sessions.empty()) note(differences_from(sessions.front(), request()));
  for (std::size_t i = 1; i < sessions.size(); ++i) {
    note(differences_between(sessions[i], sessions.front()));
  }
  if (differences.empty() || given.settings().on("not-bitwise")) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("the step would not have the run's bits: {}", join(differences, ", ")))
      .hint("--not-bitwise runs it all the same");
}

void tell_cost(const Replayable& of) {
  const ReplayStart& start = of.start;
  const double step_ms = of.run().metrics().median_step_ms();
  const double seconds = static_cast<double>(of.step - start.step) * step_ms / 1e3;
  const std::optional<StoredPlan> plan = of.run().plan();
  of.invocation.log().info(
      "runs steps {} to {} again, from {}: some {:.1f} s, an arena of {}", start.step + 1, of.step,
      start.checkpoint.empty() ? "the model as it was given" : printable(start.checkpoint.string()),
      seconds, plan ? bytes_text(plan->view().spaces[0].bytes) : "?");
}

Replayed replayed(const Replayable& of, NumericsRequest numerics,
                  const std::filesystem::path& scratch) {
  const std::stop_source stop;
  const auto signals = std::make_shared<SignalListener>(stop);
  Replayed result = replay(
      {.train = of.request(), .step = of.step, .numerics = std::move(numerics), .scratch = scratch},
      of.start, signals, stop.get_token());
  if (signals->exit_code() != 0) throw SignalCame{signals->exit_code()};
  const bool same = result.data == of.run().manifest().data;
  if (same || of.invocation.settings().on("not-bitwise")) return result;
  throw Error(ErrorCode::kUsage, "the data are not those of the run any more")
      .hint("--not-bitwise takes them all the same");
}

}  // namespace trainscope
