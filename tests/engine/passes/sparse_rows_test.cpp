// sparse_rows: the same steps as with all rows, or lazy ones when asked; which embeddings, and why
// others stay.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/models/models.h"
#include "tests/engine/autodiff/optimizer_run.h"
#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

using Ids = std::vector<std::int64_t>;
constexpr std::int64_t kRows = 10;

constexpr std::string_view kTable =
    "(int64[6] ids) => (float[6,3] y) <float[10,2] table = "
    "{1,-2,3,4,-5,6,7,8,-9,10,11,12,-13,14,15,16,17,-18,19,20}, float[2,3] w = {1,2,3,4,-5,6}>"
    "{ x = Gather(table, ids)  h = Tanh(x)  y = MatMul(h, w) }";
// Two lookups of one table, one of them at fixed places.
constexpr std::string_view kTwice =
    "(int64[2,3] ids) => (float[2,3,3] y) <float[10,2] table = "
    "{1,-2,3,4,-5,6,7,8,-9,10,11,12,-13,14,15,16,17,-18,19,20}, float[2,3] w = {1,2,3,4,-5,6},"
    " int64[3] fixed = {1,-1,1}>"
    "{ x = Gather(table, ids)  p = Gather(table, fixed)  s = Add(x, p)  h = Tanh(s)"
    "  y = MatMul(h, w) }";

TrainingOptions training_with(OptimizerOptions optimizer, GraphMode mode = GraphMode::kTrain) {
  TrainingOptions options;
  options.mode = mode;
  options.loss = {.kind = LossKind::kMse, .output = "y"};
  options.optimizer = std::move(optimizer);
  return options;
}

OptimizerOptions sgd() { return {.kind = OptimizerKind::kSgd, .groups = {}}; }

std::vector<std::string> passes_to(bool sparse) {
  std::vector<std::string> passes = {"loss",           "decompose",  "differentiate",
                                     "scattered_sums", "accumulate", "optimizer_step"};
  if (sparse) passes.emplace_back("sparse_rows");
  for (const char* name : {"fold_constants", "simplify", "common_subexpression", "dead_code"}) {
    passes.emplace_back(name);
  }
  return passes;
}

Graph step_of(std::string_view text, const TrainingOptions& options, bool sparse,
              DType type = DType::kF64) {
  return passed(graph(text, {.float_type = type}), passes_to(sparse), options);
}

// Ids that repeat, that count from the end, and rows that none names.
Ids ids_of_step(std::int64_t step) {
  Ids ids = {3, 7, 3, -1, 3, 0};
  for (std::int64_t& id : ids) {
    if (id > 0) id = (id + 2 * step) % kRows;
  }
  return ids;
}

void give_ids(Run& run, const Ids& ids) {
  Tensor& given = run.inputs.at("ids");
  given = Tensor::of<std::int64_t>(given.type().shape, ids);
}

void check_bytes(const Run& a, const Run& b) {
  for (const Update& update : a.graph.updates) {
    const std::string& name = a.graph.value(update.state).name;
    CAPTURE(name);
    const Tensor& x = a.inputs.at(name);
    const Tensor& y = b.inputs.at(name);
    REQUIRE(x.bytes() == y.bytes());
    CHECK(std::memcmp(x.data(), y.data(), x.bytes()) == 0);
  }
}

// Steps of both forms, the same ids for both; `check` after each.
void walk(Run dense, Run sparse, const std::function<void(const Run&, const Run&)>& check) {
  for (std::int64_t step = 0; step < 4; ++step) {
    for (Run* run : {&dense, &sparse}) {
      give_ids(*run, ids_of_step(step));
      run->one(0.1);
      run->advance();
    }
    check(dense, sparse);
  }
}

