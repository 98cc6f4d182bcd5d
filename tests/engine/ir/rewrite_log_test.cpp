// The rewrite log: each thing that a rewriter can do is told as what it is, and what it did not say
// is told as that.
#include "engine/ir/rewrite_log.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>

#include "engine/ir/rewriter.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

std::string thing_text(const NamedThing& thing) {
  return (thing.is_node ? "node " : "value ") + thing.name;
}

std::string line(const RewriteLog& log, const RewriteEntry& entry) {
  std::string text = std::string(name_of(entry.kind)) + " " + thing_text(entry.thing);
  if (!entry.detail.empty()) text += " (" + entry.detail + ")";
  for (const NamedThing& other : entry.others) text += " | " + thing_text(other);
  if (entry.rule != 0) text += " by " + log.rules[entry.rule].name;
  return text;
}

std::set<std::string> lines(const RewriteLog& log) {
  std::set<std::string> all;
  for (const RewriteEntry& entry : log.entries) all.insert(line(log, entry));
  return all;
}

NodeId maker(const Graph& graph, std::string_view value) {
  return graph.value(graph.find(value)).producer;
}

// What the log says of these changes.
std::set<std::string> log_of(std::string_view text, const std::function<void(Rewriter&)>& change) {
  const Graph before = graph(text);
  Graph after = before;
  Rewriter rewriter(after, op_table(), "test", nullptr);
  change(rewriter);
  const Graph compacted = after.compacted();
  REQUIRE(verify(compacted).empty());
  return lines(rewrite_log(before, compacted, after.notes, {.name = "test", .reason = "why"}));
}

constexpr const char* kChain =
    "(float[2] x) => (float[2] z) { a = Relu(x)  b = Exp(a)  z = Neg(b) }";

using Lines = std::set<std::string>;

}  // namespace

TEST_CASE("rewrite log: nothing done, nothing told") {
  CHECK(log_of(kChain, [](Rewriter&) {}).empty());
}

TEST_CASE("rewrite log: a node in another's place") {
  const auto replace = [](Rewriter& rewriter) {
    const Graph& g = rewriter.graph();
    const NodeId exp = maker(g, "b");
    rewriter.replace_node(exp, {rewriter.before(exp)("Abs", {g.find("a")})});
  };
  CHECK(log_of(kChain, replace) ==
        Lines{"inside node Exp_1 | node Abs", "replaced value b | value Abs",
              "added node Abs | node Exp_1", "added value Abs | value b"});
}

TEST_CASE("rewrite log: a region is inside the node that computes, not what reshapes its result") {
  const auto fuse = [](Rewriter& rewriter) {
    const Graph& g = rewriter.graph();
    const NodeId neg = maker(g, "z");
    const NodeId exp = maker(g, "b");
    Builder& b = rewriter.before(neg);
    const ValueId made = b.reshape(b("Abs", {b.reshape(g.find("a"), {2, 1})}), {2});
    rewriter.replace_node(neg, {made});
    rewriter.erase_into(exp, made);
  };
  const Lines told = log_of(kChain, fuse);
  CHECK(told.contains("inside node Neg_2 | node Abs"));
  CHECK(told.contains("inside node Exp_1 | node Abs"));
  CHECK(told.contains("inside value b | node Abs"));
  CHECK(told.contains("replaced value z | value z"));  // the new one has taken its name
  CHECK(told.contains("added node Abs | node Exp_1 | node Neg_2"));
}

TEST_CASE("rewrite log: one node alone whose work several do is split") {
  const auto decompose = [](Rewriter& rewriter) {
    const Graph& g = rewriter.graph();
    const NodeId exp = maker(g, "b");
    Builder& b = rewriter.before(exp);
    rewriter.replace_node(exp, {b("Sqrt", {b("Abs", {g.find("a")})})});
  };
  const Lines told = log_of(kChain, decompose);
  CHECK(told.contains("split node Exp_1 | node Sqrt | node Abs"));
  CHECK(told.contains("added node Abs | node Exp_1"));
  CHECK(told.contains("added node Sqrt | node Exp_1"));
}

