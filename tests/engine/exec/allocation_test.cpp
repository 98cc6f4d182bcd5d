// A steady step allocates nothing; what oneDNN allocates inside its calls is gone when they return.
#include <doctest/doctest.h>

#include <new>
#include <vector>

#include "engine/core/text.h"
#include "engine/exec/executor.h"
#include "tests/support/allocations.h"
#include "tests/support/graph_text.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

constexpr std::int64_t kMaxAliveBytes = 4096;

// What each call of a step allocated, without allocating itself.
class PerCall final : public ExecutionEvents {
 public:
  explicit PerCall(std::size_t calls) : counts_(calls) {}
  void call_begin(const CallEvent&) override { start_counting_allocations(); }
  void call_end(const CallEvent& event) override {
    stop_counting_allocations();
    counts_[static_cast<std::size_t>(event.call)] = allocation_count();
  }
  const AllocationCount& operator[](std::size_t i) const { return counts_[i]; }

 private:
  std::vector<AllocationCount> counts_;
};

struct Steady {
  ReferenceModel reference;
  Session session;
  Trainer trainer;
  Cycle batches;

  Steady(std::string_view name, const LowerOptions& lower)
      : reference(name),
        session(reference.model, reference.options(GraphMode::kTrain, lower)),
        trainer(session.shared_executor(), 1),
        batches(reference.batches) {
    for (std::int64_t step = 1; step <= 3; ++step) trainer.run_step(step, 1e-3, batches);
  }
  void step() {
    session.executor().run_micro_step();
    session.executor().run_update();
  }
};

bool is_onednn(const Call& call) {
  return call.kernel != nullptr && contains(call.kernel->name, "onednn");
}

}  // namespace

TEST_CASE("allocations: the counter sees new, malloc and what is freed" *
          doctest::skip(!can_count_allocations())) {
  void* volatile block = nullptr;  // volatile: a compiler may leave out what nobody sees
  start_counting_allocations();
  block = ::operator new(1000);
  const AllocationCount held = allocation_count();
  ::operator delete(block);
  const AllocationCount freed = allocation_count();
  stop_counting_allocations();
  CHECK(held.calls == 1);
  CHECK(held.alive_bytes >= 1000);
  CHECK(freed.alive_bytes == 0);
  CHECK(freed.peak_bytes == held.alive_bytes);
}

TEST_CASE("executor: a steady step with our own kernels allocates nothing" *
          doctest::test_suite("cpu") * doctest::skip(!can_count_allocations())) {
  for (const std::string& name : kReferenceModels) {
    for (int threads : {1, 2}) {
      CAPTURE(name);
      CAPTURE(threads);
      Steady steady(name, {.threads = threads, .kernels = KernelChoice::kReference});
      start_counting_allocations();
      steady.step();
      const AllocationCount count = allocation_count();
      stop_counting_allocations();
      CHECK(count.calls == 0);
    }
  }
}

TEST_CASE("executor: a whole step of the trainer allocates nothing either" *
          doctest::test_suite("cpu") * doctest::skip(!can_count_allocations())) {
  Steady steady("mlp", {.kernels = KernelChoice::kReference});
  start_counting_allocations();
  steady.trainer.run_step(4, 1e-3, steady.batches);
  const AllocationCount count = allocation_count();
  stop_counting_allocations();
  CHECK(count.calls == 0);
}

TEST_CASE("executor: oneDNN's own allocations are small and freed before its calls return" *
          doctest::test_suite("cpu") * doctest::skip(!can_count_allocations())) {
  std::int64_t inside_onednn = 0;
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    Steady steady(name, {});
    Executor& executor = steady.session.executor();
    PerCall counts(executor.program().calls.size());
    Subscription listens = executor.listen(counts);
    steady.step();
    listens = {};
    for (std::size_t i = 0; i < executor.program().calls.size(); ++i) {
      const Call& call = executor.program().calls[i];
      CAPTURE(i);
      CHECK(counts[i].alive_bytes == 0);
      CHECK(counts[i].peak_bytes < kMaxAliveBytes);
      if (!is_onednn(call)) CHECK(counts[i].calls == 0);
      inside_onednn += counts[i].calls;
    }
  }
  MESSAGE("allocations inside oneDNN calls, one step of each model: " << inside_onednn);
}

}  // namespace trainscope::test
