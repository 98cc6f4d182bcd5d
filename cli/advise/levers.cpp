// The table of levers. Those that make a step fit are also taken together.
#include "cli/advise/levers.h"

#include <fmt/format.h>

#include <utility>

namespace trainscope {
namespace {

constexpr std::string_view kSameBits = "none: the same bits";
constexpr std::string_view kOrderOfSums = "sums are added in another order: the last bits differ";

GivenFlag flag(std::string_view name, std::string text) {
  return {.name = name, .texts = {std::move(text)}};
}
GivenFlag turned_on(std::string_view name) { return flag(name, "on"); }
GivenFlag budget_flag(std::int64_t bytes) { return flag("memory-budget", std::to_string(bytes)); }

Lever lever(std::string name, std::vector<GivenFlag> flags, std::string_view cost) {
  return {.name = std::move(name),
          .flags = std::move(flags),
          .cost = std::string(cost),
          .same_bits = cost == kSameBits};
}

Lever with_reason(Lever of, bool does_nothing, std::string why_not) {
  if (does_nothing) of.why_not = std::move(why_not);
  return of;
}

bool trades_memory(const Settings& settings) {
  return settings.has("memory-budget") || settings.has("max-overhead") ||
         settings.text("recompute") != "none";
}

std::vector<Lever> budget_levers(const Settings& settings, const LeverFacts& facts) {
  const bool has_one = trades_memory(settings);
  const std::string why_not = "the step trades time for memory already";
  const std::int64_t bytes = budget_of(facts);
  return {
      with_reason(lever("memory budget", {budget_flag(bytes)}, kSameBits), has_one, why_not),
      with_reason(lever("recompute", {flag("max-overhead", "10%")}, kSameBits), has_one, why_not),
      with_reason(lever("offload", {budget_flag(bytes), turned_on("offload")}, kSameBits), has_one,
                  why_not)};
}

// "a quarter": micro-batches of as many examples as divide the batch.
std::vector<Lever> batch_levers(const LeverFacts& facts) {
  constexpr std::string_view kSplit =
      "gradients are averaged over the micro-batches: the last bits differ, and batch norms see "
      "fewer examples at once";
  std::vector<Lever> found;
  for (const std::int64_t parts : {2, 4, 8}) {
    if (facts.batch % parts != 0 || (parts > 2 && !facts.memory_bytes)) continue;
    found.push_back(lever(fmt::format("{} micro-batches", parts * facts.micro_batches),
                          {flag("batch", std::to_string(facts.batch / parts)),
                           flag("accumulate", std::to_string(parts * facts.micro_batches))},
                          kSplit));
  }
  if (found.empty()) {
    found.push_back(with_reason(lever("micro-batches", {}, kSplit), true,
                                fmt::format("{} examples cannot be halved", facts.batch)));
  }
  found.push_back(lever("twice the batch", {flag("batch", std::to_string(2 * facts.batch))},
                        "other steps: fewer updates for as many examples, and a learning rate that "
                        "suits them"));
  return found;
}

std::vector<Lever> loss_levers(const Settings& settings, const LeverFacts& facts) {
  const bool chunked = settings.integer("loss-chunks") > 1;
  const bool skips = settings.on("skip-ignored");
  const double counted = facts.labels_that_count.value_or(1.0);
  return {
      with_reason(lever("loss chunks", {flag("loss-chunks", "8")}, kOrderOfSums), chunked || skips,
                  chunked ? "the loss has chunks already"
                          : "--skip-ignored computes the loss in one chunk"),
      with_reason(lever("masked-label compaction", {turned_on("skip-ignored")}, kOrderOfSums),
                  skips || chunked || counted >= 1.0,
                  skips || chunked ? "the loss is computed in another way already"
                                   : "all labels of a batch count")};
}

// Levers that lower different parts of the peak, to be in memory that one alone does not reach.
std::vector<Lever> joined_levers(const Settings& settings, const LeverFacts& facts) {
  if (!facts.memory_bytes || trades_memory(settings)) return {};
  const GivenFlag budget = budget_flag(*facts.memory_bytes);
  std::vector<Lever> found = {
      lever("optimizer in backward, memory budget", {turned_on("optimizer-in-backward"), budget},
            kSameBits),
      lever("optimizer in backward, loss chunks, memory budget",
            {turned_on("optimizer-in-backward"), flag("loss-chunks", "8"), budget}, kOrderOfSums)};
  if (facts.batch % 2 == 0) {
    found.push_back(lever("2 micro-batches, memory budget",
                          {flag("batch", std::to_string(facts.batch / 2)),
                           flag("accumulate", std::to_string(2 * facts.micro_batches)), budget},
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

std::vector<Lever> levers(const Settings& settings, const LeverFacts& facts) {
  std::vector<Lever> all = budget_levers(settings, facts);
  all.push_back(
      with_reason(lever("optimizer in backward", {turned_on("optimizer-in-backward")}, kSameBits),
                  settings.on("optimizer-in-backward"), "the step does so already"));
  all.push_back(with_reason(
      lever("bf16", {flag("precision", "bf16")},
            "activations and factors have 8 bits of mantissa; parameters, their gradients and sums "
            "stay f32: losses differ in the third digit or so"),
      settings.text("precision") != "f32", "the step is in lower precision already"));
  all.push_back(with_reason(
      lever("threads", {flag("threads", std::to_string(facts.cores))},
            "--deterministic strict keeps the bits, else the last bits differ"),
      facts.threads >= facts.cores, fmt::format("all {} cores are used already", facts.cores)));
  for (const std::vector<Lever>& more :
       {loss_levers(settings, facts), batch_levers(facts), joined_levers(settings, facts)}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace trainscope
