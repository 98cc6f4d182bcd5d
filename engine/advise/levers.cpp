// The levers, in a row. Those that make a step fit are also taken together.
#include "engine/advise/levers.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace trainscope {
namespace {

constexpr std::string_view kSameBits = "none: the same bits";
constexpr std::int64_t kLossChunks = 8;
constexpr std::string_view kOrderOfSums = "sums are added in another order: the last bits differ";

Lever lever(std::string name, const StepChange& change, std::string_view cost) {
  return {.name = std::move(name),
          .change = change,
          .cost = std::string(cost),
          .same_bits = cost == kSameBits};
}

Lever with_reason(Lever of, bool does_nothing, std::string why_not) {
  if (does_nothing) of.why_not = std::move(why_not);
  return of;
}

// Pins alone are no trade: a planner may keep to them.
bool trades_memory(const RecomputeOptions& recompute) {
  const bool only_pins = recompute.mode == RecomputeMode::kClusters && recompute.clusters.empty();
  return recompute.mode != RecomputeMode::kNone && !only_pins;
}

std::vector<Lever> budget_levers(const CompileOptions& options, const LeverFacts& facts) {
  const bool has_one = trades_memory(options.recompute);
  const std::string why_not = "the step trades time for memory already";
  const std::int64_t bytes = budget_of(facts);
  return {with_reason(lever("memory budget", {.budget_bytes = bytes}, kSameBits), has_one, why_not),
          with_reason(lever("recompute", {.max_overhead = 0.1}, kSameBits), has_one, why_not),
          with_reason(lever("offload", {.budget_bytes = bytes, .offload = true}, kSameBits),
                      has_one, why_not)};
}

// "a quarter": micro-batches of as many examples as divide the batch.
std::vector<Lever> batch_levers(const LeverFacts& facts) {
  constexpr std::string_view kSplit =
      "gradients are averaged over the micro-batches: the last bits differ, and batch norms see "
      "fewer examples at once";
  std::vector<Lever> found;
  for (const std::int64_t split : {2, 4, 8}) {
    if (facts.batch % split != 0 || (split > 2 && !facts.memory_bytes)) continue;
    found.push_back(lever(
        fmt::format("{} micro-batches", split * facts.micro_batches),
        {.batch = facts.batch / split, .micro_batches = split * facts.micro_batches}, kSplit));
  }
  if (found.empty()) {
    found.push_back(with_reason(lever("micro-batches", {}, kSplit), true,
                                fmt::format("{} examples cannot be halved", facts.batch)));
  }
  found.push_back(lever("twice the batch", {.batch = 2 * facts.batch},
                        "other steps: fewer updates for as many examples, and a learning rate that "
                        "suits them"));
  return found;
}

std::vector<Lever> loss_levers(const TrainingOptions& training, const LeverFacts& facts) {
  const bool chunked = training.loss_chunks > 1;
  const bool skips = training.skip_ignored;
  const double counted = facts.labels_that_count.value_or(1.0);
  return {with_reason(lever("loss chunks", {.loss_chunks = kLossChunks}, kOrderOfSums),
                      chunked || skips,
                      chunked ? "the loss has chunks already"
                              : "--skip-ignored computes the loss in one chunk"),
          with_reason(lever("masked-label compaction", {.skip_ignored = true}, kOrderOfSums),
                      skips || chunked || counted >= 1.0,
                      skips || chunked ? "the loss is computed in another way already"
                                       : "all labels of a batch count")};
}

// Levers that lower the peak in different ways, to be in memory that one alone does not reach.
std::vector<Lever> joined_levers(const CompileOptions& options, const LeverFacts& facts) {
  if (!facts.memory_bytes || trades_memory(options.recompute)) return {};
  const std::int64_t bytes = *facts.memory_bytes;
  std::vector<Lever> found = {
      lever("optimizer in backward, memory budget",
            {.budget_bytes = bytes, .optimizer_in_backward = true}, kSameBits),
      with_reason(
          lever("optimizer in backward, loss chunks, memory budget",
                {.loss_chunks = kLossChunks, .budget_bytes = bytes, .optimizer_in_backward = true},
                kOrderOfSums),
          options.training.skip_ignored,
          "--skip-ignored and --loss-chunks do not go together: give one of them")};
  if (facts.batch % 2 == 0) {
    found.push_back(lever(
        "2 micro-batches, memory budget",
        {.batch = facts.batch / 2, .micro_batches = 2 * facts.micro_batches, .budget_bytes = bytes},
        kOrderOfSums));
  }
  return found;
}

}  // namespace

std::int64_t budget_of(const LeverFacts& facts) {
  if (facts.memory_bytes) return *facts.memory_bytes;
  constexpr std::int64_t kUnit = 4096;
  const std::int64_t half =
      facts.persistent_bytes + (facts.arena_bytes - facts.persistent_bytes) / 2;
  return (half + kUnit - 1) / kUnit * kUnit;
}

std::vector<Lever> levers(const CompileOptions& options, const LeverFacts& facts) {
  const TrainingOptions& training = options.training;
  std::vector<Lever> all = budget_levers(options, facts);
  all.push_back(
      with_reason(lever("optimizer in backward", {.optimizer_in_backward = true}, kSameBits),
                  training.optimizer.in_backward, "the step does so already"));
  all.push_back(with_reason(
      lever("bf16", {.precision = StepPrecision::kBF16},
            "activations and factors have 8 bits of mantissa; parameters, their gradients and sums "
            "stay f32: losses differ in the third digit or so"),
      training.precision == StepPrecision::kBF16 || training.precision == StepPrecision::kF16,
      "the step is in lower precision already"));
  all.push_back(with_reason(
      lever("threads", {.threads = facts.cores},
            "--deterministic strict keeps the bits, else the last bits differ"),
      facts.threads >= facts.cores, fmt::format("all {} cores are used already", facts.cores)));
  for (const std::vector<Lever>& more :
       {loss_levers(training, facts), batch_levers(facts), joined_levers(options, facts)}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace trainscope
