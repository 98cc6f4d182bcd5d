// What keeps a call from its roof: the largest of the losses that the plan and the machine tell of.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "engine/core/text.h"
#include "profiler/advise/reasons.h"
#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/roof.h"

namespace trainscope::profiler {
namespace {

constexpr double kAtRoof = 0.9;      // of it: nothing is to be explained
constexpr double kLeastPart = 0.15;  // of what is lost: else it explains nothing

struct Loss {
  double seconds = 0.0;
  std::string clause;
};

// Bytes of the kernel's own passes over its operands and workspace, at the level's rates.
double kernel_traffic(const RoofTerms& terms, const PlanCall& call) {
  if (call.kernel_bytes_read < 0) return 0.0;
  return terms.traffic_of(static_cast<double>(call.kernel_bytes_read),
                          static_cast<double>(call.kernel_bytes_written));
}

std::array<Loss, 4> losses(const Machine& machine, const PlanView& plan, const PlanCall& call,
                           const RoofTerms& terms) {
  const double roof = terms.seconds();
  const double traffic = kernel_traffic(terms, call);
  const auto bytes = static_cast<double>(call.bytes_read + call.bytes_written);
  const auto moved = static_cast<double>(call.kernel_bytes_read + call.kernel_bytes_written);
  const bool forks = plan.facts().threads > 1 && call.tile == kNoRow;
  const double start = machine.seconds_per_call + (forks ? machine.seconds_per_fork : 0.0);
  const double executed = static_cast<double>(executed_flops(call));
  const double defined = std::max(1.0, static_cast<double>(call.flops));
  return {{{.seconds = start,
            .clause = fmt::format("starting a call{} takes {:.1f} us, and the call is short",
                                  forks ? " and sharing it out among threads" : "", 1e6 * start)},
           {.seconds = traffic - roof,
            .clause = fmt::format("the kernel moves {:.1f} times the bytes of its operands: it "
                                  "transforms, packs or reads them again",
                                  bytes == 0.0 ? 0.0 : moved / bytes)},
           {.seconds = executed > defined ? terms.arithmetic * (1.0 - defined / executed) : 0.0,
            .clause = fmt::format("the kernel computes {:.2f} times the op's FLOPs, to fill whole "
                                  "registers or blocks",
                                  executed / defined)},
           {.seconds = std::min(terms.arithmetic, terms.traffic),
            .clause = fmt::format("arithmetic ({:.3f} ms) and bytes ({:.3f} ms) take nearly as "
                                  "long, and do not overlap",
                                  1e3 * terms.arithmetic, 1e3 * terms.traffic)}}};
}

std::string bound_of(const PlanView& plan, const PlanCall& call, const RoofTerms& terms) {
  if (terms.arithmetic >= terms.traffic) {
    return fmt::format("arithmetic in {}", plan.text(call.dtype));
  }
  if (terms.in_place == 0.0) return fmt::format("bytes of {}", terms.level);
  const auto bytes = static_cast<double>(call.bytes_read) + static_cast<double>(call.bytes_written);
  return fmt::format(
      "bytes of {}, {:.0f} % of them in place{}", terms.level, 200.0 * terms.in_place / bytes,
      terms.like_a_copy ? " at a copy's rate, as the machine has none for them" : "");
}

// The kernels that the plan would have preferred.
std::string refusals(const PlanView& plan, const PlanCall& call) {
  std::string text;
  for (const PlanOtherKernel& each : plan.kernels_before(call)) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", plan.text(each.kernel),
                        plan.text(each.reason));
  }
  return text;
}

}  // namespace

RoofReason roof_reason(const Machine& machine, const PlanView& plan, const PlanCall& call,
                       double seconds) {
  RoofTerms terms = roof_terms(machine, plan, call);
  if (call.tile != kNoRow) {  // one core has it, while the others have other tiles
    const auto threads = static_cast<double>(plan.facts().threads);
    terms.arithmetic *= threads;
    terms.traffic *= threads;
    terms.read_rate /= threads;
    terms.write_rate /= threads;
    terms.update_rate /= threads;
  }
  RoofReason reason{.share = seconds == 0.0 ? 0.0 : terms.seconds() / seconds};
  reason.bound = bound_of(plan, call, terms);
  if (reason.share >= kAtRoof) return reason;
  const std::array<Loss, 4> all = losses(machine, plan, call, terms);
  const Loss& largest = *std::ranges::max_element(all, {}, &Loss::seconds);
  const double lost = seconds - terms.seconds();
  if (largest.seconds >= kLeastPart * lost) {
    reason.reason = largest.clause;
  } else {
    reason.reason =
        fmt::format("its kernel {} reaches no more on these shapes", kernel_of(plan, call));
  }
  const std::string refused = refusals(plan, call);
  if (!refused.empty()) reason.reason += fmt::format("; not taken was {}", refused);
  return reason;
}

}  // namespace trainscope::profiler
