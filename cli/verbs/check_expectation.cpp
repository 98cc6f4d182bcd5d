// What check --expect says.
#include "cli/verbs/check_expectation.h"

#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("\n    {}", printable(name));
  return text;
}

void add_parameters(const ExpectationResult& result, Json& facts, Outcome& outcome) {
  const std::size_t equal = result.expected - result.untrained.size();
  facts.set("parameters", result.expected);
  facts.set("equal_parameters", equal);
  facts.set("untrained", Json::list(result.untrained));
  facts.set("unexpected", Json::list(result.unexpected));
  outcome.text += fmt::format("{} of {} parameters\n", equal, result.expected);
  if (!result.untrained.empty()) {
    outcome.text += fmt::format("  not trained here:{}\n", listed(result.untrained));
  }
  if (!result.unexpected.empty()) {
    outcome.text += fmt::format("  trained here, but not expected:{}\n", listed(result.unexpected));
  }
}

}  // namespace

void add_expectation(const ExpectationResult& result, Outcome& outcome) {
  Json facts = Json::object({{"loss", result.loss},
                             {"expected_loss", result.expected_loss},
                             {"loss_equal", result.loss_equal}});
  outcome.text +=
      fmt::format("first loss {}: {:.9g} here, {:.9g} expected\n",
                  result.loss_equal ? "equal" : "DIFFERS", result.loss, result.expected_loss);
  if (result.names_given) add_parameters(result, facts, outcome);
  outcome.facts.set("expected", std::move(facts));
  if (!result.all_equal()) outcome.exit_code = static_cast<int>(ErrorCode::kMismatch);
}

}  // namespace trainscope
