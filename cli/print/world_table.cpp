// The numbers of each world as JSON, a table, and the details of a single one.
#include "cli/print/world_table.h"

#include <fmt/format.h>

#include "engine/core/byte_count.h"
#include "engine/run/batch/batch_search.h"

namespace trainscope {
namespace {

double samples_per_second(const WorldTable& table, const WorldPlan& plan) {
  const std::int64_t samples = table.batch * table.micro_batches * plan.layout.data();
  return plan.step_seconds > 0 ? static_cast<double>(samples) / plan.step_seconds : 0.0;
}

double share_of_step(const WorldPlan& plan, double seconds) {
  return plan.step_seconds > 0 ? seconds / plan.step_seconds : 0.0;
}

Json shard_record(const DeviceShard& shard) {
  return Json::object({{"peak_bytes", shard.peak_bytes},
                       {"plain_bytes", shard.plain_bytes},
                       {"lower_bound_bytes", shard.lower_bound_bytes},
                       {"eager_bytes", shard.eager_bytes},
                       {"parameter_bytes", shard.parameter_bytes},
                       {"gradient_bytes", shard.gradient_bytes},
                       {"state_bytes", shard.state_bytes},
                       {"repeats", shard.rematerialized_nodes},
                       {"host_bytes", shard.host_bytes},
                       {"kernel_seconds", shard.time.kernel_seconds}});
}

Json row_record(const WorldTable& table, const WorldRow& row) {
  const WorldPlan& plan = row.plan;
  Json record = shard_record(plan.device());
  record.set("world", plan.layout.world);
  record.set("data_parallel", plan.layout.data());
  record.set("tensor_parallel", plan.layout.tensor);
  record.set("pipeline", plan.layout.pipeline);
  record.set("zero", plan.layout.zero);
  record.set("fits", row.fits);
  record.set("eager_bytes", plan.eager_bytes());  // of all stages, as the next
  record.set("repeats", plan.rematerialized_nodes());
  record.set("step_seconds", plan.step_seconds);
  record.set("message_seconds", plan.message_seconds);
  record.set("exposed_seconds", plan.exposed_seconds);
  record.set("sent_bytes", plan.sent_bytes);
  record.set("bubble_share", share_of_step(plan, plan.bubble_seconds));
  record.set("waiting_share", share_of_step(plan, plan.waiting_seconds()));
  record.set("samples_per_second", samples_per_second(table, plan));
  if (table.sequence > 0) {
    record.set("tokens_per_second",
               samples_per_second(table, plan) * static_cast<double>(table.sequence));
  }
  if (plan.stages.size() > 1) {
    Json stages = Json::array();
    for (const DeviceShard& shard : plan.stages) stages.push_back(shard_record(shard));
    record.set("stages", std::move(stages));
  }
  if (row.batches) {
    record.set("largest_batch_plain", row.batches->plain);
    record.set("largest_batch_eager", row.batches->eager);
    if (row.batches->most) record.set("largest_batch", *row.batches->most);
  }
  return record;
}

// The search's limit is no answer.
std::string batch_text(std::int64_t batch) {
  return fmt::format("{}{}", batch >= kMostBatch ? ">=" : "", batch);
}

std::string batches_text(const LargestBatches& batches) {
  if (!batches.most) return batch_text(batches.plain);
  return fmt::format("{} ({})", batch_text(*batches.most), batch_text(batches.plain));
}

std::string table_text(const WorldTable& table) {
  const bool batches = table.rows.front().batches.has_value();
  const bool tokens = table.sequence > 0;
  std::string text =
      fmt::format("{:>7} {:>5} {:>4} {:>11} {:>11} {:>10} {:>12} {:>8}", "devices", "data", "zero",
                  "peak", "PyTorch", "step", tokens ? "tokens/s" : "samples/s", "waiting");
  if (batches) text += fmt::format(" {:>14} {:>8}", "largest batch", "PyTorch");
  text += '\n';
  for (const WorldRow& row : table.rows) {
    const WorldPlan& plan = row.plan;
    const double rate =
        samples_per_second(table, plan) * (tokens ? static_cast<double>(table.sequence) : 1.0);
    text += fmt::format("{:>7} {:>5} {:>4} {:>11} {:>11} {:>7.1f} ms {:>12.0f} {:>6.1f} %",
                        plan.layout.world, plan.layout.data(), plan.layout.zero,
                        bytes_text(plan.device().peak_bytes), bytes_text(plan.eager_bytes()),
                        1e3 * plan.step_seconds, rate,
                        100.0 * share_of_step(plan, plan.waiting_seconds()));
    if (batches) {
      text +=
          fmt::format(" {:>14} {:>8}", batches_text(*row.batches), batch_text(row.batches->eager));
    }
    if (!row.fits) text += "  does not fit";
    if (plan.rematerialized_nodes() > 0)
      text += fmt::format("  {} ops rematerialized", plan.rematerialized_nodes());
    text += '\n';
  }
  return text + "(PyTorch: without workspaces, which the peak has)\n";
}

std::string bytes_line(std::string_view name, std::int64_t bytes) {
  return fmt::format("{:<13}{:>16} bytes  {}\n", name, bytes, bytes_text(bytes));
}

// Of one world.
std::string details_text(const WorldPlan& plan) {
  const DeviceShard& device = plan.device();
  std::string text = bytes_line("peak", device.peak_bytes);
  if (device.peak_bytes < device.plain_bytes) {
    text += bytes_line("without", device.plain_bytes);
    text +=
        fmt::format("{:<13}{:>16} ops rematerialized\n", "recompute", plan.rematerialized_nodes());
  }
  if (device.host_bytes > 0) text += bytes_line("host memory", device.host_bytes);
  text += bytes_line("PyTorch", plan.eager_bytes());
  text += bytes_line("parameters", device.parameter_bytes);
  text += bytes_line("gradients", device.gradient_bytes);
  text += bytes_line("states", device.state_bytes);
  text += bytes_line("sent", static_cast<std::int64_t>(plan.sent_bytes));
  text += fmt::format(
      "{:<13}{:>13.3f} ms, {:.3f} ms of messages, of which {:.3f} ms are waited "
      "for\n",
      "step", 1e3 * plan.step_seconds, 1e3 * plan.message_seconds, 1e3 * plan.exposed_seconds);
  if (plan.stages.size() > 1) {
    text += fmt::format("{:<13}{:>15.1f} % of the step\n", "bubble",
                        100.0 * share_of_step(plan, plan.bubble_seconds));
    for (std::size_t i = 0; i < plan.stages.size(); ++i) {
      text += fmt::format("stage {:<7}{:>16} bytes  {}, {:.3f} ms of kernels\n", i,
                          plan.stages[i].peak_bytes, bytes_text(plan.stages[i].peak_bytes),
                          1e3 * plan.stages[i].time.kernel_seconds);
    }
  }
  return text;
}

}  // namespace

Outcome world_outcome(const WorldTable& table) {
  Json rows = Json::array();
  for (const WorldRow& row : table.rows) rows.push_back(row_record(table, row));
  Outcome outcome{.facts = Json::object({{"target", table.device},
                                         {"budget_bytes", table.budget_bytes},
                                         {"batch", table.batch},
                                         {"sequence", table.sequence},
                                         {"micro_batches", table.micro_batches},
                                         {"measured", false},
                                         {"worlds", std::move(rows)}})};
  outcome.text = fmt::format("{}, {} for each device; computed from a model, not measured\n\n",
                             table.device, bytes_text(table.budget_bytes));
  outcome.text += table_text(table);
  if (table.rows.size() == 1) outcome.text += "\n" + details_text(table.rows.front().plan);
  return outcome;
}

}  // namespace trainscope