Stage after_pass(Graph graph, const TrainingOptions& options) {
  const PassContext context{.ops = op_table(), .options = options, .pass = {}};
  const auto pass = std::ranges::find(default_passes(), "sparse_rows", &Pass::name);
  REQUIRE(pass != default_passes().end());
  return run_passes(std::move(graph), {&*pass, 1}, context, {}).back();
}

std::string why_not(std::string_view text, const TrainingOptions& options) {
  const Stage stage = after_pass(step_of(text, options, false), options);
  CHECK_FALSE(stage.changed);
  REQUIRE(stage.near_misses.size() == 1);
  return stage.near_misses[0].reason;
}

// --- Lazy steps, written plainly -----------------------------------------------------------------

struct Moments {
  std::vector<double> p;
  std::vector<double> m;
  std::vector<double> v;
};

// Rows of the table that the step names, by the formulas of its optimizer.
void oracle(Moments& state, const std::vector<double>& gradient, const std::set<std::int64_t>& rows,
            const OptimizerOptions& o, std::int64_t t) {
  const double rate = 0.1;
  const auto step = static_cast<double>(t);
  for (std::int64_t row : rows) {
    for (std::int64_t column = 0; column < 2; ++column) {
      const auto i = static_cast<std::size_t>(row * 2 + column);
      double g = gradient[i];
      double& p = state.p[i];
      if (o.kind == OptimizerKind::kSgd) {
        g += o.weight_decay * p;
        state.m[i] = t == 1 ? g : o.momentum * state.m[i] + g;
        p -= rate * (o.nesterov ? g + o.momentum * state.m[i] : state.m[i]);
        continue;
      }
      if (o.kind == OptimizerKind::kAdam) g += o.weight_decay * p;
      state.m[i] = o.beta1 * state.m[i] + (1 - o.beta1) * g;
      state.v[i] = o.beta2 * state.v[i] + (1 - o.beta2) * g * g;
      const double first = 1 - std::pow(o.beta1, step);
      const double second = 1 - std::pow(o.beta2, step);
      const double m_hat = state.m[i] / first;
      if (o.kind == OptimizerKind::kAdamW) p *= 1 - rate * o.weight_decay;
      if (o.kind == OptimizerKind::kAdamWHuggingFace) {
        p -= rate * std::sqrt(second) * m_hat / (std::sqrt(state.v[i]) + o.epsilon);
        p *= 1 - rate * o.weight_decay;
      } else {
        p -= rate * m_hat / (std::sqrt(state.v[i] / second) + o.epsilon);
      }
    }
  }
}

std::set<std::int64_t> rows_named(const Ids& ids) {
  std::set<std::int64_t> rows;
  for (std::int64_t id : ids) rows.insert(id < 0 ? id + kRows : id);
  return rows;
}

void check_lazy(OptimizerOptions optimizer) {
  optimizer.sparse_embeddings = true;
  const std::string prefix = "ai.trainscope." + std::string(name_of(optimizer.kind));
  const bool adam = optimizer.kind != OptimizerKind::kSgd;
  const std::string first = prefix + (adam ? ".m/table" : ".momentum/table");
  Run run(step_of(kTable, training_with(optimizer), true));
  REQUIRE(count_ops(run.graph, "GatherGrad") == 0);
  Run gradients(step_of(kTable, training_with(optimizer, GraphMode::kGradients), false));
  Moments state{run.value("table"), std::vector<double>(20, 0.0), std::vector<double>(20, 0.0)};
  for (std::int64_t t = 1; t <= 4; ++t) {
    const Ids ids = ids_of_step(t);
    for (const char* name : {"table", "w"}) {
      gradients.inputs.insert_or_assign(name, run.inputs.at(name));
    }
    give_ids(gradients, ids);
    gradients.one(0.1);
    give_ids(run, ids);
    run.one(0.1);
    run.advance();
    oracle(state, gradients.gradient("table"), rows_named(ids), optimizer, t);
    CHECK(worst(run.value("table"), state.p) < kLimit);
    CHECK(worst(run.value(first), state.m) < kLimit);
    if (adam) CHECK(worst(run.value(prefix + ".v/table"), state.v) < kLimit);
  }
}

