// Tiled sections: what is in them, what is not, and that a step with them computes what it computes
// without.
#include "engine/plan/batch_tiles.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/exec/memory_check.h"
#include "engine/ir/builder.h"
#include "engine/session.h"
#include "engine/train/trainer.h"
#include "tests/support/copying_device.h"
#include "tests/support/graph_text.h"
#include "tests/support/op_examples.h"
#include "tests/support/program_check.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

Program lowered(std::string_view text, int threads = 2) {
  return lower(graph(text), test_device(), {.threads = threads});
}

std::vector<std::string> tiled_ops(const Program& program) {
  std::vector<std::string> ops;
  for (const CallId id : calls_by_time(program)) {
    const Call& call = program.call(id);
    if (call.tile == 0) ops.emplace_back(program.graph.node(call.node).op->name);
  }
  return ops;
}

// Of the sections that compute nodes: their calls with the first tile.
std::vector<std::vector<const Call*>> computing_sections(const Program& program) {
  std::vector<std::vector<const Call*>> sections;
  for (const TiledSection& section : program.sections) {
    if (program.call(section.begin).kind == CallKind::kAddPartials) continue;
    sections.emplace_back();
    for (auto i = static_cast<int>(section.begin); i < static_cast<int>(section.end); ++i) {
      if (program.call(CallId(i)).tile == 0) sections.back().push_back(&program.call(CallId(i)));
    }
  }
  return sections;
}

// Buffers that a section touches live as long as it does.
void check_lives(const Program& program) {
  for (const auto& section : computing_sections(program)) {
    for (const PlannedBuffer& buffer : program.buffers) {
      const std::int64_t begin = section.front()->time;
      const std::int64_t end = section.back()->time + 1;
      const bool apart = buffer.end <= begin || end <= buffer.begin;
      CHECK((apart || (buffer.begin <= begin && end <= buffer.end)));
    }
  }
}

constexpr std::string_view kThreeOps =
    "(float[8,4] x) => (float[8,4] y) { a = Exp(x) b = Tanh(a) y = Sigmoid(b) }";

}  // namespace

TEST_CASE("sections: neighbours that work example by example") {
  Program program = lowered(kThreeOps);
  REQUIRE(add_batch_tiles(program));
  CHECK(tiled_ops(program) == std::vector<std::string>{"Exp", "Tanh", "Sigmoid"});
  REQUIRE(program.sections.size() == 1);
  CHECK(program.sections[0].tiles == 2);
  CHECK(program.calls.size() == 6);
  check_lives(program);
  check_placements(program);
}

TEST_CASE("sections: none with one thread, too few ops, long ops, or examples that do not divide") {
  Program one = lowered(kThreeOps, 1);
  CHECK(!add_batch_tiles(one));
  Program three = lowered(kThreeOps, 3);
  CHECK(!add_batch_tiles(three));
  Program program = lowered(kThreeOps);
  CHECK(!add_batch_tiles(program, {.least_ops = 4}));
  CHECK(!add_batch_tiles(program, {.short_forks = 1e-6}));
  Machine quick_forks = default_machine();
  quick_forks.seconds_per_fork = 1e-15;
  CHECK(!add_batch_tiles(program, {.machine = quick_forks}));
  CHECK(program.sections.empty());
  CHECK(program.calls.size() == 3);
}

TEST_CASE("sections: what needs all examples ends one") {
  Program program = lowered(
      "(float[8,4] x) => (float[8,4] y) {"
      " a = Exp(x) b = Tanh(a) c = Sigmoid(b) m = ReduceMean<axes=[0]>(c) d = Sub(c, m)"
      " e = Exp(d) y = Tanh(e) }");
  REQUIRE(add_batch_tiles(program));
  REQUIRE(program.sections.size() == 2);
  CHECK(tiled_ops(program) ==
        std::vector<std::string>{"Exp", "Tanh", "Sigmoid", "Sub", "Exp", "Tanh"});
}

namespace {

// What both make of the same inputs: the largest difference of an output.
double difference_of(const Program& tiled_calls, const Program& plain) {
  const Tensors inputs = random_inputs(plain.graph, 5);
  Executor tiles(tiled_calls);
  Executor whole(plain);
  for (Executor* executor : {&tiles, &whole}) {
    executor->load_initial();
    for (const auto& [name, tensor] : inputs) executor->write(name, tensor);
    executor->run_micro_step();
    CHECK(executor->used_bytes() == executor->program().arena().bytes);
  }
  double largest = 0.0;
  for (ValueId v : plain.graph.outputs) {
    const std::string& name = plain.graph.value(v).name;
    largest = std::max(largest, difference(tiles.read(name), whole.read(name)));
  }
  return largest;
}

}  // namespace

