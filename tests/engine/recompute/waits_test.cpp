// Offload on a device whose transfers are late or early: a step is right with all of its waits, and
// wrong without any one of them.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/engine/recompute/recompute_tools.h"
#include "tests/support/copying_device.h"

namespace trainscope::test {
namespace {

// A model whose values wait in host memory, compiled for a copying device.
struct Offloading {
  Offloading(std::string_view name, Timing timing)
      : reference(name), device(std::make_shared<CopyingDevice>(CopyingOptions{.timing = timing})) {
    CompileOptions options = reference.options(GraphMode::kTrain);
    options.device = device;
    options.recompute = {.mode = RecomputeMode::kAuto,
                         .max_overhead = 0.02,
                         .link = HostLink{.bytes_per_second = 1e15, .seconds_per_transfer = 0.0}};
    compiled = compile(reference.model, options);
  }

  // The parameters after one step in which that wait is left out; -1: none.
  std::vector<Tensor> parameters_without(std::int64_t wait) {
    device->skip_wait(wait);
    const auto executor = std::make_shared<Executor>(compiled->program);
    executor->load_initial();
    Trainer trainer(executor, 1);
    Cycle batches(reference.batches);
    std::vector<Tensor> parameters;
    try {
      trainer.run_step(1, 1e-3, batches);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNumeric) throw;
      return parameters;  // the loss is no number
    }
    const Graph& graph = compiled->program.graph;
    for (ValueId v : graph.values_of(ValueKind::kParameter)) {
      parameters.push_back(executor->read(graph.value(v).name));
    }
    return parameters;
  }

  // "NODE waits for NODE", in the order in which a step asks for them.
  std::vector<std::string> waits() const {
    const Program& program = compiled->program;
    const auto name = [&](const Call& call) { return program.graph.node(call.node).name; };
    std::vector<std::string> waits;
    for (const Call& call : program.calls) {
      for (const CallId id : call.waits) {
        waits.push_back(name(call) + " waits for " + name(program.call(id)));
      }
    }
    return waits;
  }

  ReferenceModel reference;
  std::shared_ptr<CopyingDevice> device;
  std::unique_ptr<Compiled> compiled;
};

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return std::memcmp(x.data(), y.data(), x.bytes()) == 0;
  });
}

}  // namespace

TEST_CASE("waits: a step that offloads is wrong without any one of them" *
          doctest::test_suite("cpu")) {
  for (const std::string name : {"gpt2", "llama"}) {
    CAPTURE(name);
    Offloading late(name, Timing::kTransfersLate);
    Offloading early(name, Timing::kTransfersEarly);
    const std::vector<Tensor> right = late.parameters_without(-1);
    const std::vector<std::string> waits = late.waits();
    REQUIRE(!right.empty());
    REQUIRE(late.device->waits() == std::ssize(waits));
    CHECK(waits.size() > 20);
    CHECK(same(right, early.parameters_without(-1)));
    for (std::size_t i = 0; i < waits.size(); ++i) {
      CAPTURE(waits[i]);
      const auto wait = static_cast<std::int64_t>(i);
      const bool unseen =
          same(right, late.parameters_without(wait)) && same(right, early.parameters_without(wait));
      CHECK(!unseen);
    }
    MESSAGE(name << ": " << waits.size() << " waits left out in turn");
  }
}

}  // namespace trainscope::test
