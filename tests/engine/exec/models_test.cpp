// Full training steps of the reference models: memory exactly as planned, the same bits each time.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "engine/core/text.h"
#include "engine/exec/executor.h"
#include "engine/exec/memory_check.h"
#include "tests/support/graph_text.h"
#include "tests/support/kept_plans.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

struct StepOptions {
  LowerOptions lower = {};
  std::int64_t micro_batches = 1;
  bool poison = false;
  int steps = 2;
};

struct Outcome {
  std::vector<double> losses;
  Tensors tensors;  // parameters and states after the last step
};

Outcome train(const ReferenceModel& reference, const StepOptions& options) {
  CompileOptions compile_options = reference.options(GraphMode::kTrain, options.lower);
  compile_options.training.micro_batches = options.micro_batches;
  Session session(reference.model, compile_options);
  keep_plan(session.compiled());
  Executor& executor = session.executor();
  Trainer trainer(session.shared_executor(), options.micro_batches);
  Cycle batches(reference.batches);
  std::optional<MemoryCheck> check;
  if (options.poison) check.emplace(session.shared_executor());
  Outcome outcome;
  for (int step = 1; step <= options.steps; ++step) {
    outcome.losses.push_back(trainer.run_step(step, 1e-3, batches).loss);
  }
  if (check) CHECK_MESSAGE(check->violations().empty(), join(check->violations(), "\n"));
  CHECK(executor.guard_intact());
  CHECK(executor.used_bytes() == executor.program().arena().bytes);
  for (const auto& list : {trainer.model_tensors(), trainer.optimizer_tensors()}) {
    for (const NamedTensor& named : list) {
      outcome.tensors.emplace(named.name, executor.read(named.name));
    }
  }
  return outcome;
}

bool same_bits(const Outcome& a, const Outcome& b) {
  if (a.losses != b.losses || a.tensors.size() != b.tensors.size()) return false;
  for (const auto& [name, tensor] : a.tensors) {
    const Tensor& other = b.tensors.at(name);
    if (!std::equal(tensor.data(), tensor.data() + tensor.bytes(), other.data())) return false;
  }
  return true;
}

}  // namespace

TEST_CASE(
    "executor: a step uses exactly the planned bytes, writes nowhere else, repeats its bits") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    const Outcome plain = train(reference, {});
    CHECK(same_bits(plain, train(reference, {})));
    CHECK(same_bits(plain, train(reference, {.poison = true})));
    for (double loss : plain.losses) CHECK(std::isfinite(loss));
  }
}

TEST_CASE("executor: the same with reference kernels and micro-batches") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    const LowerOptions lower{.kernels = KernelChoice::kReference};
    const Outcome plain = train(reference, {.lower = lower, .micro_batches = 3});
    CHECK(same_bits(plain, train(reference, {.lower = lower, .micro_batches = 3, .poison = true})));
  }
}

TEST_CASE("executor: sharing bytes in place changes no result") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    CHECK(same_bits(train(reference, {}), train(reference, {.lower = {.in_place = false}})));
  }
}

TEST_CASE("executor: two threads give the numbers of one within rounding") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    const Outcome one = train(reference, {.lower = {.threads = 1}});
    const Outcome two = train(reference, {.lower = {.threads = 2}});
    CHECK(same_bits(two, train(reference, {.lower = {.threads = 2}})));
    for (std::size_t i = 0; i < one.losses.size(); ++i) {
      CHECK(std::abs(one.losses[i] - two.losses[i]) <= 2e-6 * std::abs(one.losses[i]));
    }
    MESSAGE(fmt::format("{}: bits with two threads: {}", name,
                        same_bits(one, two) ? "the same as with one" : "others than with one"));
  }
}

TEST_CASE("executor: losses and gradients fit the stored seed whatever the kernels") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    const Outcome fast = train(reference, {});
    const Outcome plain = train(reference, {.lower = {.kernels = KernelChoice::kReference}});
    for (std::size_t i = 0; i < fast.losses.size(); ++i) {
      CHECK(std::abs(fast.losses[i] - plain.losses[i]) <= 2e-6 * std::abs(fast.losses[i]));
    }
  }
}

}  // namespace trainscope::test
