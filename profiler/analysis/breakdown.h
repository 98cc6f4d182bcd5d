// The time of profiled steps by call, kernel, op, ONNX node, layer, phase or pass, beside the FLOPs
// and bytes that the plan has for them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "engine/machine/machine.h"
#include "profiler/analysis/filter.h"
#include "profiler/analysis/step_times.h"

namespace trainscope::profiler {

enum class GroupBy : std::uint8_t { kCall, kKernel, kOp, kNode, kLayer, kPhase, kPass };
std::optional<GroupBy> group_named(std::string_view name);

// Sums over all steps. Time is the driving thread's, so that rows add up to the steps; FLOPs and
// bytes are of all threads.
struct BreakdownRow {
  std::string name = {};
  bool is_call = true;  // false: a copy, a wait, what was not recorded
  std::int64_t ns = 0;
  std::int64_t busy_ns = 0;          // of all threads together
  double median_ns = 0.0;            // of a step
  std::vector<double> step_ns = {};  // of each step, where they are kept
  std::int64_t runs = 0;
  double flops = 0.0;         // that kernels execute (profiler/analysis/roof.h)
  double direct_flops = 0.0;  // of the ops' definitions
  double bytes = 0.0;         // read and written, each operand once
  double roof_ns = 0.0;       // that it would take at the machine's roofs; 0: no machine is known

  double gflops() const { return ns == 0 ? 0.0 : flops / static_cast<double>(ns); }
  double gbs() const { return ns == 0 ? 0.0 : bytes / static_cast<double>(ns); }
  double roof() const { return ns == 0 ? 0.0 : roof_ns / static_cast<double>(ns); }
  double intensity() const { return bytes == 0.0 ? 0.0 : flops / bytes; }  // FLOPs a byte

  // Times, runs, FLOPs and bytes of another row with these; not what its steps took.
  void add(const BreakdownRow& row);
};

struct Breakdown {
  std::vector<BreakdownRow> rows = {};
  std::int64_t steps = 0;
  std::int64_t total_ns = 0;                // of the steps, whatever the filter leaves
  bool is_of_device = false;                // calls ran on a device of its own
  std::vector<double> step_ns = {};         // of each step, as well
  std::vector<std::size_t> run_steps = {};  // as StepTimes has them, and the next
  std::vector<RunMachine> machines = {};

  double share(const BreakdownRow& row) const {
    return total_ns == 0 ? 0.0 : static_cast<double>(row.ns) / static_cast<double>(total_ns);
  }
  double ms(std::int64_t ns) const {  // of a step
    return steps == 0 ? 0.0 : static_cast<double>(ns) / 1e6 / static_cast<double>(steps);
  }
};

// What a filter may ask of a call: call, name, kernel, op, node, layer, phase, pass, dtype; ms,
// busy_ms, share, count, flops, direct_flops, bytes (of a step), gflops, gbs, intensity, roof.
std::span<const FilterField> call_fields();

struct BreakdownWishes {
  // Of call_fields(): calls that do not match are left out; null: all stay, and what is no call.
  const Filter* filter = nullptr;
  const Machine* machine = nullptr;  // that ran the steps; null: not known
  bool keeps_steps = true;           // BreakdownRow::step_ns: of many steps they take much memory
};

// Rows that nothing ran for are left out.
Breakdown breakdown(const StepTimes& times, const PlanView& plan, GroupBy by,
                    const BreakdownWishes& wishes = {});

// The columns that rows can be sorted by, and that tables have: name, ms, median_ms, share, count,
// busy_ms, flops, direct_flops, bytes, gflops, gbs, intensity, roof. False for another one.
bool sort_rows(Breakdown& table, std::string_view column);
std::span<const std::string_view> column_names();
// Of a number column; flops, direct_flops, bytes and count of a step.
double column_of(const Breakdown& table, const BreakdownRow& row, std::string_view column);

// The rows of what training adds to a model, which no ONNX node has.
inline constexpr std::string_view kLossPart = "(loss)";
inline constexpr std::string_view kAccumulationPart = "(gradient accumulation)";
// The ONNX node that a call's time is counted for: the first of its sources, or else one of these,
// or else its own node.
std::string_view onnx_node_of(const PlanView& plan, const PlanCall& call);
// What a call belongs to in a table by this.
std::string group_name(const PlanView& plan, std::size_t call, GroupBy by);
// The name of its kernel, or else its kind.
std::string_view kernel_of(const PlanView& plan, const PlanCall& call);
// The scope of a name: what stands before its last slash, or else before its last dot.
std::string_view layer_of(std::string_view node);

}  // namespace trainscope::profiler