// --- Builders ------------------------------------------------------------------------------------

std::unique_ptr<Compiled> compiled(std::string_view builder, const ModelArguments& arguments,
                                   const OptimizerOptions& optimizer, bool sparse,
                                   std::int64_t sequence = 8) {
  const OnnxModel model = shapes_of(build_model(builder, arguments, 1));
  CompileOptions options;
  options.import.dims = {{"batch", 2}, {"sequence", sequence}};
  options.training.loss.output = "logits";
  options.training.optimizer = optimizer;
  if (!sparse) options.passes.disabled = {"sparse_rows"};
  return compile(model, options);
}

const Stage& the_stage(const Compiled& step) {
  const auto found = std::ranges::find(step.stages, "sparse_rows", &Stage::name);
  REQUIRE(found != step.stages.end());
  return *found;
}

std::int64_t embeddings(const Stage& stage) {
  const auto found = stage.counters.find("embeddings");
  return found == stage.counters.end() ? 0 : found->second;
}

const ModelArguments kLlama{{"layers", std::int64_t{1}},        {"heads", std::int64_t{2}},
                            {"kv-heads", std::int64_t{2}},      {"embedding", std::int64_t{16}},
                            {"feed-forward", std::int64_t{24}}, {"vocab", std::int64_t{5000}},
                            {"context", std::int64_t{8}},       {"tied", false}};

}  // namespace

TEST_CASE("sparse_rows: plain SGD makes the same bits as from all rows") {
  for (std::string_view text : {kTable, kTwice}) {
    for (DType type : {DType::kF32, DType::kF64}) {
      CAPTURE(text);
      const TrainingOptions options = training_with(sgd());
      const Graph sparse = step_of(text, options, true, type);
      CHECK(count_ops(sparse, "SumRowsById") == 1);
      CHECK(count_ops(sparse, "SgdRowsStep") == 1);
      CHECK(count_ops(sparse, "SgdStep") == 1);
      CHECK(count_ops(sparse, "GatherGrad") == 0);
      CHECK_FALSE(changes(sparse, "sparse_rows", options));
      for (const char* pass : {"fold_constants", "simplify", "common_subexpression", "dead_code"}) {
        CHECK_FALSE(changes(sparse, pass, options));
      }
      const Graph dense = step_of(text, options, false, type);
      if (type == DType::kF64) walk(Run(dense), Run(sparse), check_bytes);
      const Tensors inputs = random_inputs(dense, 11);
      CHECK(difference(results_of(sparse, inputs), results_of(dense, inputs)) == 0.0);
    }
  }
}

TEST_CASE("sparse_rows: of one step, of one in backward, of one whose update is all embeddings") {
  OptimizerOptions soon = sgd();
  soon.in_backward = true;
  const TrainingOptions options = training_with(soon);
  const Graph sparse = step_of(kTable, options, true);
  CHECK(count_ops(sparse, "SgdRowsStep") == 1);
  CHECK(count_ops(sparse, "SgdStep") == 1);
  walk(Run(step_of(kTable, options, false)), Run(sparse), check_bytes);

  constexpr std::string_view kAlone =
      "(int64[6] ids) => (float[6,2] y) <float[10,2] table = "
      "{1,-2,3,4,-5,6,7,8,-9,10,11,12,-13,14,15,16,17,-18,19,20}>"
      "{ x = Gather(table, ids)  y = Tanh(x) }";
  const TrainingOptions plain = training_with(sgd());
  const Graph alone = step_of(kAlone, plain, true);
  CHECK(count_ops(alone, "SgdStep") == 0);
  walk(Run(step_of(kAlone, plain, false)), Run(alone), check_bytes);
}

