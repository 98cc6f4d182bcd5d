// Finds the calls that stem from a node, and times their kernels in turn.
#include "cli/advise/node_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/data/data_fields.h"
#include "cli/data/data_request.h"
#include "cli/flags/train_request.h"
#include "cli/flags/training_flags.h"
#include "cli/source.h"
#include "engine/advise/kernel_alternatives.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/machine/machine_file.h"
#include "engine/record_plan.h"
#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/roof.h"

namespace trainscope {
namespace {

constexpr Flag kNodeFlags[] = {
    {.name = "node",
     .value = "NAME",
     .help = "A node of the model, whose forward and backward calls are measured, or one of a "
             "step's own (`query --by call`, `inspect`)"},
    {.name = "phase",
     .type = FlagType::kChoice,
     .value = "forward|backward|update",
     .help = "Its calls of this phase alone"},
    {.name = "data",
     .value = "SPEC",
     .fallback = "synthetic",
     .help = "As `train` has it, for sizes that the model leaves open; of a run its own",
     .also = "dataset"},
};

bool is_of_node(const PlanView& plan, const PlanCall& call, std::string_view node) {
  if (call.tile != kNoRow && call.tile != 0) return false;
  return profiler::onnx_node_of(plan, call) == node || plan.name_of(call) == node;
}

std::vector<std::uint32_t> calls_of(const PlanView& plan, const Settings& settings) {
  const std::string& node = settings.text("node");
  const std::string phase = settings.text_or_empty("phase");
  std::vector<std::uint32_t> found;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < plan.calls.size(); ++i) {
    const PlanCall& call = plan.calls[i];
    names.emplace_back(profiler::onnx_node_of(plan, call));
    const bool is_in_phase = phase.empty() || name_of(call.phase) == phase;
    if (is_in_phase && is_of_node(plan, call, node)) found.push_back(i);
  }
  if (!found.empty()) return found;
  throw Error(ErrorCode::kUsage,
              fmt::format("no call of the step stems from a node '{}'{}", printable(node),
                          phase.empty() ? "" : " in the " + phase + " phase"))
      .hint(nearest_hint(node, names))
      .hint(
          "a node that a pass has put into another one has no call of its own: `inspect "
          "MODEL.onnx --fate NAME` says which");
}

// The share of the call's roof that a time is, with the kernel's own FLOPs; 0 where no machine was
// measured.
double roof_share(const std::optional<Machine>& machine, const PlanView& plan, PlanCall call,
                  const KernelAlternative& row) {
  if (!machine) return 0.0;
  call.kernel_flops = row.done.flops;
  return profiler::roof_ns(*machine, plan, call) / (1e9 * row.timing.median_seconds);
}

double per_second(std::int64_t count, const KernelAlternative& row) {
  return static_cast<double>(count) / row.timing.median_seconds * 1e-9;
}

std::string operands_text(const PlanView& plan, RowRange operands) {
  std::vector<std::string> texts;
  for (const PlanOperand& operand : rows_of(plan.operands, operands)) {
    texts.push_back(operand.value == kNoRow
                        ? "-"
                        : fmt::format("{}{}", plan.text(operand.dtype),
                                      shape_text(rows_of(plan.dims, operand.shape))));
  }
  return join(texts, ", ");
}

class NodeReport {
 public:
  NodeReport(const PlanView& plan, std::optional<Machine> machine)
      : plan_(plan), machine_(std::move(machine)) {}

  void add(std::uint32_t id, const std::vector<KernelAlternative>& rows) {
    const PlanCall& call = plan_.calls[id];
    text_ += fmt::format("call {}: {} of {} ({} phase), {} -> {}, {} threads\n", id,
                         plan_.op_of(call), printable(profiler::onnx_node_of(plan_, call)),
                         name_of(call.phase), operands_text(plan_, call.inputs),
                         operands_text(plan_, call.outputs), plan_.facts().threads);
    if (rows.empty()) text_ += fmt::format("  no kernel: {}\n", name_of(call.kind));
    Json kernels = Json::array();
    for (const KernelAlternative& row : rows) {
      kernels.push_back(kernel_json(call, row));
      text_ += kernel_text(call, row);
    }
    calls_.push_back(Json::object({{"call", id},
                                   {"name", std::string(plan_.name_of(call))},
                                   {"node", std::string(profiler::onnx_node_of(plan_, call))},
                                   {"op", std::string(plan_.op_of(call))},
                                   {"phase", name_of(call.phase)},
                                   {"inputs", operands_text(plan_, call.inputs)},
                                   {"outputs", operands_text(plan_, call.outputs)},
                                   {"flops", call.flops},
                                   {"bytes", call.bytes_read + call.bytes_written},
                                   {"kernels", std::move(kernels)}}));
  }