TEST_CASE("rewrite log: what came and went within the pass is not told, its readers are followed") {
  const auto twice = [](Rewriter& rewriter) {
    const Graph& g = rewriter.graph();
    const NodeId exp = maker(g, "b");
    const ValueId abs = rewriter.before(exp)("Abs", {g.find("a")});
    rewriter.replace_node(exp, {abs});
    const NodeId between = g.value(abs).producer;
    rewriter.replace_node(between, {rewriter.before(between)("Sqrt", {g.find("a")})});
  };
  CHECK(log_of(kChain, twice) ==
        Lines{"inside node Exp_1 | node Sqrt", "replaced value b | value Sqrt",
              "added node Sqrt | node Exp_1", "added value Sqrt | value b"});
}

TEST_CASE("rewrite log: without effect, unread, dead") {
  const auto drop = [](Rewriter& rewriter) {
    rewriter.replace_node(maker(rewriter.graph(), "a"), {rewriter.graph().find("x")});
  };
  CHECK(log_of(kChain, drop) ==
        Lines{"replaced node Relu_0 | value x", "replaced value a | value x"});
  const auto skip = [](Rewriter& rewriter) {
    rewriter.set_input(maker(rewriter.graph(), "z"), 0, rewriter.graph().find("a"));
  };
  CHECK(log_of(kChain, skip) == Lines{"changed node Neg_2 (input 0: 'b' -> 'a')",
                                      "unread node Exp_1 | node Neg_2",
                                      "unread value b | node Neg_2"});
  const auto bury = [](Rewriter& rewriter) {
    rewriter.set_input(maker(rewriter.graph(), "z"), 0, rewriter.graph().find("a"));
    rewriter.set_rule("burial", "Dead.");
    rewriter.erase_dead(maker(rewriter.graph(), "b"));
  };
  CHECK(log_of(kChain, bury) == Lines{"changed node Neg_2 (input 0: 'b' -> 'a')",
                                      "dead node Exp_1 by burial", "dead value b by burial"});
}

TEST_CASE("rewrite log: a node or constant that goes without a word has no reason") {
  const auto drop = [](Rewriter& rewriter) { rewriter.erase(maker(rewriter.graph(), "b")); };
  CHECK(log_of("(float[2] x) => (float[2] z) { b = Exp(x)  z = Neg(x) }", drop) ==
        Lines{"removed node Exp_0", "removed value b"});
  const auto forget = [](Rewriter& rewriter) { rewriter.erase_value(rewriter.graph().find("c")); };
  CHECK(log_of("(float[2] x) => (float[2] z) <float[2] w = {1, 2}, int64[1] c = {1}> "
               "{ z = Mul(x, w) }",
               forget) == Lines{"removed value c"});
}

TEST_CASE("rewrite log: folded to a constant, merged with an equal one") {
  const auto fold = [](Rewriter& rewriter) {
    rewriter.set_rule("known", "Known.");
    rewriter.fold(maker(rewriter.graph(), "s"));
  };
  const Lines told =
      log_of("(float[2,3] x) => (float[2,3] z) { s = Shape(x)  z = Reshape(x, s) }", fold);
  CHECK(told == Lines{"folded node Shape_0 | value s/known by known",
                      "folded value s | value s/known by known", "added value s/known | value s"});
}

TEST_CASE("rewrite log: renamed, another type, a copy") {
  const auto rename = [](Rewriter& rewriter) {
    rewriter.graph().rename(rewriter.graph().find("a"), "first");
  };
  CHECK(log_of(kChain, rename) == Lines{"renamed value a (first)"});
  const auto copy = [](Rewriter& rewriter) {
    const Graph& g = rewriter.graph();
    const NodeId relu = maker(g, "a");
    const NodeId neg = maker(g, "z");
    const ValueId made = rewriter.before(neg)("Relu", {g.find("x")});
    rewriter.copies(g.value(made).producer, relu);
    rewriter.set_input(neg, 0, made);
  };
  const Lines told = log_of(kChain, copy);
  CHECK(told.contains("rematerialized node Relu | node Relu_0"));
  CHECK(told.contains("rematerialized value Relu | value a"));
}

