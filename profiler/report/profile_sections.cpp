// Sections about the profile and the plan: where the time goes, rooflines, memory.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "engine/core/byte_count.h"
#include "engine/core/text.h"
#include "profiler/advise/reasons.h"
#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/roof.h"
#include "profiler/report/charts.h"
#include "profiler/report/html.h"
#include "profiler/report/sections.h"

namespace trainscope::profiler {
namespace {

constexpr std::size_t kRows = 15;
constexpr std::size_t kTopCalls = 25;
constexpr std::size_t kTopBuffers = 20;

std::string sentences_text(std::span<const std::string> sentences) {
  std::string text;
  for (const std::string& each : sentences) text += (text.empty() ? "" : " ") + escaped(each, 1000);
  return element("p", {}, text);
}

Breakdown table_by(const ReportInput& input, GroupBy by) {
  Breakdown table = breakdown(*input.times, *input.plan, by,
                              {.machine = input.machine ? &*input.machine : nullptr});
  sort_rows(table, "ms");
  return table;
}

std::string number_or_blank(double value, int digits) {
  return value == 0.0 ? std::string() : fmt::format("{:.{}f}", value, digits);
}

std::string time_table(const ReportInput& input, GroupBy by, std::string_view title,
                       std::size_t most) {
  const Breakdown table = table_by(input, by);
  std::vector<TableColumn> columns = {
      {std::string(title)}, {"share"}, {"ms", true}, {"GFLOP/s", true}, {"GB/s", true}};
  if (input.machine) columns.push_back({"of its roof", true});
  HtmlTable rows(columns);
  for (std::size_t i = 0; i < std::min(most, table.rows.size()); ++i) {
    const BreakdownRow& row = table.rows[i];
    const std::string name =
        row.is_call ? element("code", {}, escaped(row.name)) : escaped("(" + row.name + ")");
    std::vector<std::string> cells = {
        name, bar(table.share(row), fmt::format("{:.1f} %", 100.0 * table.share(row))),
        fmt::format("{:.4f}", table.ms(row.ns)), number_or_blank(row.gflops(), 2),
        number_or_blank(row.gbs(), 2)};
    if (input.machine)
      cells.push_back(row.roof() == 0.0 ? std::string()
                                        : fmt::format("{:.0f} %", 100.0 * row.roof()));
    rows.add(std::move(cells));
  }
  std::string text = element("h3", {}, fmt::format("By {}", title)) + rows.text();
  if (table.rows.size() > most) {
    text += element("p", {{"class", "soft"}},
                    fmt::format("The first {} of {} rows.", most, table.rows.size()));
  }
  return text;
}

std::string dims_text(const PlanView& plan, const PlanOperand& operand) {
  if (operand.value == kNoRow) return "-";
  return std::string(plan.text(operand.dtype)) + shape_text(rows_of(plan.dims, operand.shape));
}

std::string shapes_text(const PlanView& plan, const PlanCall& call) {
  std::string text;
  for (const PlanOperand& input : rows_of(plan.operands, call.inputs)) {
    text += (text.empty() ? "" : ", ") + dims_text(plan, input);
  }
  return text;
}

std::string top_calls(const ReportInput& input) {
  const PlanView& plan = *input.plan;
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  for (std::size_t i = 0; i < input.times->calls.size(); ++i) {
    const std::int64_t ns = input.times->calls[i].sum();
    if (ns > 0) order.emplace_back(ns, i);
  }
  std::ranges::stable_sort(order, std::ranges::greater{},
                           &std::pair<std::int64_t, std::size_t>::first);
  HtmlTable rows({{"call", true},
                  {"node"},
                  {"ONNX node"},
                  {"op"},
                  {"kernel"},
                  {"inputs"},
                  {"ms", true},
                  {"share", true}});
  const auto steps = static_cast<double>(std::max<std::size_t>(1, input.times->steps.size()));
  for (std::size_t i = 0; i < std::min(kTopCalls, order.size()); ++i) {
    const auto& [ns, id] = order[i];
    const PlanCall& call = plan.calls[id];
    rows.add({std::to_string(id), element("code", {}, escaped(plan.name_of(call))),
              element("code", {}, escaped(onnx_node_of(plan, call))), escaped(plan.op_of(call)),
              escaped(plan.text(call.kernel)), escaped(shapes_text(plan, call), 100),
              fmt::format("{:.4f}", static_cast<double>(ns) / 1e6 / steps),
              fmt::format("{:.1f} %", 100.0 * static_cast<double>(ns) /
                                          static_cast<double>(input.times->total_ns))});
  }
  return element("h3", {}, "Calls that take longest") + rows.text();
}

// Of one dtype: its calls by op, at the roofs of all cores that the plan uses.
std::string roofline_of(const ReportInput& input, DType dtype) {
  const PlanView& plan = *input.plan;
  const Filter filter = Filter::parse(fmt::format("dtype=={}", name_of(dtype)), call_fields());
  const Breakdown table =
      breakdown(*input.times, plan, GroupBy::kOp, {.filter = &filter, .machine = &*input.machine});
  RooflineChart chart{.title = fmt::format("Ops in {}: each circle's area is its share of the step",
                                           name_of(dtype))};
  const bool all = plan.facts().threads > 1;
  const Rate& peak = input.machine->flops(dtype);
  chart.peak_flops = all ? peak.all : peak.one;
  for (const MemoryLevel& level : input.machine->levels) {
    chart.levels.emplace_back(level.name, all ? level.read.all : level.read.one);
  }
  for (const BreakdownRow& row : table.rows) {
    if (!row.is_call || row.ns == 0) continue;
    chart.points.push_back({.name = row.name,
                            .intensity = row.intensity(),
                            .flops = row.gflops() * 1e9,
                            .share = table.share(row)});
  }
  return roofline_chart(chart);
}

std::string peak_table(const PlanView& plan, const MemoryPeak& peak) {
  HtmlTable classes({{"class"}, {"share of the peak"}, {"bytes", true}});
  for (std::size_t i = 0; i < kBufferClasses; ++i) {
    const std::int64_t bytes = peak.bytes_of[i];
    if (bytes == 0) continue;
    classes.add({std::string(name_of(static_cast<BufferClass>(i))),
                 bar(peak.share(bytes), fmt::format("{:.1f} %", 100.0 * peak.share(bytes))),
                 bytes_text(bytes)});
  }
  HtmlTable rows({{"buffer"}, {"class"}, {"written first by"}, {"times"}, {"bytes", true}});
  for (std::size_t i = 0; i < std::min(kTopBuffers, peak.alive.size()); ++i) {
    const PlanBuffer& buffer = plan.buffers[peak.alive[i]];
    rows.add({element("code", {}, escaped(plan.text(buffer.label))),
              std::string(name_of(buffer.holds)),
              element("code", {}, escaped(plan.text(buffer.producer))),
              fmt::format("{} to {}", buffer.begin, buffer.end), bytes_text(buffer.bytes)});
  }
  return classes.text() +
         element("h3", {},
                 fmt::format("The largest of {} buffers that are alive then", peak.alive.size())) +
         rows.text();
}

}  // namespace

std::string time_section(const ReportInput& input) {
  if (!input.times || !input.plan || input.times->steps.empty()) {
    return element("p", {},
                   "This session was not profiled: <code>trainscope profile</code>, or "
                   "<code>train --profile steps=+6:25</code>, records where its time goes.");
  }
  const auto steps = input.times->steps.size();
  const Machine* machine = input.machine ? &*input.machine : nullptr;
  std::string text = sentences_text(time_sentences(*input.times, *input.plan, machine));
  text += element("p", {},
                  fmt::format("{} profiled steps of {} on average; time is that of the "
                              "driving thread, and each table adds up to the step.",
                              steps,
                              duration_text(static_cast<double>(input.times->total_ns) /
                                            static_cast<double>(steps))));
  text += element("div", {{"class", "columns"}},
                  element("div", {}, time_table(input, GroupBy::kPhase, "phase", kRows)) +
                      element("div", {}, time_table(input, GroupBy::kOp, "op", kRows)) +
                      element("div", {}, time_table(input, GroupBy::kLayer, "layer", kRows)) +
                      element("div", {}, time_table(input, GroupBy::kNode, "ONNX node", kRows)));
  return text + top_calls(input);
}

std::string roofline_section(const ReportInput& input) {
  if (!input.times || !input.plan || input.times->steps.empty()) return {};
  if (!input.machine) {
    return element(
        "p", {},
        "No machine was measured: <code>trainscope doctor --roofs --out machine.json</code>, then "
        "<code>trainscope report RUN --machine machine.json</code>.");
  }
  std::string text;
  for (const auto& [dtype, rate] : input.machine->flops_per_second)
    text += roofline_of(input, dtype);
  return text;
}

std::string memory_section(const ReportInput& input) {
  if (!input.plan) return element("p", {}, "The run has no plan yet.");
  const PlanView& plan = *input.plan;
  const std::vector<std::int64_t> live = live_bytes(plan);
  if (live.empty()) return element("p", {}, "The plan has no calls.");
  const MemoryPeak peak = memory_peak(plan);
  Line bytes{.name = "bytes alive", .color = 0};
  for (std::size_t t = 0; t < live.size(); ++t) {
    bytes.points.emplace_back(static_cast<double>(t), static_cast<double>(live[t]) / (1 << 20));
  }
  std::string text = sentences_text(peak_sentences(plan, peak));
  text += memory_chart(plan);
  text += line_chart({.title = "Bytes alive",
                      .x_label = "time: the calls of a step, in order",
                      .y_label = "MiB",
                      .lines = {bytes},
                      .from_zero = true});
  return text + element("h3", {}, "What holds the peak") + peak_table(plan, peak);
}

}  // namespace trainscope::profiler
