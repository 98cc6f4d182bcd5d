// Recomputation on the reference models: the same bits, the bytes predicted, within the budget.
#include <doctest/doctest.h>

#include "engine/exec/backends.h"
#include "tests/engine/recompute/recompute_tools.h"
#include "tests/support/copying_device.h"

namespace trainscope::test {
namespace {

const std::string kSuffix = "/rematerialized";  // of the names of second executions

std::int64_t rematerialized_nodes(const Trained& trained) {
  return trained.session.compiled().recompute->repeats;
}

}  // namespace

TEST_CASE("recompute: levels keep every bit and predict every byte") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    Trained plain(name, {});
    for (RecomputeMode mode : {RecomputeMode::kLevel1, RecomputeMode::kLevel2}) {
      CAPTURE(static_cast<int>(mode));
      Trained level(name, {.mode = mode});
      check_equal(plain, level);
    }
  }
}

// `compile` checks that the step lowered with them has the bytes that were planned.
TEST_CASE("recompute: on a device whose buffers begin at multiples of 256 bytes") {
  const auto device = std::make_shared<CopyingDevice>(CopyingOptions{.alignment_bytes = 256});
  std::int64_t repeats = 0;
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    CompileOptions options = reference.options(GraphMode::kTrain);
    options.device = device;
    const std::unique_ptr<Compiled> plain = compile(reference.model, options);
    options.recompute.mode = RecomputeMode::kLevel1;
    repeats += compile(reference.model, options)->recompute->repeats;
    options.recompute = {.mode = RecomputeMode::kAuto, .max_overhead = 0.2};
    const std::unique_ptr<Compiled> least = compile(reference.model, options);
    CHECK(least->program.arena().alignment_bytes == 256);
    CHECK(least->program.arena().bytes <= plain->program.arena().bytes);
  }
  CHECK(repeats > 0);
}

TEST_CASE("recompute: in the memory of a level the planner is not slower than it") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    Trained plain(name, {});
    const ReferenceModel reference(name);
    for (RecomputeMode mode : {RecomputeMode::kLevel1, RecomputeMode::kLevel2}) {
      CAPTURE(static_cast<int>(mode));
      CompileOptions options = reference.options(GraphMode::kTrain);
      options.recompute.mode = mode;
      const std::unique_ptr<Compiled> level = compile(reference.model, options);
      const std::int64_t budget = level->program.arena().bytes;
      if (budget >= plain.program().arena().bytes) continue;  // the level saves nothing here
      Trained within(name, {.mode = RecomputeMode::kAuto, .budget_bytes = budget});
      CHECK(within.program().arena().bytes <= budget);
      CHECK(rematerialized_nodes(within) > 0);
      CHECK(within.session.compiled().recompute->seconds <= level->recompute->seconds);
      CHECK(within.session.compiled().recompute->bound_seconds <=
            within.session.compiled().recompute->seconds);
      check_equal(plain, within);
    }
  }
}

TEST_CASE("recompute: no slower than asked for") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    Trained plain(name, {});
    Trained quick(name, {.mode = RecomputeMode::kAuto, .max_overhead = 0.05});
    const RecomputeSummary& summary = *quick.session.compiled().recompute;
    CHECK(summary.seconds <= 1.05 * summary.plain_seconds);
    CHECK(quick.program().arena().bytes <= plain.program().arena().bytes);
    check_equal(plain, quick);
  }
}

TEST_CASE("recompute: a third of what is above parameters, gradients and states is enough") {
  for (const std::string name : {"gpt2", "bert", "llama"}) {  // the first two with a tied table
    CAPTURE(name);
    Trained plain(name, {});
    std::int64_t persistent = plain.program().persistent_bytes;
    const Graph& graph = plain.program().graph;
    for (ValueId v : graph.values_of(ValueKind::kParameter)) {
      persistent += static_cast<std::int64_t>(graph.value(v).type.bytes());
    }
    const std::int64_t above = plain.program().arena().bytes - persistent;
    REQUIRE(above > 0);
    for (std::int64_t percent : {75, 50, 35}) {
      CAPTURE(percent);
      const std::int64_t budget = persistent + above * percent / 100;
      Trained within(name, {.mode = RecomputeMode::kAuto, .budget_bytes = budget});
      CHECK(within.program().arena().bytes <= budget);
      CHECK(rematerialized_nodes(within) > 0);
      check_equal(plain, within);
    }
  }
}

