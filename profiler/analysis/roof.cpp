// FLOPs and bytes of the plan over the rates of a machine.
#include "profiler/analysis/roof.h"

#include <algorithm>

namespace trainscope::profiler {
namespace {

double of_threads(const Rate& rate, std::uint32_t threads) {
  return std::min(rate.all, rate.one * static_cast<double>(std::max(1U, threads)));
}

double flops_rate(const Machine& machine, std::string_view dtype, std::uint32_t threads) {
  const auto named = std::ranges::find(kAllDTypes, dtype, [](DType each) { return name_of(each); });
  const DType known = named == std::end(kAllDTypes) ? DType::kF32 : *named;
  return of_threads(machine.flops(known), threads);
}

double bytes_of_first_input(const PlanView& plan, const PlanCall& call) {
  if (call.inputs.count == 0) return 0.0;
  const std::uint32_t value = plan.operands[call.inputs.begin].value;
  return value == kNoRow ? 0.0 : static_cast<double>(plan.values[value].bytes);
}

}  // namespace

const MemoryLevel& level_of(const Machine& machine, const PlanView& plan, const PlanCall& call) {
  const bool is_tile = call.tile != kNoRow;
  const double cores = is_tile ? 1.0 : static_cast<double>(plan.facts().threads);
  const double bytes =
      static_cast<double>(call.bytes_read) + static_cast<double>(call.bytes_written);
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
                  .level = level.name};
  terms.arithmetic = rows * static_cast<double>(executed_flops(call)) /
                     flops_rate(machine, plan.text(call.dtype), threads);
  const double bytes_read =
      static_cast<double>(call.bytes_read) - (1.0 - rows) * bytes_of_first_input(plan, call);
  terms.traffic =
      bytes_read / terms.read_rate + static_cast<double>(call.bytes_written) / terms.write_rate;
  return terms;
}

double roof_ns(const Machine& machine, const PlanView& plan, const PlanCall& call, double rows) {
  return 1e9 * roof_terms(machine, plan, call, rows).seconds();
}

}  // namespace trainscope::profiler
