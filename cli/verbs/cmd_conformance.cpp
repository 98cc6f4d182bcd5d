// conformance: ONNX's own backend tests on this engine.
#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/flags/check_flags.h"
#include "cli/flags/invocation.h"
#include "engine/check/conformance.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr Flag kConformanceFlags[] = {
    {.name = "passes",
     .type = FlagType::kChoice,
     .value = "all|none",
     .fallback = "all",
     .help = "all: the whole pipeline, planned; none: node by node as imported"},
    {.name = "known-inputs",
     .type = FlagType::kChoice,
     .value = "needed|all",
     .fallback = "needed",
     .help = "Inputs that become constants: those that shapes depend on, or all"},
};

constexpr Verdict kVerdicts[] = {Verdict::kPass, Verdict::kWrong, Verdict::kError,
                                 Verdict::kUnsupported};

ConformanceOptions conformance_options(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const bool none = settings.text("passes") == "none";
  const bool all_known = settings.text("known-inputs") == "all";
  return {.passes = none ? ConformancePasses::kNone : ConformancePasses::kAll,
          .known = all_known ? KnownInputs::kAll : KnownInputs::kNeeded,
          .pass_options = pass_options(invocation),
          .lower = lower_options(invocation)};
}

std::size_t count(const std::vector<ConformanceTest>& tests, Verdict verdict) {
  return static_cast<std::size_t>(std::ranges::count(tests, verdict, &ConformanceTest::verdict));
}

Json facts(const std::vector<ConformanceTest>& tests) {
  Json list = Json::array();
  for (const ConformanceTest& test : tests) {
    list.push_back(
        Json::object({{"name", test.name}, {"verdict", name_of(test.verdict)}, {"why", test.why}}));
  }
  return Json::object({{"pass", count(tests, Verdict::kPass)},
                       {"wrong", count(tests, Verdict::kWrong)},
                       {"error", count(tests, Verdict::kError)},
                       {"unsupported", count(tests, Verdict::kUnsupported)},
                       {"tests", std::move(list)}});
}

std::string text(const std::vector<ConformanceTest>& tests) {
  std::string lines;
  for (const ConformanceTest& test : tests) {
    if (test.verdict == Verdict::kPass) continue;
    lines += fmt::format("{:11} {}: {}\n", name_of(test.verdict), printable(test.name),
                         printable(test.why, 400));
  }
  lines += fmt::format("{} tests:", tests.size());
  for (Verdict verdict : kVerdicts) {
    lines += fmt::format(" {} {}{}", count(tests, verdict), name_of(verdict),
                         verdict == Verdict::kUnsupported ? "\n" : ",");
  }
  return lines;
}

Outcome conformance_verb(const Invocation& invocation) {
  const ConformanceOptions options = conformance_options(invocation);
  std::vector<ConformanceTest> tests;
  for (const std::string& folder : invocation.arguments()) {
    std::vector<ConformanceTest> found = run_conformance(folder, options);
    std::move(found.begin(), found.end(), std::back_inserter(tests));
  }
  Outcome outcome{.facts = facts(tests), .text = text(tests)};
  bool failed = count(tests, Verdict::kWrong) + count(tests, Verdict::kError) > 0;
  if (failed) outcome.exit_code = static_cast<int>(ErrorCode::kMismatch);
  return outcome;
}

}  // namespace

Command conformance_command() {
  return {.name = "conformance",
          .summary = "Run ONNX's backend tests; exit 9 when any is wrong or an error.",
          .arguments = {{.name = "TEST_DIR",
                         .help = "searched for folders with model.onnx and test_data_set_N",
                         .repeated = true}},
          .flags = join_flags({kConformanceFlags, check_flags()}),
          .examples = {"trainscope conformance /usr/share/libonnx-testdata/data",
                       "trainscope conformance node/test_relu --passes none --json"},
          .run = conformance_verb};
}

}  // namespace trainscope