TEST_CASE("recompute: a budget that holds everything changes nothing") {
  Trained plain("gpt2", {});
  Trained within("gpt2",
                 {.mode = RecomputeMode::kAuto, .budget_bytes = plain.program().arena().bytes});
  CHECK(rematerialized_nodes(within) == 0);
  CHECK(within.program().arena().bytes == plain.program().arena().bytes);
}

TEST_CASE("recompute: a budget below any plan names the op and the least one" *
          doctest::test_suite("cpu")) {
  const ReferenceModel reference("gpt2");
  CompileOptions options = reference.options(GraphMode::kTrain);
  options.recompute = {.mode = RecomputeMode::kAuto, .budget_bytes = 1000};
  try {
    compile(reference.model, options);
    FAIL("1000 bytes were enough");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kOutOfMemory);
    CHECK(error.message().find("no plan was found for 1000 bytes: most are needed by node '") !=
          std::string::npos);
    CHECK(error.hint().find("the least budget with a plan is ") != std::string::npos);
  }
}

TEST_CASE("recompute: pins keep and force") {
  Trained plain("lenet", {});
  const Graph& graph = plain.program().graph;
  std::string kept;
  for (NodeId id : graph.order()) {
    if (graph.node(id).op->name == "Tanh" && kept.empty()) {
      kept = graph.value(graph.node(id).outputs[0]).name;
    }
  }
  REQUIRE(kept != "");
  const auto is_rematerialized = [](const Trained& trained, const std::string& value) {
    return trained.program().graph.find(value + kSuffix) != kNoValue;
  };
  Trained forced("lenet", {.mode = RecomputeMode::kClusters, .recompute = {kept}});
  check_equal(plain, forced);
  CHECK(is_rematerialized(forced, kept));
  const std::int64_t enough = plain.program().arena().bytes * 2;
  Trained roomy("lenet",
                {.mode = RecomputeMode::kAuto, .budget_bytes = enough, .recompute = {kept}});
  check_equal(plain, roomy);
  CHECK(is_rematerialized(roomy, kept));
  Trained level("lenet", {.mode = RecomputeMode::kLevel2, .keep = {"*"}});
  CHECK(rematerialized_nodes(level) == 0);
  check_equal(plain, level);
}

TEST_CASE("recompute: the planner and the methods beside it keep to pins") {
  Trained plain("gpt2", {});
  const std::int64_t budget = plain.program().arena().bytes * 9 / 10;
  Trained free("gpt2", {.mode = RecomputeMode::kAuto, .budget_bytes = budget});
  std::vector<std::string> chosen;
  for (ValueId id : free.program().graph.live_values()) {
    const std::string& name = free.program().graph.value(id).name;
    if (name.ends_with(kSuffix)) chosen.push_back(name.substr(0, name.size() - kSuffix.size()));
  }
  REQUIRE(!chosen.empty());
  Trained other("gpt2", {.mode = RecomputeMode::kAuto, .budget_bytes = budget, .keep = chosen});
  CHECK(other.program().arena().bytes <= budget);
  for (const std::string& name : chosen) {
    CHECK(other.program().graph.find(name + kSuffix) == kNoValue);
  }
  check_equal(plain, other);
  const ReferenceModel reference("gpt2");
  CompileOptions options = reference.options(GraphMode::kTrain);
  options.recompute = {.mode = RecomputeMode::kAuto, .budget_bytes = budget, .keep = {"*"}};
  CHECK_THROWS_WITH_AS(compile(reference.model, options), doctest::Contains("no plan was found"),
                       Error);
}

// The figure in "... the least budget with a plan is N bytes ...".
std::int64_t least_budget_in(const Error& error) {
  const std::string& text = error.hint();
  const std::string before = "least budget with a plan is ";
  const std::size_t at = text.find(before);
  REQUIRE(at != std::string::npos);
  return std::stoll(text.substr(at + before.size()));
}

TEST_CASE("recompute: a refusal names a budget that has a plan" * doctest::test_suite("cpu")) {
  const ReferenceModel reference("gpt2");
  CompileOptions options = reference.options(GraphMode::kTrain);
  options.recompute = {.mode = RecomputeMode::kAuto, .budget_bytes = 1000};
  std::optional<Error> refusal;
  try {
    compile(reference.model, options);
  } catch (const Error& error) {
    refusal = error;
  }
  REQUIRE(refusal);
  const std::int64_t least = least_budget_in(*refusal);
  options.recompute.budget_bytes = least;
  CHECK(compile(reference.model, options)->program.arena().bytes <= least);
}

