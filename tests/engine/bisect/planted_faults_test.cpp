// Mistakes planted in steps of four models: the guilty op, update or statistic is named, correct
// runs are silent.
#include "tests/engine/bisect/planted_faults.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/ir/op_def.h"

namespace trainscope::test {
namespace {

const Subject& subject_of(const Fault& fault) {
  static std::map<std::string, std::unique_ptr<Subject>> subjects;
  const std::string key = fmt::format("{}/{}", fault.model, name_of(fault.optimizer));
  std::unique_ptr<Subject>& subject = subjects[key];
  if (!subject) subject = std::make_unique<Subject>(fault.model, fault.optimizer);
  return *subject;
}

std::string text_of(const LocalFault& fault) {
  return fmt::format("{} step {} {} {} of {} '{}': {:.2e}, {:.3g} times its limit; {}",
                     name_of(fault.kind), fault.step, profiler::name_of(fault.phase), fault.key,
                     fault.op, fault.node, fault.error, fault.over_limit().value_or(0.0),
                     fault.cause);
}

// What was found first, and whether that is what was planted.
struct Found {
  bool named = false;
  std::string said = "nothing";
};

Found find(const Fault& fault, bool with_elements) {
  const Subject& subject = subject_of(fault);
  Planter planter(subject);
  const Expected expected = fault.plant(planter);
  const RunReplay run = replayed(subject, planter.graph(), {.with_elements = with_elements});
  if (run.faults.empty()) return {};
  const auto when = [](const LocalFault& each) { return std::pair(each.step, each.order); };
  CHECK(std::ranges::is_sorted(run.faults, {}, when));
  const LocalFault& first = run.faults.front();
  if (first.phase != profiler::TracePhase::kForward) CHECK(first.order > 0);
  const bool named = first.kind == expected.kind &&
                     (expected.node.empty() || first.node == expected.node) &&
                     (expected.key.empty() || first.key == expected.key);
  return {.named = named, .said = text_of(first) + ", planted in " + expected.node};
}

std::size_t count_named(std::span<const Fault> faults, bool with_elements) {
  std::size_t named = 0;
  for (const Fault& fault : faults) {
    const Found found = find(fault, with_elements);
    MESSAGE(fmt::format("{}, {}: {}; {}", fault.model, fault.what, found.named ? "named" : "MISSED",
                        found.said));
    named += found.named ? 1 : 0;
  }
  return named;
}

}  // namespace

TEST_CASE("planted: mistakes of the forward phase are named") {
  CHECK(count_named(forward_faults(), true) == forward_faults().size());
}

TEST_CASE("planted: mistakes of the backward phase are named") {
  CHECK(count_named(backward_faults(), true) == backward_faults().size());
}

TEST_CASE("planted: mistakes of the update are named") {
  CHECK(count_named(update_faults(), true) == update_faults().size());
}

// Other engines' traces may have no elements: one mistake is found as far as what comes before
// agrees.
TEST_CASE("planted: most mistakes are named with sketches alone") {
  const std::size_t forward = count_named(forward_faults(), false);
  const std::size_t backward = count_named(backward_faults(), false);
  const std::size_t update = count_named(update_faults(), false);
  MESSAGE(fmt::format("{} forward, {} backward, {} update", forward, backward, update));
  CHECK(forward + backward + update >= 50);
}

TEST_CASE("planted: correct runs are silent") {
  for (const std::string model : {"gpt2", "bert", "resnet18", "mlp", "lenet", "llama"}) {
    CAPTURE(model);
    for (const bool with_elements : {true, false}) {
      CAPTURE(with_elements);
      const Subject subject(model);
      const RunReplay run =
          replayed(subject, subject.plain.graph(), {.with_elements = with_elements});
      for (const LocalFault& fault : run.faults) FAIL_CHECK(text_of(fault));
      CHECK(run.judged > 20);
      CHECK(run.steps.size() == 2);
    }
  }
}

TEST_CASE("planted: other kernels, threads and optimizers are silent") {
  const Subject subjects[] = {
      Subject("resnet18", OptimizerKind::kSgd, StepPrecision::kF32, 2),
      Subject("gpt2", OptimizerKind::kLion, StepPrecision::kF32, 2),
      Subject("bert", OptimizerKind::kAdamW, StepPrecision::kF32, 1, KernelChoice::kReference),
      Subject("mlp", OptimizerKind::kLamb), Subject("mlp", OptimizerKind::kRmsProp)};
  for (const Subject& subject : subjects) {
    const RunReplay run = replayed(subject, subject.plain.graph());
    for (const LocalFault& fault : run.faults) FAIL_CHECK(text_of(fault));
  }
}

}  // namespace trainscope::test
