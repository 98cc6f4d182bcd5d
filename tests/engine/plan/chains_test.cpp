// Chains: what is in them, what is not, and that a step with them computes what it does without.
#include "engine/plan/chains.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/exec/backends.h"
#include "engine/exec/memory_check.h"
#include "engine/session.h"
#include "engine/train/trainer.h"
#include "tests/support/graph_text.h"
#include "tests/support/program_check.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

Program lowered(std::string_view text, int threads = 2) {
  return lower(graph(text), cpu_kernels(), {.threads = threads});
}

std::vector<std::string> ops_in_chains(const Program& program) {
  std::vector<std::string> ops;
  for (const Chain& chain : program.chains) {
    for (std::size_t i = chain.begin; i < chain.end; ++i) {
      ops.emplace_back(program.graph.node(program.instructions[i].node).op->name);
    }
  }
  return ops;
}

// Buffers that a chain touches live as long as it does.
void check_lives(const Program& program) {
  for (const Chain& chain : program.chains) {
    for (const memplan::Buffer& buffer : program.problem.buffers) {
      const auto begin = static_cast<std::int64_t>(chain.begin);
      const auto end = static_cast<std::int64_t>(chain.end);
      const bool apart = buffer.upper <= begin || end <= buffer.lower;
      CHECK((apart || (buffer.lower <= begin && end <= buffer.upper)));
    }
  }
}

constexpr std::string_view kThreeOps =
    "(float[8,4] x) => (float[8,4] y) { a = Exp(x) b = Tanh(a) y = Sigmoid(b) }";

}  // namespace

TEST_CASE("chains: neighbours that work example by example") {
  Program program = lowered(kThreeOps);
  REQUIRE(add_chains(program, cpu_kernels()));
  CHECK(ops_in_chains(program) == std::vector<std::string>{"Exp", "Tanh", "Sigmoid"});
  CHECK(program.instructions[0].parts.prepared.size() == 2);
  check_lives(program);
  check_placements(program);
}

TEST_CASE("chains: none with one thread, too few ops, long ops, or examples that do not divide") {
  Program one = lowered(kThreeOps, 1);
  CHECK(!add_chains(one, cpu_kernels()));
  Program three = lowered(kThreeOps, 3);
  CHECK(!add_chains(three, cpu_kernels()));
  Program program = lowered(kThreeOps);
  CHECK(!add_chains(program, cpu_kernels(), {.least_ops = 4}));
  CHECK(!add_chains(program, cpu_kernels(), {.short_seconds = 1e-12}));
  CHECK(program.chains.empty());
  CHECK(program.instructions[0].parts.prepared.empty());
}

TEST_CASE("chains: what needs all examples ends one") {
  Program program = lowered(
      "(float[8,4] x) => (float[8,4] y) {"
      " a = Exp(x) b = Tanh(a) c = Sigmoid(b) m = ReduceMean<axes=[0]>(c) d = Sub(c, m)"
      " e = Exp(d) y = Tanh(e) }");
  REQUIRE(add_chains(program, cpu_kernels()));
  REQUIRE(program.chains.size() == 2);
  CHECK(ops_in_chains(program) ==
        std::vector<std::string>{"Exp", "Tanh", "Sigmoid", "Sub", "Exp", "Tanh"});
}

TEST_CASE("chains: no part overwrites what another one reads whole") {
  // The table is made by a node, so that c could be in its place: the product reads all of it.
  Program program = lowered(
      "(float[4,4] x, float[4,4] w) => (float[4,4] y) {"
      " t = Neg(w) p = MatMul(x, t) q = Exp(p) c = Exp(t) r = Add(q, c) y = Tanh(r) }");
  add_chains(program, cpu_kernels());
  for (const std::string& op : ops_in_chains(program)) CHECK(op != "MatMul");
  check_lives(program);
  check_placements(program);
}

TEST_CASE("chains: sums over examples are added up, what is added to one stays whole") {
  constexpr std::string_view kText =
      "(float[8,4] x, float[8,4] d, float[4,4] c) => (float[4,4] y, float[4] z, float[4,4] v)"
      " <int64[1] axes = {0}> {"
      " a = Exp(x) b = Tanh(a) y = Gemm<transA=1>(b, d) z = ReduceSum<keepdims=0>(b, axes)"
      " v = Gemm<transA=1>(b, d, c) }";
  Program program = lowered(kText);
  REQUIRE(add_chains(program, cpu_kernels()));
  CHECK(ops_in_chains(program) == std::vector<std::string>{"Exp", "Tanh", "Gemm", "ReduceSum"});
  check_placements(program);
  const Program plain = lowered(kText);
  const Tensors inputs = random_inputs(plain.graph, 5);
  Executor chained(program);
  Executor whole(plain);
  for (Executor* executor : {&chained, &whole}) {
    executor->load_initial();
    for (const auto& [name, tensor] : inputs) executor->write(name, tensor);
    executor->run_micro_step();
    CHECK(executor->used_bytes() == executor->program().arena_bytes);
  }
  for (std::string_view name : {"y", "z", "v"}) {
    CHECK(difference(chained.read(name), whole.read(name)) < 1e-6);
  }
}

namespace {

// Three steps of a reference model.
struct Trained {
  std::vector<double> losses;
  std::size_t chains = 0;
  std::vector<std::string> violations;
};

Trained trained(const std::string& name, int threads, bool chains, bool alone = false) {
  const ReferenceModel reference(name);
  CompileOptions options = reference.options(GraphMode::kTrain, {.threads = threads});
  options.chains.reset();
  if (chains) options.chains = ChainOptions{.least_share = 0.0};
  Session session(reference.model, options);
  const Program& program = session.compiled().program;
  check_lives(program);
  check_placements(program);
  Trainer trainer(session.executor(), 1);
  Cycle batches(reference.batches);
  Trained result;
  result.chains = program.chains.size();
  const auto step = [&](std::int64_t number) {
    result.losses.push_back(trainer.run_step(number, 1e-3, batches).loss);
  };
  for (std::int64_t number = 1; number <= 3; ++number) {
    if (!alone) {
      step(number);
      continue;
    }
    MemoryCheck check(session.executor());
    step(number);
    result.violations = check.violations();
  }
  CHECK(session.executor().used_bytes() == program.arena_bytes);
  return result;
}

}  // namespace

TEST_CASE("chains: steps of models compute what they do without, in the bytes of their plans") {
  struct Case {
    std::string model;
    int threads;
  };
  for (const auto& [model, threads] :
       {Case{"lenet", 5}, Case{"mlp", 2}, Case{"resnet18", 2}, Case{"gpt2", 3}, Case{"bert", 4},
        Case{"llama", 3}, Case{"gpt2-dropout", 3}}) {
    CAPTURE(model);
    CAPTURE(threads);
    const Trained plain = trained(model, threads, false);
    const Trained chained = trained(model, threads, true);
    CHECK(plain.chains == 0);
    CHECK(chained.chains > 0);
    CHECK(chained.losses == trained(model, threads, true).losses);
    const Trained alone = trained(model, threads, true, true);  // op by op, each part in turn
    CHECK(chained.losses == alone.losses);
    CHECK(alone.violations.empty());
    for (std::size_t i = 0; i < plain.losses.size(); ++i) {
      CHECK(chained.losses[i] == doctest::Approx(plain.losses[i]).epsilon(1e-5));
    }
  }
}

}  // namespace trainscope::test
