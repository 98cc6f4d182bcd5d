// MemoryCheck finds kernels that write outside their own bytes or read bytes that are free.
#include "engine/exec/memory_check.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/exec/backends.h"
#include "tests/support/copying_device.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

void exp_of(const RunArgs& args) {
  const TensorView& x = args.inputs[0];
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    args.outputs[0].as<float>()[i] = std::exp(x.as<const float>()[i]);
  }
}

void exp_and_one_more(const RunArgs& args) {
  exp_of(args);
  args.outputs[0].as<float>()[args.outputs[0].elements()] = 1.0F;
}

void exp_over_the_input(const RunArgs& args) {
  exp_of(args);
  args.inputs[0].as<float>()[0] = 7.0F;
}

void exp_beyond_the_arena(const RunArgs& args) {
  exp_of(args);
  std::byte* end = static_cast<std::byte*>(args.workspace);
  end[4096] = std::byte{1};  // the arena is smaller
}

Prepared small_workspace(const PrepareArgs&) { return {.workspace_bytes = 64, .state = nullptr}; }

// The violations of one run of y = Exp(x), z = Neg(y) with this kernel for Exp.
std::vector<std::string> violations(Kernel exp) {
  KernelTable kernels;
  for (const KernelTable::Row& row : cpu_kernels().rows()) {
    if (row.op == "Neg") kernels.add(row.op, row.dtype, row.kernel);
  }
  kernels.add("Exp", DType::kF32, exp);
  const Program program =
      lower(graph("(float[3] x) => (float[3] y, float[3] z) { y = Exp(x)  z = Neg(y) }"),
            cpu_with(std::move(kernels)), {});
  const auto shared = std::make_shared<Executor>(program);
  Executor& executor = *shared;
  executor.load_initial();
  executor.write("x", floats({3}, {1, 2, 3}));
  MemoryCheck check(shared);
  executor.run_micro_step();
  return check.violations();
}

}  // namespace

TEST_CASE("memory check: a good kernel has no violation") {
  CHECK(violations({.name = "good", .run = exp_of}).empty());
}

TEST_CASE("memory check: writes outside the outputs are found and the node is named") {
  for (auto run : {exp_and_one_more, exp_over_the_input}) {
    const std::vector<std::string> found = violations({.name = "bad", .run = run});
    REQUIRE(found.size() == 1);
    CHECK(contains(found[0], "Exp"));
  }
  const std::vector<std::string> behind =
      violations({.name = "bad", .prepare = small_workspace, .run = exp_beyond_the_arena});
  CHECK_FALSE(behind.empty());
}

TEST_CASE("memory check: bytes of dead values are poisoned, so that reading them shows") {
  // The bytes of a are longer than all that lives after its only reader.
  Graph g = graph(
      "(float[64] x) => (float y) { a = Exp(x)  b = ReduceMean <keepdims = 0> (a)"
      "  y = Neg(b) }");
  const Program program = lower(std::move(g), test_device(), {});
  const auto shared = std::make_shared<Executor>(program);
  Executor& executor = *shared;
  executor.load_initial();
  executor.write("x", Tensor({.dtype = DType::kF32, .shape = {64}}));
  MemoryCheck check(shared);
  executor.run_micro_step();
  const Tensor a = executor.read("a");
  CHECK(std::ranges::count_if(a.values<float>(), [](float e) { return std::isnan(e); }) >= 32);
  CHECK(executor.read("y").values<float>()[0] == -1.0F);
}

TEST_CASE("memory check: leaves the executor alone when it goes") {
  const Program program =
      lower(graph("(float[3] x) => (float[3] y) { y = Exp(x) }"), test_device(), {});
  const auto shared = std::make_shared<Executor>(program);
  Executor& executor = *shared;
  executor.load_initial();
  { const MemoryCheck check(shared); }
  executor.run_micro_step();
  CHECK(executor.read("y").values<float>()[0] == 1.0F);
}

}  // namespace trainscope::test