TEST_CASE("sparse_rows: clipping by the norm of all rows") {
  OptimizerOptions clipped = sgd();
  clipped.clip_norm = 0.125;
  const TrainingOptions options = training_with(clipped);
  walk(Run(step_of(kTable, options, false)), Run(step_of(kTable, options, true)),
       [](const Run& dense, const Run& sparse) {
         CHECK(worst(numbers(dense.results.at(kGradientNormOutput)),
                     numbers(sparse.results.at(kGradientNormOutput))) < kLimit);
         CHECK(numbers(dense.results.at(kGradientNormOutput))[0] > 0.125);
         for (const char* name : {"table", "w"}) {
           CHECK(worst(dense.value(name), sparse.value(name)) < kLimit);
         }
       });
}

TEST_CASE("sparse_rows: a step that loss scaling leaves out changes no row") {
  OptimizerOptions lazy{.kind = OptimizerKind::kAdamW, .groups = {}};
  lazy.sparse_embeddings = true;
  TrainingOptions options = training_with(lazy);
  options.precision = StepPrecision::kF16;
  Run run(step_of(kTable, options, true));
  REQUIRE(count_ops(run.graph, "AdamWRowsStep") == 1);
  run.inputs.insert_or_assign(kLossScaleState, Tensor::scalar(65536.0));
  give_ids(run, ids_of_step(1));
  run.one(0.1);
  CHECK(worst(run.next("table"), run.value("table")) > 0.01);
  run.advance();
  give_ids(run, {0, 1, 2, 3, 4, 99});  // a row of NaN, and gradients of NaN with it
  run.one(0.1);
  CHECK(run.next("table") == run.value("table"));
  CHECK(run.next("ai.trainscope.adamw.m/table") == run.value("ai.trainscope.adamw.m/table"));
  CHECK(run.next(kLossScaleState)[0] == 32768.0);
}

TEST_CASE("sparse_rows: lazy momentum and moments, by their formulas") {
  check_lazy({.kind = OptimizerKind::kAdamW, .weight_decay = 0.1, .groups = {}});
  check_lazy({.kind = OptimizerKind::kAdamWHuggingFace, .weight_decay = 0.1, .groups = {}});
  check_lazy({.kind = OptimizerKind::kAdam, .weight_decay = 0.1, .groups = {}});
  check_lazy({.kind = OptimizerKind::kSgd, .momentum = 0.9, .weight_decay = 0.1, .groups = {}});
  check_lazy({.kind = OptimizerKind::kSgd, .momentum = 0.9, .nesterov = true, .groups = {}});
}

TEST_CASE("sparse_rows: each parameter keeps its own decay and rate") {
  OptimizerOptions groups = sgd();
  groups.groups = {{.pattern = "w", .weight_decay = 0.25},
                   {.pattern = "table", .weight_decay = {}, .learning_rate_scale = 0.5}};
  const TrainingOptions options = training_with(groups);
  const Graph sparse = step_of(kTable, options, true);
  REQUIRE(count_ops(sparse, "SgdRowsStep") == 1);
  walk(Run(step_of(kTable, options, false)), Run(sparse), check_bytes);
}

