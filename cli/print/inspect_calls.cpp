// `inspect --calls`: what computes each call of the step, and why no other kernel does.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/print/inspect.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope {
namespace {

bool stems_from(const PlanView& plan, const PlanCall& call, const std::string& name) {
  return std::ranges::any_of(plan.sources_of(call),
                             [&](TextId source) { return plan.text(source) == name; });
}

// The positions of all calls, or of those of one node: its batch tiles.
std::vector<std::size_t> calls_of(const PlanView& plan, const std::string& at) {
  std::vector<std::size_t> found(plan.calls.size());
  std::iota(found.begin(), found.end(), std::size_t{0});
  if (at.empty()) return found;
  const std::size_t one = find_call(plan, at);
  const PlanCall& asked = plan.calls[one];
  std::erase_if(found, [&](std::size_t i) {
    const PlanCall& call = plan.calls[i];
    const bool same_node = asked.node != kNoRow && call.node == asked.node;
    return i != one && !(same_node && call.kind == asked.kind);
  });
  return found;
}

// "not relu.wide: no AVX512 on this processor": a line for each.
void add_others(const PlanView& plan, std::span<const PlanOtherKernel> others, Json& rows,
                std::string& text) {
  for (const PlanOtherKernel& other : others) {
    const std::string_view kernel = plan.text(other.kernel);
    const std::string_view reason = plan.text(other.reason);
    rows.push_back(Json::object({{"kernel", kernel}, {"reason", reason}}));
    text += fmt::format("{:>8}   not {}: {}\n", "", printable(kernel), printable(reason));
  }
}

// What the calls do together, and how many of them each kernel computes.
Json sums_of(const PlanView& plan, std::span<const std::size_t> indices) {
  std::int64_t flops = 0;
  std::int64_t read = 0;
  std::int64_t written = 0;
  std::map<std::string_view, std::int64_t> kernels;
  for (const std::size_t index : indices) {
    const PlanCall& call = plan.calls[index];
    flops += call.flops;
    read += call.bytes_read;
    written += call.bytes_written;
    ++kernels[profiler::kernel_of(plan, call)];
  }
  Json counts = Json::object();
  for (const auto& [kernel, count] : kernels) counts.set(std::string(kernel), count);
  return Json::object({{"flops", flops},
                       {"bytes_read", read},
                       {"bytes_written", written},
                       {"kernels", std::move(counts)}});
}

}  // namespace

std::size_t find_call(const PlanView& plan, const std::string& at) {
  std::vector<std::string> names;
  for (const PlanCall& call : plan.calls) {
    names.emplace_back(plan.name_of(call));
    if (names.back() == at) return names.size() - 1;
  }
  for (std::size_t i = 0; i < plan.calls.size(); ++i) {
    if (stems_from(plan, plan.calls[i], at)) return i;
  }
  const std::optional<std::int64_t> number = parse_int(at);
  if (number && *number >= 0 && static_cast<std::size_t>(*number) < plan.calls.size()) {
    return static_cast<std::size_t>(*number);
  }
  throw Error(ErrorCode::kUsage, fmt::format("--at: there is no call or node '{}'", printable(at)))
      .hint(nearest_hint(at, names))
      .hint(fmt::format("give a node's name, or a number from 0 to {}", plan.calls.size() - 1));
}

Outcome describe_calls(const PlanView& plan, const std::string& at) {
  require(!plan.calls.empty(), ErrorCode::kBadInput, "the plan has no calls");
  Outcome outcome;
  outcome.text = fmt::format("{:>8}  {:<8} {:<24} {:<28} {:<6} {}\n", "call", "phase", "op",
                             "kernel", "dtype", "node");
  Json rows = Json::array();
  const std::vector<std::size_t> indices = calls_of(plan, at);
  for (const std::size_t index : indices) {
    const PlanCall& call = plan.calls[index];
    const std::string_view op =
        call.kind == PlanCallKind::kKernel ? plan.op_of(call) : name_of(call.kind);
    outcome.text += fmt::format("{:>8}  {:<8} {:<24} {:<28} {:<6} {}\n", index, name_of(call.phase),
                                printable(op), printable(plan.text(call.kernel)),
                                printable(plan.text(call.dtype)), printable(plan.name_of(call)));
    Json refused = Json::array();
    Json behind = Json::array();
    add_others(plan, plan.kernels_before(call), refused, outcome.text);
    add_others(plan, plan.kernels_behind(call), behind, outcome.text);
    rows.push_back(Json::object({{"id", index},
                                 {"kind", name_of(call.kind)},
                                 {"phase", name_of(call.phase)},
                                 {"node", plan.name_of(call)},
                                 {"op", plan.op_of(call)},
                                 {"kernel", plan.text(call.kernel)},
                                 {"dtype", plan.text(call.dtype)},
                                 {"flops", call.flops},
                                 {"bytes_read", call.bytes_read},
                                 {"bytes_written", call.bytes_written},
                                 {"workspace_bytes", call.workspace_bytes},
                                 {"refused", std::move(refused)},
                                 {"behind", std::move(behind)}}));
  }
  outcome.facts = sums_of(plan, indices);
  outcome.facts.set("calls", std::move(rows));
  return outcome;
}

}  // namespace trainscope