TEST_CASE("rewrite log: as lines of JSON and back") {
  const Graph before = graph(kChain);
  Graph after = before;
  Rewriter rewriter(after, op_table(), "test", nullptr);
  rewriter.set_rule("burial", "Dead \"now\".");
  rewriter.set_input(maker(after, "z"), 0, after.find("a"));
  rewriter.erase_dead(maker(after, "b"));
  after.rename(after.find("a"), "a \"new\" name");
  const RewriteLog log =
      rewrite_log(before, after.compacted(), after.notes, {.name = "test", .reason = "why"});
  const std::string text = rewrite_log_text(log);
  const RewriteLog back = rewrite_log_from(text);
  CHECK(lines(back) == lines(log));
  REQUIRE(back.rules.size() == 2);
  CHECK(back.rules[1].reason == "Dead \"now\".");
  CHECK(rewrite_log_text(back) == text);
  for (std::size_t i = 0; i < log.entries.size(); ++i) {
    CHECK(back.entries[i].thing.serial == log.entries[i].thing.serial);
    CHECK(back.entries[i].others == log.entries[i].others);
  }
  CHECK(rewrite_log_text({}).empty());
  CHECK(rewrite_log_from("").entries.empty());
}

TEST_CASE("rewrite log: damaged lines are refused by their number") {
  const std::string rule = R"({"kind":"rule","rule":0,"name":"t","reason":"r"})";
  const std::string entry = R"({"kind":"dead","node":"n","serial":3,"rule":0})";
  CHECK(rewrite_log_from(rule + "\n" + entry + "\n").entries.size() == 1);
  CHECK(contains(refusal_of([&] { rewrite_log_from(rule + "\n" + entry); }), "line 2"));
  CHECK(contains(refusal_of([&] { rewrite_log_from(entry + "\n"); }), "rule 0 is not among the 0"));
  CHECK(contains(refusal_of([&] { rewrite_log_from(rule + "\n{\n"); }), "line 2"));
  CHECK(contains(refusal_of([&] {
                   rewrite_log_from(rule + "\n" + R"({"kind":"gone","node":"n","rule":0})" + "\n");
                 }),
                 "'gone' is no kind of entry"));
}

TEST_CASE("serials: copies keep them, none is given twice") {
  Graph g = graph(kChain);
  const Serial exp = g.node(maker(g, "b")).serial;
  const Serial b = g.value(g.find("b")).serial;
  const Graph compacted = g.compacted();
  CHECK(compacted.node(maker(compacted, "b")).serial == exp);
  CHECK(compacted.value(compacted.find("b")).serial == b);
  Rewriter rewriter(g, op_table(), "test", nullptr);
  const NodeId old = maker(g, "b");
  rewriter.replace_node(old, {rewriter.before(old)("Abs", {g.find("a")})});
  Graph next = g.compacted();
  const Serial last = next.last_serial();
  Builder builder(next, op_table());
  builder.set_provenance({.sources = {}, .pass = "test"});
  const ValueId made = builder("Sqrt", {next.find("a")});
  CHECK(next.value(made).serial > last);
  CHECK(next.node(next.value(made).producer).serial > last);
  CHECK(verify(next).empty());
}

TEST_CASE("serials: two of one serial, and a forward node in a gradient, break the graph's rules") {
  Graph g = graph(kChain);
  g.value(g.find("b")).serial = g.value(g.find("a")).serial;
  REQUIRE(verify(g).size() == 1);
  CHECK(contains(verify(g)[0], "its serial is not its own"));
  Graph forward = graph(kChain);
  forward.node(forward.first()).provenance.backward_of = forward.node(forward.last()).serial;
  REQUIRE(verify(forward).size() == 1);
  CHECK(contains(verify(forward)[0], "forward, but part of a gradient"));
}

TEST_CASE("rewriter: what a value is the gradient of moves to the value in its place") {
  Graph g = graph(kChain);
  const Serial x = g.value(g.find("x")).serial;
  g.value(g.find("b")).gradient_of.add(x);
  Rewriter rewriter(g, op_table(), "test", nullptr);
  const NodeId exp = maker(g, "b");
  const ValueId made = rewriter.before(exp)("Abs", {g.find("a")});
  rewriter.replace_node(exp, {made});
  CHECK(g.value(made).gradient_of == Serials{x});
  CHECK(g.compacted().value(g.compacted().find("Abs")).gradient_of == Serials{x});
}

}  // namespace trainscope::test