TEST_CASE("recompute: of the plans within an overhead the least, and of these the quickest" *
          doctest::test_suite("cpu")) {
  for (const std::string name : {"gpt2", "resnet18"}) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    const CompileOptions options = reference.options(GraphMode::kTrain);
    const Program plain = compile(reference.model, options)->program;
    const std::vector<double> seconds = step_seconds(plain, {});
    const std::vector<TradePoint> front =
        recompute_front(plain, seconds, op_table(), options.lower);
    const double plain_seconds = front.front().seconds;
    for (std::size_t i = 1; i < front.size(); i += 1 + front.size() / 3) {
      CAPTURE(i);
      const double overhead = front[i].seconds / plain_seconds - 1.0 + 1e-9;
      const RecomputePlan plan =
          plan_recompute(plain, seconds, op_table(),
                         {.mode = RecomputeMode::kAuto, .max_overhead = overhead}, options.lower);
      CHECK(plan.seconds <= (1 + overhead) * plain_seconds);
      CHECK(plan.arena_bytes <= front[i].arena_bytes);
      if (plan.arena_bytes == front[i].arena_bytes) {
        CHECK(plan.seconds <= front[i].seconds * (1 + 1e-9));
      }
    }
  }
}

TEST_CASE("recompute: what is pinned to recompute must be within the overhead, and must run" *
          doctest::test_suite("cpu")) {
  const ReferenceModel reference("gpt2");
  CompileOptions options = reference.options(GraphMode::kTrain);
  const std::unique_ptr<Compiled> plain = compile(reference.model, options);
  std::string read;  // by the backward phase
  for (NodeId id : plain->program.graph.order()) {
    const Node& node = plain->program.graph.node(id);
    if (node.op->name == "Gelu") read = plain->program.graph.value(node.outputs[0]).name;
  }
  REQUIRE(read != "");
  options.recompute = {.mode = RecomputeMode::kAuto, .max_overhead = 1e-9, .recompute = {read}};
  CHECK_THROWS_WITH_AS(compile(reference.model, options),
                       doctest::Contains("what is pinned to be recomputed takes"), Error);
  options.recompute.max_overhead = 0.5;
  CHECK(compile(reference.model, options)->recompute->repeats > 0);
  options.recompute.keep = {read};
  CHECK_THROWS_WITH_AS(compile(reference.model, options),
                       doctest::Contains("would be recomputed: 'keep' names it too"), Error);
}

TEST_CASE("recompute: what the backward phase does not read cannot be pinned to recompute") {
  const ReferenceModel reference("bert");
  CompileOptions options = reference.options(GraphMode::kTrain);
  const std::unique_ptr<Compiled> plain = compile(reference.model, options);
  const Graph& graph = plain->program.graph;
  std::string unread;  // a sum of embeddings, which only another sum reads
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op->name != "Add" || !unread.empty()) continue;
    const Value& sum = graph.value(node.outputs[0]);
    const bool summed = std::ranges::all_of(
        sum.uses, [&](const Use& use) { return graph.node(use.node).op->name == "Add"; });
    if (summed) unread = sum.name;
  }
  REQUIRE(unread != "");
  options.recompute = {.mode = RecomputeMode::kClusters, .recompute = {unread}};
  CHECK_THROWS_WITH_AS(compile(reference.model, options),
                       doctest::Contains("the backward phase reads none of it"), Error);
}

TEST_CASE("recompute: more threads than the system has change nothing") {
  const ReferenceModel reference("gpt2");
  const CompileOptions options = reference.options(GraphMode::kTrain);
  const Program plain = compile(reference.model, options)->program;
  const std::vector<double> seconds = step_seconds(plain, {});
  LowerOptions many = options.lower;
  many.threads = 1'000'000;
  const std::vector<TradePoint> one = recompute_front(plain, seconds, op_table(), options.lower);
  const std::vector<TradePoint> all = recompute_front(plain, seconds, op_table(), many);
  REQUIRE(all.size() == one.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    CHECK(all[i].arena_bytes == one[i].arena_bytes);
    CHECK(all[i].seconds == one[i].seconds);
  }
}

