// A reference model after a few steps of training, and whether two of them are the same. Its plan
// is checked.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/program_check.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {

struct TrainedModel {
  ReferenceModel reference;
  Session session;
  std::vector<double> losses;

  // `configure` changes the options of the model's own training.
  template <typename Configure>
  TrainedModel(std::string_view name, const Configure& configure)
      : reference(name), session(reference.model, options(reference, configure)) {
    Cycle batches(reference.batches);
    Trainer trainer(session.shared_executor(), 1);
    for (std::int64_t step = 1; step <= 3; ++step) {
      losses.push_back(trainer.run_step(step, 1e-3, batches).loss);
    }
    check_placements(program(), session.compiled().stages);
  }

  const Program& program() const { return session.compiled().program; }

 private:
  template <typename Configure>
  static CompileOptions options(const ReferenceModel& reference, const Configure& configure) {
    CompileOptions options = reference.options(GraphMode::kTrain);
    configure(options);
    return options;
  }
};

// Names of parameters and states, and of outputs and gradients that both keep, whose bytes differ.
inline std::vector<std::string> differences(TrainedModel& a, TrainedModel& b) {
  std::vector<std::string> names;
  const Graph& graph = a.program().graph;
  for (ValueId id : graph.live_values()) {
    const Value& value = graph.value(id);
    const bool node = value.kind == ValueKind::kNode;
    if (value.kind == ValueKind::kInput || !a.session.executor().has(value.name)) continue;
    if (node && !(graph.is_output(id) && b.session.executor().has(value.name))) continue;
    const Tensor x = a.session.executor().read(value.name);
    const Tensor y = b.session.executor().read(value.name);
    if (std::memcmp(x.data(), y.data(), x.bytes()) != 0) names.push_back(value.name);
  }
  return names;
}

// The same losses and bytes; `other` used what its plan says.
inline void check_equal(TrainedModel& plain, TrainedModel& other) {
  CHECK(other.losses == plain.losses);
  CHECK(differences(plain, other) == std::vector<std::string>{});
  CHECK(other.session.executor().used_bytes() == other.program().arena().bytes);
  CHECK(other.session.executor().used_host_bytes() == other.program().space(Space::kHost).bytes);
}

}  // namespace trainscope::test
