// advise: why a step needs its memory and time, and what can be done about them.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cli/advise/advice_text.h"
#include "cli/advise/command_line.h"
#include "cli/advise/lever_flags.h"
#include "cli/command.h"
#include "cli/data/data_fields.h"
#include "cli/data/data_request.h"
#include "cli/flags/train_request.h"
#include "cli/flags/training_flags.h"
#include "cli/source.h"
#include "engine/advise/advice.h"
#include "engine/bundle/plan_moment.h"
#include "engine/machine/machine_file.h"
#include "profiler/advise/reasons.h"

namespace trainscope {
namespace {

constexpr Flag kAdviseFlags[] = {
    {.name = "memory",
     .value = "BYTES",
     .help = "What the step's arena is to fit in, also as 2GB: levers with which it does come "
             "first, the quickest of them at the top, and some are taken together"},
    {.name = "try",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Run the first N levers for ten steps each, in turn with the step as it is, and show "
             "what they took beside what was predicted",
     .minimum = 1,
     .maximum = 100},
    {.name = "data",
     .value = "SPEC",
     .fallback = "synthetic",
     .help = "As `train` has it: a batch of it is what steps run on; of a run its own",
     .also = "dataset"},
};

// The machine whose roofs times are held against; none where nobody measured it.
std::optional<Machine> measured_machine(const Source& source, const Settings& settings) {
  if (settings.has("machine")) return plan_machine(settings);
  if (!source.is_run()) return std::nullopt;
  const Json& recorded = source.run().manifest().sessions.back().machine;
  return recorded.is_null() ? std::nullopt : std::optional(machine_of(recorded));
}

// Whether the call asks for another step than that of the run.
bool asks_for_another_step(const Settings& settings) {
  if (settings.given("threads")) return true;
  return std::ranges::any_of(compile_flags(),
                             [&](const Flag& flag) { return settings.given(flag.name); });
}

// `settled` has a run's options where it has none of its own.
AdviceRequest advice_request(const Source& source, const Invocation& settled) {
  const Settings& settings = settled.settings();
  const OnnxModel model = source.original_model();
  const SizeRequest sizes = sizes_with_data(model, size_request(settings), settings.text("data"));
  AdviceRequest request{.train = step_request(model, resolve_sizes(model, sizes), settled),
                        .sizes = sizes,
                        .shapes_only = source.is_built()};
  if (settings.has("memory")) request.memory_bytes = parse_bytes("memory", settings.text("memory"));
  if (source.is_run() && !asks_for_another_step(settings)) request.run = source.run();
  return request;
}

std::vector<LeverWords> lever_words(const Advice& advice, const Source& source,
                                    const Invocation& settled) {
  std::vector<LeverWords> words;
  for (const LeverAdvice& each : advice.levers) {
    std::vector<GivenFlag> flags = flags_of(each.lever.change, settled.settings());
    std::string command = train_command_line(source, settled, flags);
    words.push_back({.flags = std::move(flags), .command = std::move(command)});
  }
  return words;
}

Outcome run_advise(const Invocation& invocation) {
  const Source source = Source::open_or_build(invocation.argument(0));
  const Invocation settled = source.settle(invocation);
  const AdviceRequest request = advice_request(source, settled);
  ShownAdvice shown{.advice = advise(request), .reasons = {}, .words = {}};
  Advice& advice = shown.advice;
  if (const auto count = settled.settings().find_integer("try")) {
    try_levers(advice, request, *count);
  }
  const PlanView plan = view_of(advice.base.record);
  const std::optional<Machine> machine = measured_machine(source, settled.settings());
  shown.reasons = {
      .of_peak = profiler::peak_sentences(plan, memory_peak(plan)),
      .of_time = profiler::time_sentences(advice.base.times, plan, machine ? &*machine : nullptr)};
  shown.words = lever_words(advice, source, settled);
  return {.facts = advice_json(shown), .text = advice_text(shown)};
}

}  // namespace

Command advise_command() {
  return {.name = "advise",
          .summary = "Say why a step needs its memory and time, and what could be done about it.",
          .arguments = {{.name = "MODEL.onnx|RUN|BUILDER:SIZE",
                         .help = "a model, a run (its options, and its profile where it has one), "
                                 "or a builder's model without a file, of which nothing is run"}},
          .flags = join_flags({kAdviseFlags, validation_flags(), image_flags(), compile_flags()}),
          .examples = {"trainscope advise runs/gpt-1 --try 3",
                       "trainscope advise bert.onnx --batch 16 --seq 128 --memory 2GB"},
          .run = run_advise,
          .essential = {"memory", "try", "data", "batch", "seq", "loss", "optimizer", "machine"}};
}

}  // namespace trainscope