TEST_CASE("sparse_rows: what stays, and why") {
  const OptimizerOptions plain = sgd();
  OptimizerOptions momentum = sgd();
  momentum.momentum = 0.9;
  CHECK(why_not(kTable, training_with(momentum)) ==
        "SgdStep changes rows that no id names, by momentum or decay; with --sparse-embeddings "
        "they stay");
  OptimizerOptions decay = sgd();
  decay.weight_decay = 0.1;
  CHECK(contains(why_not(kTable, training_with(decay)), "by momentum or decay"));
  CHECK(contains(why_not(kTable, training_with({.groups = {}})), "by moments and decay"));
  OptimizerOptions lamb{.kind = OptimizerKind::kLamb, .groups = {}};
  lamb.sparse_embeddings = true;
  CHECK(why_not(kTable, training_with(lamb)) ==
        "LambStep changes all rows by the norm of their update");
  TrainingOptions kept = training_with(plain);
  kept.keep_gradients = true;
  CHECK(why_not(kTable, kept) == "'grad/table' is asked for");
  CHECK(matched_in_near_misses(after_pass(step_of(kTwice, kept, false), kept)) ==
        "grad/table grad/GatherGrad");
  TrainingOptions summed = training_with(plain);
  summed.micro_batches = 2;
  CHECK(why_not(kTable, summed) == "its rows are summed over micro-batches");
  constexpr std::string_view kTied =
      "(int64[6] ids) => (float[6,10] y) <float[10,2] table = "
      "{1,-2,3,4,-5,6,7,8,-9,10,11,12,-13,14,15,16,17,-18,19,20}>"
      "{ x = Gather(table, ids)  h = Tanh(x)  t = Transpose <perm = [1, 0]> (table)"
      "  y = MatMul(h, t) }";
  CHECK(contains(why_not(kTied, training_with(plain)), "the gradient of all rows"));
  constexpr std::string_view kColumns =
      "(int64[1] ids) => (float[3,1] y) <float[3,2] table = {1,-2,3,4,-5,6}>"
      "{ x = Gather <axis = 1> (table, ids)  y = Tanh(x) }";
  CHECK(why_not(kColumns, training_with(plain)) == "it is looked up along axis 1");
  constexpr std::string_view kMany =
      "(int64[6] ids) => (float[6,2] y) <float[3,2] table = {1,-2,3,4,-5,6}>"
      "{ x = Gather(table, ids)  y = Tanh(x) }";
  CHECK(why_not(kMany, training_with(plain)) == "6 ids are no fewer than 3 rows");
  OptimizerOptions asked = plain;
  asked.sparse_embeddings = true;  // what the numbers are does not depend on the batch then
  CHECK(count_ops(step_of(kMany, training_with(asked), true), "SgdRowsStep") == 1);
}

TEST_CASE("sparse_rows: an untied head's table leaves the arena, in place") {
  for (bool lazy : {false, true}) {
    CAPTURE(lazy);
    OptimizerOptions optimizer = sgd();
    if (lazy) optimizer = {.kind = OptimizerKind::kAdamW, .clip_norm = 1.0, .groups = {}};
    optimizer.sparse_embeddings = lazy;
    // So few tokens that the peak is where all gradients are there.
    const auto sparse = compiled("llama", kLlama, optimizer, true, 2);
    const auto dense = compiled("llama", kLlama, optimizer, false, 2);
    CHECK(embeddings(the_stage(*sparse)) == 1);
    CHECK(the_stage(*sparse).near_misses.empty());
    const std::int64_t table = 5000 * 16 * 4;
    CHECK(sparse->program.arena().bytes < dense->program.arena().bytes - table / 3);
    CHECK(std::ranges::count(sparse->program.calls, CallKind::kStateCopy, &Call::kind) == 0);
    CHECK(sparse->program.persistent_bytes <= dense->program.persistent_bytes + 64);
  }
}

TEST_CASE("sparse_rows: counts on the builders") {
  const ModelArguments gpt{{"layers", std::int64_t{1}},
                           {"heads", std::int64_t{2}},
                           {"embedding", std::int64_t{16}},
                           {"vocab", std::int64_t{5000}},
                           {"context", std::int64_t{64}}};
  const auto tied = compiled("gpt2", gpt, sgd(), true);
  CHECK(embeddings(the_stage(*tied)) == 0);
  bool named = false;
  for (const NearMiss& miss : the_stage(*tied).near_misses) {
    named = named || contains(miss.reason, "the gradient of all rows");
  }
  CHECK(named);
  CHECK(embeddings(the_stage(*compiled("llama", kLlama, {.groups = {}}, true))) == 0);
}

}  // namespace trainscope::test
