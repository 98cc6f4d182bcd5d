// The flag of each field of a change.
#include "cli/advise/lever_flags.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trainscope {
std::vector<GivenFlag> flags_of(const StepChange& change, const Settings& settings) {
  std::vector<GivenFlag> flags;
  const auto add = [&flags](std::string_view name, std::string text) {
    flags.push_back({.name = name, .texts = {std::move(text)}});
  };
  const auto add_number = [&add](std::string_view name, std::optional<std::int64_t> number) {
    if (number) add(name, std::to_string(*number));
  };
  const auto add_switch = [&add](std::string_view name, bool on) {
    if (on) add(name, "on");
  };
  add_number("batch", change.batch);
  add_number("accumulate", change.micro_batches);
  add_switch("optimizer-in-backward", change.optimizer_in_backward);
  add_number("loss-chunks", change.loss_chunks);
  add_switch("skip-ignored", change.skip_ignored);
  add_number("memory-budget", change.budget_bytes);
  if (change.max_overhead) add("max-overhead", fmt::format("{:g}%", 100.0 * *change.max_overhead));
  // A level of this call, which can only be none, would contradict the two.
  const bool is_limited = change.budget_bytes || change.max_overhead;
  if (is_limited && settings.given("recompute")) add("recompute", "auto");
  add_switch("offload", change.offload);
  if (change.precision) add("precision", std::string(name_of(*change.precision)));
  add_number("threads", change.threads);
  return flags;
}

}  // namespace trainscope
