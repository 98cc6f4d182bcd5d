// A committed trace with a mistake: what tests without another engine bisect. With
// TRAINSCOPE_UPDATE_DATA=1 it is written anew.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "engine/core/hash.h"
#include "engine/core/safetensors.h"
#include "engine/core/system/scratch_folder.h"
#include "tests/engine/bisect/planting.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

fs::path traces() { return fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/numerics"; }

// The batches of tests/data/numerics/mlp-trainscope, with its optimizer.
Subject subject_of_traces() {
  const ReferenceModel reference("mlp");
  CompileOptions options = reference.options(GraphMode::kTrain);
  options.training.optimizer = {.kind = OptimizerKind::kSgd};
  std::vector<NamedTensors> batches;
  for (const std::string step : {"1", "2"}) {
    const auto file =
        SafetensorsFile::open(traces() / "mlp-trainscope/full" / (step + ".safetensors"));
    batches.push_back({{"x", file.tensor("input:x")}, {"labels", file.tensor("input:labels")}});
  }
  Subject subject(reference.model, options, std::move(batches));
  subject.schedule.learning_rate = 0.02;
  return subject;
}

// The second Relu passes all of its gradient on, from step 2 on.
void record_planted(const Folder& folder) {
  const Subject subject = subject_of_traces();
  Planter planter(subject);
  const NodeId gradient = planter.gradient_node(planter.node("Relu", 1), "ReluGrad");
  planter.remake(gradient,
                 [](Builder& b, const std::vector<ValueId>& x) { return b("Identity", {x[0]}); });
  const ReferenceModel reference("mlp");
  record_steps({.step = subject.plain,
                .graph = planter.graph(),
                .evaluate = subject.plain.evaluate(),
                .schedule = subject.schedule,
                .from = 2},
               subject.batches,
               {.producer = "planted",
                .version = "1",
                .model = hash_hex(reference.model.hash()),
                .mode = "all"},
               folder);
}

}  // namespace

TEST_CASE("planted trace: the committed one is what is made here") {
  const fs::path committed = traces() / "mlp-planted";
  if (std::getenv("TRAINSCOPE_UPDATE_DATA") != nullptr) {
    fs::remove_all(committed);
    fs::create_directories(committed);
    record_planted(Folder::open(committed));
  }
  const ScratchFolder scratch;
  record_planted(Folder::open(scratch.path()));
  const profiler::Trace made = profiler::Trace::open(scratch.path());
  const profiler::Trace stored = profiler::Trace::open(committed);
  REQUIRE(made.rows().size() == stored.rows().size());
  for (std::size_t i = 0; i < made.rows().size(); ++i) {
    CAPTURE(made.rows()[i].key());
    CHECK(made.rows()[i].key() == stored.rows()[i].key());
    CHECK(made.rows()[i].statistics.l2 ==
          doctest::Approx(stored.rows()[i].statistics.l2).epsilon(1e-4));
  }
}

}  // namespace trainscope::test
