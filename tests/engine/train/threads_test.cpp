// Training with strict determinism: the same bits for any number of threads.
#include <doctest/doctest.h>

#include <algorithm>

#include "engine/core/hash.h"
#include "tests/support/kept_plans.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

struct Trained {
  std::vector<double> losses;
  std::vector<std::uint64_t> hashes;  // of parameters, statistics and moments, by position
  std::vector<std::string> names;
};

Trained train(const ReferenceModel& reference, int threads, SameBits bits) {
  CompileOptions options =
      reference.options(GraphMode::kTrain, {.threads = threads, .same_bits = bits});
  options.training.seed = 7;
  options.training.micro_batches = 2;
  Session session(reference.model, options);
  keep_plan(session.compiled());
  Trainer trainer(session.shared_executor(), 2);
  Cycle batches(reference.batches);
  Trained trained;
  for (std::int64_t step = 1; step <= 4; ++step) {
    trained.losses.push_back(trainer.run_step(step, 1e-2, batches).loss);
  }
  std::vector<NamedTensor> tensors = trainer.model_tensors();
  for (const NamedTensor& tensor : trainer.optimizer_tensors()) tensors.push_back(tensor);
  for (const NamedTensor& tensor : tensors) {
    trained.names.emplace_back(tensor.name);
    const Tensor elements = session.executor().read(tensor.name);
    trained.hashes.push_back(hash_bytes({elements.data(), elements.bytes()}));
  }
  return trained;
}

}  // namespace

TEST_CASE("strict determinism: training gives the same bits on 1, 2 and 3 threads") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    const Trained one = train(reference, 1, SameBits::kAnyThreads);
    CHECK(one.losses.front() != one.losses.back());
    for (int threads : {2, 3}) {
      CAPTURE(threads);
      const Trained more = train(reference, threads, SameBits::kAnyThreads);
      CHECK(more.losses == one.losses);
      REQUIRE(more.hashes.size() == one.hashes.size());
      for (std::size_t i = 0; i < one.hashes.size(); ++i) {
        CHECK_MESSAGE(more.hashes[i] == one.hashes[i], one.names[i]);
      }
    }
  }
}

TEST_CASE("strict determinism: no kernel whose bits depend on the threads is chosen") {
  for (const std::string name : {"lenet", "resnet18", "gpt2"}) {
    const ReferenceModel reference(name);
    const auto dependent = [&](SameBits bits) {
      const Session session(
          reference.model, reference.options(GraphMode::kTrain, {.threads = 2, .same_bits = bits}));
      return std::ranges::count_if(session.compiled().program.calls, [](const Call& call) {
        return call.kernel != nullptr && !call.kernel->same_for_any_threads;
      });
    };
    CHECK(dependent(SameBits::kAnyThreads) == 0);
    // The faster ones, where nobody asks: oneDNN has convolutions for every processor, but products
    // of matrices that are worth it for AVX-512 alone.
    if (name != "gpt2") CHECK(dependent(SameBits::kSameThreads) > 0);
  }
}

}  // namespace trainscope::test
