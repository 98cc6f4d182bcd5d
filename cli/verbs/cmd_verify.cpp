// verify: the engine against the stored numbers of reference folders.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/flags/check_flags.h"
#include "cli/flags/invocation.h"
#include "cli/flags/training_flags.h"
#include "engine/check/verify.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr Flag kVerifyFlags[] = {
    {.name = "precision",
     .type = FlagType::kChoice,
     .value = "f32|tf32|bf16|fp16",
     .fallback = "f32",
     .help = "bf16, fp16: loss and gradients in mixed precision, tf32: with matmuls in TF32; by "
             "wider limits"},
    {.name = "failed-only", .type = FlagType::kSwitch, .help = "Only rows over their limit"},
};

Json row_facts(const VerifyRow& row) {
  return Json::object({{"what", row.what},
                       {"name", row.name},
                       {"error", row.error},
                       {"limit", row.limit},
                       {"ok", row.ok()}});
}

std::string row_text(const VerifyRow& row) {
  return fmt::format("  {:4} {:12} {:48} {:11.3e} {:11.3e}\n", row.ok() ? "ok" : "OVER", row.what,
                     printable(row.name), row.error, row.limit);
}

void add_report(const VerifyReport& report, const Settings& settings, Outcome& outcome,
                Json& list) {
  const bool failed_only = settings.on("failed-only");
  Json rows = Json::array();
  outcome.text += fmt::format("{}\n", printable(report.folder.string()));
  if (!failed_only || report.failed > 0) {
    outcome.text +=
        fmt::format("       {:12} {:48} {:>11} {:>11}\n", "what", "tensor", "error", "limit");
  }
  for (const VerifyRow& row : report.rows) {
    if (failed_only && row.ok()) continue;
    rows.push_back(row_facts(row));
    outcome.text += row_text(row);
  }
  outcome.text +=
      fmt::format("  {} of {} rows within their limits, the worst at {:.2f} of it\n",
                  report.rows.size() - report.failed, report.rows.size(), report.worst_share);
  list.push_back(Json::object({{"folder", report.folder.string()},
                               {"rows", std::move(rows)},
                               {"row_count", report.rows.size()},
                               {"failed", report.failed},
                               {"worst_share", report.worst_share}}));
}

Outcome run_verify(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const VerifyOptions options{.precision = step_precision(settings.text("precision")),
                              .lower = lower_options(invocation),
                              .passes = pass_options(invocation),
                              .device = device_of(settings.text("device"))};
  Outcome outcome;
  Json reports = Json::array();
  std::size_t failed = 0;
  for (const std::string& folder : invocation.arguments()) {
    const VerifyReport report = verify_reference(folder, options);
    add_report(report, settings, outcome, reports);
    failed += report.failed;
  }
  outcome.facts = Json::object({{"failed", failed}, {"references", std::move(reports)}});
  if (failed > 0) outcome.exit_code = static_cast<int>(ErrorCode::kMismatch);
  return outcome;
}

}  // namespace

Command verify_command() {
  return {.name = "verify",
          .summary = "Compare the engine with stored numbers; exit 9 when any is over its limit.",
          .arguments = {{.name = "REFERENCE_DIR",
                         .help = "a folder with model.onnx, meta.json and reference.safetensors",
                         .repeated = true}},
          .flags = join_flags({kVerifyFlags, check_flags()}),
          .examples = {"trainscope verify models/mlp", "trainscope verify models/* --json"},
          .run = run_verify};
}

}  // namespace trainscope
