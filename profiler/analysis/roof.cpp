// FLOPs and bytes of the plan over the rates of a machine.
#include "profiler/analysis/roof.h"

#include <algorithm>

namespace trainscope::profiler {
namespace {

double of_threads(const Rate& rate, std::uint32_t threads) {
  return std::min(rate.all, rate.one * static_cast<double>(std::max(1U, threads)));
}

DType dtype_named(std::string_view name) {
  const auto named = std::ranges::find(kAllDTypes, name, [](DType each) { return name_of(each); });
  return named == std::end(kAllDTypes) ? DType::kF32 : *named;
}

double flops_rate(const Machine& machine, std::string_view dtype, std::uint32_t threads) {
  return of_threads(machine.flops(dtype_named(dtype)), threads);
}

double bytes_of_first_input(const PlanView& plan, const PlanCall& call) {
  if (call.inputs.count == 0) return 0.0;
  const std::uint32_t value = plan.operands[call.inputs.begin].value;
  return value == kNoRow ? 0.0 : static_cast<double>(plan.values[value].bytes);
}

// Of what the call has of a value: all of it, unless the record has the slice's shape.
std::int64_t operand_bytes(const PlanView& plan, const PlanOperand& operand) {
  if (operand.dtype == 0) return plan.values[operand.value].bytes;
  auto bytes = static_cast<std::int64_t>(size_of(dtype_named(plan.text(operand.dtype))));
  for (const std::int64_t dim : rows_of(plan.dims, operand.shape)) bytes *= dim;
  return bytes;
}

// Bytes that both have.
std::int64_t shared_bytes(const PlanView& plan, const PlanOperand& a, const PlanOperand& b) {
  if (a.value == kNoRow || b.value == kNoRow || a.buffer == kNoRow || a.buffer != b.buffer) {
    return 0;
  }
  const std::int64_t begin = std::max(a.offset, b.offset);
  const std::int64_t end =
      std::min(a.offset + operand_bytes(plan, a), b.offset + operand_bytes(plan, b));
  return std::max<std::int64_t>(0, end - begin);
}

}  // namespace

std::int64_t bytes_in_place(const PlanView& plan, const PlanCall& call) {
  std::int64_t bytes = 0;
  for (const PlanOperand& output : rows_of(plan.operands, call.outputs)) {
    std::int64_t most = 0;
    for (const PlanOperand& input : rows_of(plan.operands, call.inputs)) {
      most = std::max(most, shared_bytes(plan, output, input));
    }
    bytes += most;
  }
  return std::min({bytes, call.bytes_read, call.bytes_written});
}

double RoofTerms::traffic_of(double bytes_read, double bytes_written) const {
  const double both = std::min({in_place, bytes_read, bytes_written});
  return (bytes_read - both) / read_rate + (bytes_written - both) / write_rate +
         (both > 0.0 ? 2.0 * both / update_rate : 0.0);
}

std::vector<Roof> roofs_of(const Machine& machine, std::uint32_t threads) {
  std::vector<Roof> roofs;
  double highest = 0.0;
  for (const auto& [dtype, rate] : machine.flops_per_second) {
    const double gflops = of_threads(rate, threads) / 1e9;
    roofs.push_back({.name = std::string(name_of(dtype)), .gflops = gflops});
    highest = std::max(highest, gflops);
  }
  for (const MemoryLevel& level : machine.levels) {
    roofs.push_back(
        {.name = level.name, .gbs = of_threads(level.read, threads) / 1e9, .gflops = highest});
  }
  return roofs;
}

const MemoryLevel& level_of(const Machine& machine, const PlanView& plan, const PlanCall& call) {
  const bool is_tile = call.tile != kNoRow;
  const double cores = is_tile ? 1.0 : static_cast<double>(plan.facts().threads);
  const double bytes = static_cast<double>(call.bytes_read) +
                       static_cast<double>(call.bytes_written) -
                       static_cast<double>(bytes_in_place(plan, call));
  for (const MemoryLevel& level : machine.levels) {
    const bool is_own = level.name == "L1" || level.name == "L2";
    if (bytes <= static_cast<double>(level.bytes) * (is_own ? cores : 1.0)) return level;
  }
  return machine.memory();
}

std::int64_t executed_flops(const PlanCall& call) {
  return call.kernel_flops >= 0 ? call.kernel_flops : call.flops;
}

RoofTerms roof_terms(const Machine& machine, const PlanView& plan, const PlanCall& call,
                     double rows) {
  const std::uint32_t threads = plan.facts().threads;
  const MemoryLevel& level = level_of(machine, plan, call);
  RoofTerms terms{.read_rate = of_threads(level.read, threads),
                  .write_rate = of_threads(level.write, threads),
                  .update_rate = of_threads(level.in_place(), threads),
                  .in_place = static_cast<double>(bytes_in_place(plan, call)),
                  .like_a_copy = !level.update,
                  .level = level.name};
  terms.arithmetic = rows * static_cast<double>(executed_flops(call)) /
                     flops_rate(machine, plan.text(call.dtype), threads);
  const double bytes_read =
      static_cast<double>(call.bytes_read) - (1.0 - rows) * bytes_of_first_input(plan, call);
  terms.traffic = terms.traffic_of(bytes_read, static_cast<double>(call.bytes_written));
  return terms;
}

double roof_ns(const Machine& machine, const PlanView& plan, const PlanCall& call, double rows) {
  return 1e9 * roof_terms(machine, plan, call, rows).seconds();
}

}  // namespace trainscope::profiler