TEST_CASE("sections: no tile overwrites what another one reads whole") {
  // t has 3 rows, so that both tiles of the product read all of it; c takes over its bytes.
  constexpr std::string_view kText =
      "(float[4,3] x, float[3,4] w) => (float[4,3] c, float[4,4] q) <int64[2] s = {4,3}> {"
      " t = Neg(w) p = MatMul(x, t) q = Tanh(p) v = Reshape(t, s) c = Exp(v) }";
  Program program = lowered(kText);
  const auto buffer = [&program](std::string_view name) {
    return program.place(program.graph.find(name)).buffer;
  };
  CHECK(buffer("c") == buffer("t"));
  REQUIRE(add_batch_tiles(program, {.least_ops = 1, .least_share = 0.0}));
  for (const auto& section : computing_sections(program)) {
    std::set<std::string_view> ops;
    for (const Call* call : section) ops.insert(program.graph.node(call->node).op->name);
    CHECK(!(ops.contains("MatMul") && ops.contains("Exp")));
  }
  CHECK(tiled_ops(program) == std::vector<std::string>{"MatMul", "Tanh", "Exp"});
  check_lives(program);
  check_placements(program);
  CHECK(difference_of(program, lowered(kText)) < 1e-6);
}

TEST_CASE("sections: what is no run of examples stays out") {
  constexpr std::string_view kTexts[] = {
      "(float[4,2] x) => (float[8,2] y) { a = Exp(x) b = Tanh(a) c = Sigmoid(b)"
      " y = Concat<axis=0>(c, b) }",
      "(float[12,2] x) => (float[6,2] y, float[6,2] z) { a = Exp(x) b = Tanh(a) c = Sigmoid(b)"
      " y, z = Split<axis=0>(c) }",
      "(float[6,2] x) => (float[3,2] y, float[3,2] z) { a = Exp(x) b = Tanh(a) c = Sigmoid(b)"
      " y, z = Split<axis=0>(c) }",
      "(float[6,2] x) => (float[3,2] y) <int64[3] i = {5,0,3}> { a = Exp(x) b = Tanh(a)"
      " c = Sigmoid(b) y = Gather(c, i) }",
      "(float[6,2] x) => (float[6,2] y) <int64[1] s = {5}, int64[1] e = {-7}, int64[1] d = {0},"
      " int64[1] t = {-1}> { a = Exp(x) b = Tanh(a) c = Sigmoid(b) y = Slice(c, s, e, d, t) }"};
  for (std::string_view text : kTexts) {
    CAPTURE(text);
    Program program = lowered(text);
    REQUIRE(add_batch_tiles(program, {.least_share = 0.0}));
    CHECK(tiled_ops(program) == std::vector<std::string>{"Exp", "Tanh", "Sigmoid"});
    CHECK(difference_of(program, lowered(text)) == 0.0);
  }
}

TEST_CASE("sections: every op with a rule makes of two tiles what it makes of the whole") {
  int tiled_calls = 0;
  for (const OpDef* row : op_table().rows()) {
    for (std::string_view text : row->examples) {
      const Example example = parse_example(text);
      Graph one;
      Builder b(one, op_table());
      b.set_provenance({.sources = {}, .pass = "test"});
      std::vector<ValueId> inputs;
      Tensors given;
      for (std::size_t i = 0; i < example.inputs.size(); ++i) {
        inputs.push_back(kNoValue);
        if (!example.inputs[i].present) continue;
        const Tensor tensor = make_input(example, i, DType::kF32, 11);
        const std::string name = "x" + std::to_string(i);
        const bool known = example.inputs[i].fill == Fill::kGiven;
        inputs.back() = known ? b.constant(tensor, name) : b.input(name, tensor.type());
        if (!known) given.emplace(name, tensor);
      }
      const std::vector<ValueId> results =
          b.multi(row->name, inputs, example.output_count, example.attributes);
      const Node& node = one.node(one.value(results[0]).producer);
      const Sharding* rule = sharding_of(*node.op);
      const bool has_kernel = !cpu_kernels().find(row->name, DType::kF32).empty();
      if (node.op != row || rule == nullptr || !rule->by_examples || !has_kernel) continue;
      one.outputs = results;
      INFO(row->name, " \"", text, "\"");
      const Program plain = lower(one, test_device(), {.threads = 2});
      Program tiles = plain;
      if (!add_batch_tiles(tiles, {.least_ops = 1, .least_share = 0.0})) continue;
      ++tiled_calls;
      Executor whole(plain);
      Executor cut(tiles);
      for (Executor* executor : {&whole, &cut}) {
        executor->load_initial();
        for (const auto& [name, tensor] : given) executor->write(name, tensor);
        executor->run_micro_step();
      }
      for (ValueId v : results) {
        if (v == kNoValue) continue;
        const std::string& name = one.value(v).name;
        CHECK(difference(cut.read(name), whole.read(name)) < 1e-5);
      }
    }
  }
  MESSAGE(tiled_calls << " examples in tiles");
  CHECK(tiled_calls > 40);
}

