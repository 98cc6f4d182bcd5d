// What a library throws inside a kernel: an error that names the node, whoever calls the kernel.
#include "engine/plan/kernel_call.h"

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>
#include <string_view>

#include "engine/exec/backends.h"
#include "engine/exec/executor.h"
#include "engine/exec/reference.h"
#include "engine/plan/batch_tiles.h"
#include "engine/plan/lower.h"
#include "tests/support/copying_device.h"
#include "tests/support/graph_text.h"
#include "tests/support/op_examples.h"

namespace trainscope::test {
namespace {

constexpr std::string_view kThreeOps =
    "(float[8,4] x) => (float[8,4] y) { a = Exp(x) b = Tanh(a) y = Sigmoid(b) }";

Support throws_in_supports(const PrepareArgs&) { throw std::runtime_error("no such case"); }
Prepared throws_in_prepare(const PrepareArgs&) { throw std::runtime_error("no such case"); }
void throws_in_run(const RunArgs&) { throw std::runtime_error("no such case"); }
void lacks_memory(const RunArgs&) { throw std::bad_alloc(); }

// The CPU with another kernel for Tanh.
DeviceHandle device_with(const Kernel& kernel) {
  KernelTable table = cpu_kernels();
  table.add("Tanh", DType::kF32, kernel);
  return cpu_with(std::move(table));
}

template <class F>
void check_names_node(const F& action) {
  const std::optional<Error> error = error_of(action);
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  CHECK(error->unsupported());
  CHECK(error->message() == "the kernel tanh.library cannot compute this: no such case");
  REQUIRE(error->context().size() == 1);
  CHECK(error->context()[0] == "node 'Tanh_1' (Tanh)");
}

void run_once(const Program& program) {
  Executor executor(program);
  executor.load_initial();
  for (const auto& [name, tensor] : random_inputs(program.graph, 5)) executor.write(name, tensor);
  executor.run_micro_step();
}

TEST_CASE("kernel call: lower names the node whose kernel a library refuses") {
  const Kernel asked{.name = "tanh.library", .supports = throws_in_supports, .run = throws_in_run};
  const Kernel made{.name = "tanh.library", .prepare = throws_in_prepare, .run = throws_in_run};
  for (const Kernel& kernel : {asked, made}) {
    check_names_node([&] { (void)lower(graph(kThreeOps), device_with(kernel), {}); });
  }
}

TEST_CASE("kernel call: a step names the node, in sections on several threads too") {
  Program program =
      lower(graph(kThreeOps), device_with({.name = "tanh.library", .run = throws_in_run}),
            {.threads = 2});
  check_names_node([&] { run_once(program); });
  REQUIRE(add_batch_tiles(program));
  check_names_node([&] { run_once(program); });
}

TEST_CASE("kernel call: a run node by node names the node") {
  const Graph three = graph(kThreeOps);
  const DeviceHandle device = device_with({.name = "tanh.library", .run = throws_in_run});
  const Evaluate evaluate = evaluator(op_table(), device->kernels());
  check_names_node([&] { (void)reference_run(three, random_inputs(three, 5), evaluate); });
}

TEST_CASE("kernel call: what is folded before the run is left to the run") {
  const DeviceHandle device = device_with({.name = "tanh.library", .run = throws_in_run});
  const Evaluate evaluate = evaluator(op_table(), device->kernels(), {.limit = kKnownValuesLimit});
  const Tensor x = floats({1}, {1});
  CHECK(evaluate(op_table().get("Tanh"), {}, {&x}, {x.type()}).empty());
}

TEST_CASE("kernel call: out of memory stays what it is") {
  const Program program =
      lower(graph(kThreeOps), device_with({.name = "tanh.library", .run = lacks_memory}), {});
  CHECK_THROWS_AS(run_once(program), std::bad_alloc);
}

}  // namespace
}  // namespace trainscope::test