TEST_CASE("recompute: each value that goes to host memory and back has its price" *
          doctest::test_suite("cpu")) {
  const ReferenceModel reference("gpt2");
  const CompileOptions options = reference.options(GraphMode::kTrain);
  const Program plain = compile(reference.model, options)->program;
  const std::vector<double> seconds = step_seconds(plain, {});
  const HostLink link{.bytes_per_second = 1e12, .seconds_per_transfer = 1e-9};
  const RecomputePlan plan = plan_recompute(
      plain, seconds, op_table(), {.mode = RecomputeMode::kAuto, .max_overhead = 0.5, .link = link},
      options.lower);
  double more = 0.0;
  std::int64_t host_bytes = 0;
  for (const Rematerialization& each : plan.rematerializations) {
    if (each.node != kNoNode) {
      more += seconds[static_cast<std::size_t>(each.node)];
      continue;
    }
    const auto bytes = static_cast<std::int64_t>(plain.graph.value(each.fetch).type.bytes());
    more += 2 * link.seconds(bytes);
    host_bytes += bytes;
  }
  CHECK(host_bytes > 0);
  CHECK(plan.host_bytes == host_bytes);
  CHECK(plan.seconds - plan.plain_seconds == doctest::Approx(more).epsilon(1e-6));
}

TEST_CASE("recompute: a slider without time gives what it knows, and searches once it has some") {
  const ReferenceModel reference("bert");
  const CompileOptions options = reference.options(GraphMode::kTrain);
  const std::unique_ptr<Compiled> compiled = compile(reference.model, options);
  const Program& plain = compiled->program;
  const auto slider = [&] {
    return RecomputeSlider(plain, step_seconds(plain, {}), op_table(), options.lower);
  };
  RecomputeSlider hurried = slider();
  RecomputeSlider patient = slider();
  const std::vector<TradePoint> front = hurried.front();
  REQUIRE(front.size() > 3);
  int searched = 0;  // budgets for which the search found something quicker than the front
  for (std::size_t i = 1; i < front.size(); ++i) {
    CAPTURE(i);
    const std::int64_t budget = (front[i - 1].arena_bytes + front[i].arena_bytes) / 2;
    const std::vector<TradePoint> by_time = hurried.front();
    const auto fits = [budget](const TradePoint& each) { return each.arena_bytes <= budget; };
    const double known = std::ranges::find_if(by_time, fits)->seconds;
    const std::optional<TradePoint> at_once = hurried.point_within(budget, 0.0);
    REQUIRE(at_once);
    CHECK(at_once->seconds == known);
    // What a short search left is not taken for all that there is.
    REQUIRE(hurried.point_within(budget, 1e-6));
    const std::optional<TradePoint> found = hurried.point_within(budget);
    REQUIRE(found);
    CHECK(found->seconds <= patient.point_within(budget)->seconds);
    const std::optional<RecomputePlan> plan = hurried.plan_within(budget, 0.0);
    REQUIRE(plan);
    CHECK(plan->seconds == found->seconds);
    CHECK(plan->arena_bytes <= budget);
    searched += found->seconds < known ? 1 : 0;
  }
  CHECK(searched > 0);
}

TEST_CASE("recompute: a slider's plans fit, and more memory is never slower") {
  const ReferenceModel reference("bert");
  const CompileOptions options = reference.options(GraphMode::kTrain);
  const std::unique_ptr<Compiled> compiled = compile(reference.model, options);
  const Program& plain = compiled->program;
  RecomputeSlider slider(plain, step_seconds(plain, {}), op_table(), options.lower);
  const std::vector<TradePoint> front = slider.front();
  REQUIRE(front.size() > 3);
  CHECK(front.front().rematerialized_nodes == 0);
  const std::int64_t least = front.back().arena_bytes;
  CHECK_FALSE(slider.point_within(1000).has_value());
  constexpr int kBudgets = 40;
  const auto budget = [&](int i) { return least + (plain.arena().bytes - least) * i / kBudgets; };
  for (int i = kBudgets; i >= 0; --i) slider.point_within(budget(i));
  double most_seconds = 1e9;
  for (int i = 0; i <= kBudgets; ++i) {
    CAPTURE(i);
    const std::optional<TradePoint> point = slider.point_within(budget(i));
    const std::optional<RecomputePlan> plan = slider.plan_within(budget(i));
    REQUIRE(point);
    REQUIRE(plan);
    CHECK(point->seconds == plan->seconds);
    CHECK(point->arena_bytes >= plan->arena_bytes);
    CHECK(plan->arena_bytes <= budget(i));
    CHECK(plan->seconds <= most_seconds);
    most_seconds = plan->seconds;
    const Program program = lower(plan->graph.graph, test_device(), options.lower);
    CHECK(program.arena().bytes == plan->arena_bytes);
  }
  for (std::size_t i = 1; i < front.size(); ++i) {
    CHECK(front[i].arena_bytes < front[i - 1].arena_bytes);
    CHECK(front[i].seconds >= front[i - 1].seconds);
  }
}

}  // namespace trainscope::test