TEST_CASE("sections: sums over examples are added up, what is added to one stays whole") {
  constexpr std::string_view kText =
      "(float[8,4] x, float[8,4] d, float[4,4] c) => (float[4,4] y, float[4] z, float[4,4] v)"
      " <int64[1] axes = {0}> {"
      " a = Exp(x) b = Tanh(a) y = Gemm<transA=1>(b, d) z = ReduceSum<keepdims=0>(b, axes)"
      " v = Gemm<transA=1>(b, d, c) }";
  Program program = lowered(kText);
  REQUIRE(add_batch_tiles(program));
  CHECK(tiled_ops(program) == std::vector<std::string>{"Exp", "Tanh", "Gemm", "ReduceSum"});
  check_placements(program);
  CHECK(difference_of(program, lowered(kText)) < 1e-6);
}

namespace {

// Three steps of a reference model.
struct Trained {
  std::vector<double> losses;
  std::size_t sections = 0;
  std::vector<std::string> violations;
};

Trained trained(const std::string& name, int threads, bool sections, bool alone = false) {
  const ReferenceModel reference(name);
  CompileOptions options = reference.options(GraphMode::kTrain, {.threads = threads});
  if (sections) options.batch_tiles = BatchTileOptions{.least_share = 0.0};
  Session session(reference.model, options);
  const Program& program = session.compiled().program;
  check_lives(program);
  check_placements(program);
  Trainer trainer(session.shared_executor(), 1);
  Cycle batches(reference.batches);
  Trained result;
  result.sections = program.sections.size();
  const auto step = [&](std::int64_t number) {
    result.losses.push_back(trainer.run_step(number, 1e-3, batches).loss);
  };
  for (std::int64_t number = 1; number <= 3; ++number) {
    if (!alone) {
      step(number);
      continue;
    }
    MemoryCheck check(session.shared_executor());
    step(number);
    result.violations.insert(result.violations.end(), check.violations().begin(),
                             check.violations().end());
  }
  CHECK(session.executor().used_bytes() == program.arena().bytes);
  return result;
}

}  // namespace

TEST_CASE("sections: steps of models compute what they do without, in the bytes of their plans") {
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
    const Trained tiled_calls = trained(model, threads, true);
    CHECK(plain.sections == 0);
    CHECK(tiled_calls.sections > 0);
    CHECK(tiled_calls.losses == trained(model, threads, true).losses);
    const Trained alone = trained(model, threads, true, true);  // op by op, each tile in turn
    CHECK(tiled_calls.losses == alone.losses);
    CHECK(alone.violations.empty());
    for (std::size_t i = 0; i < plain.losses.size(); ++i) {
      CHECK(tiled_calls.losses[i] == doctest::Approx(plain.losses[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("sections: of the kernels that are asked for") {
  const ReferenceModel reference("lenet");
  CompileOptions options = reference.options(GraphMode::kTrain, {.threads = 5});
  options.batch_tiles = BatchTileOptions{.least_share = 0.0};
  const auto onednn_in_chains = [&](KernelChoice kernels) {
    options.lower.kernels = kernels;
    const std::unique_ptr<Compiled> compiled = compile(reference.model, options);
    const Program& program = compiled->program;
    REQUIRE(!program.sections.empty());
    std::ptrdiff_t count = 0;
    for (const auto& section : computing_sections(program)) {
      count += std::ranges::count_if(
          section, [](const Call* call) { return contains(call->kernel->name, "onednn"); });
    }
    return count;
  };
  CHECK(onednn_in_chains(KernelChoice::kFastest) > 0);
  CHECK(onednn_in_chains(KernelChoice::kDirect) > 0);
  CHECK(onednn_in_chains(KernelChoice::kReference) == 0);
}

}  // namespace trainscope::test