  Outcome outcome() {
    if (!machine_) text_ += "roofs: not known; `doctor --roofs --out FILE` and --machine FILE\n";
    return {
        .facts = Json::object({{"threads", plan_.facts().threads}, {"calls", std::move(calls_)}}),
        .text = std::move(text_)};
  }

 private:
  Json kernel_json(const PlanCall& call, const KernelAlternative& row) const {
    Json facts = Json::object({{"kernel", std::string(row.kernel->name)},
                               {"chosen", row.is_chosen},
                               {"supported", row.why_not.empty()}});
    if (!row.why_not.empty()) {
      facts.set("why_not", std::string(row.why_not));
      return facts;
    }
    facts.set("ms", 1e3 * row.timing.median_seconds);
    facts.set("ms_least", 1e3 * row.timing.least_seconds);
    facts.set("rounds", row.timing.rounds);
    facts.set("gflops", per_second(row.done.flops, row));
    facts.set("direct_gflops", per_second(call.flops, row));
    if (machine_) facts.set("roof", roof_share(machine_, plan_, call, row));
    return facts;
  }

  std::string kernel_text(const PlanCall& call, const KernelAlternative& row) const {
    const char mark = row.is_chosen ? '*' : ' ';
    if (!row.why_not.empty()) {
      return fmt::format("  {} {:<34} not here: {}\n", mark, row.kernel->name, row.why_not);
    }
    const double roof = roof_share(machine_, plan_, call, row);
    return fmt::format("  {} {:<34} {:>10.4f} ms {:>9.2f} GFLOP/s {:>8.2f} GB/s{}\n", mark,
                       row.kernel->name, 1e3 * row.timing.median_seconds,
                       per_second(row.done.flops, row),
                       per_second(call.bytes_read + call.bytes_written, row),
                       roof == 0.0 ? "" : fmt::format(" {:>6.1f} % of its roof", 100.0 * roof));
  }

  const PlanView& plan_;
  const std::optional<Machine> machine_;
  std::string text_;
  Json calls_ = Json::array();
};

Outcome run_bench_node(const Invocation& invocation) {
  const Source source = Source::open_or_build(invocation.argument(0));
  const Invocation settled = source.settle(invocation);
  const Settings& settings = settled.settings();
  const OnnxModel model = source.original_model();
  const Sizes sizes = resolve_sizes_with_data(model, size_request(settings), settings.text("data"));
  const TrainRequest step = step_request(model, sizes, settled);
  const std::unique_ptr<Compiled> compiled = compile(step.model, step.compile);
  const PlanRecord record = plan_record(*compiled);
  const PlanView plan = view_of(record);
  std::optional<Machine> machine;
  if (settings.has("machine")) machine = plan_machine(settings);
  NodeReport report(plan, std::move(machine));
  for (const std::uint32_t id : calls_of(plan, settings)) {
    const Call& call = compiled->program.calls[id];
    report.add(id, time_alternatives(compiled->program, call, {.rounds = 11, .seconds = 0.1}));
  }
  return report.outcome();
}

}  // namespace

bool asks_for_node(std::span<const std::string> words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    return word == "--node" || word.starts_with("--node=");
  });
}

Command bench_node_command(const Command& bench) {
  Command command = bench;
  command.summary = "Time one call of a step by itself, by every kernel that takes it.";
  command.arguments = {{.name = "MODEL.onnx|RUN|BUILDER:SIZE",
                        .help = "a model, a run (its step), or a builder's model without a file"}};
  command.flags = join_flags({kNodeFlags, validation_flags(), image_flags(), compile_flags()});
  command.examples = {"trainscope bench model.onnx --node /4/Gemm --threads 2",
                      "trainscope bench runs/gpt-1 --node /h.0/mlp/fc --phase backward --json"};
  command.run = run_bench_node;
  command.for_words = nullptr;
  command.essential = {"node", "phase", "machine", "batch", "seq"};
  return command;
}

}  // namespace trainscope
