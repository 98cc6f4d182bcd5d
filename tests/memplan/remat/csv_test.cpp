// Tests of the recompute problems' CSV reader and writer.
#include "memplan/remat/csv.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/memplan/remat/problems.h"

namespace trainscope::memplan {
namespace {

using std::string;

constexpr const char* kHeader = "id,name,bytes,time,backward,inputs\n";

TEST_CASE("remat csv: reads rows in order, with LF or CRLF, with or without a last line end") {
  for (const char* text : {"id,name,bytes,time,backward,inputs\n7,a,5,2,0,\n9,b,6,3,1,7\n",
                           "id,name,bytes,time,backward,inputs\r\n7,a,5,2,0,\r\n9,b,6,3,1,7\r\n",
                           "id,name,bytes,time,backward,inputs\n7,a,5,2,0,\n9,b,6,3,1,7"}) {
    const ParsedRemat parsed = parse_remat_csv(text);
    CHECK(parsed.message.empty());
    REQUIRE(parsed.problem.nodes.size() == 2);
    const RematNode& node = parsed.problem.nodes[1];
    CHECK(node.id == 9);
    CHECK(node.name == "b");
    CHECK(node.bytes == 6);
    CHECK(node.time == 3);
    CHECK(node.backward);
    CHECK(node.may_rerun);
    CHECK(node.layer == -1);
    CHECK(node.inputs == std::vector<std::int32_t>{0});
  }
  CHECK(parse_remat_csv(kHeader).problem.nodes.empty());
  CHECK(parse_remat_csv(kHeader).message.empty());
}

TEST_CASE("remat csv: further columns in any order") {
  const ParsedRemat parsed = parse_remat_csv(
      "id,name,bytes,time,backward,inputs,layer,rerun,workspace\n0,,5,2,0,,3,0,40\n1,,5,2,0,,,1,"
      "0\n");
  CHECK(parsed.message.empty());
  REQUIRE(parsed.problem.nodes.size() == 2);
  CHECK(parsed.problem.nodes[0].layer == 3);
  CHECK_FALSE(parsed.problem.nodes[0].may_rerun);
  CHECK(parsed.problem.nodes[0].workspace_bytes == 40);
  CHECK(parsed.problem.nodes[1].layer == -1);
}

TEST_CASE("remat csv: malformed input is refused with its line and reason") {
  struct Case {
    string rows;  // after a good header and one good row
    string message;
  };
  const std::vector<Case> cases = {
      {"1\n", "line 3: expected 6 columns, found 1 in '1' (separate the inputs by spaces)"},
      {"1,b,1,1,0,0,0\n",
       "line 3: expected 6 columns, found 7 in '1,b,1,1,0,0,0' (separate the inputs by spaces)"},
      {"x,b,1,1,0,\n", "line 3: id 'x' is not a whole number"},
      {"1,b,-1,1,0,\n", "line 3: bytes '-1' is negative"},
      {"1,b,1,1.5,0,\n", "line 3: time '1.5' is not a whole number"},
      {"1,b,1,1,yes,\n", "line 3: backward is 'yes', expected 0 or 1"},
      {"1,b,1,1,0,5\n", "line 3: input '5' is no id of an earlier row"},
      {"1,b,1,1,0,1\n", "line 3: input '1' is no id of an earlier row"},
      {"1,b,1,1,0,0 0\n", "line 3: input '0' is named twice"},
      {"0,b,1,1,0,\n", "line 3: the id 0 was used in an earlier row already"},
      {"1,\"b\",1,1,0,\n",
       "line 3: the name '\"b\"' has a quote or control character (quoting is not supported)"},
      {"1,b,99999999999999999999,1,0,\n",
       "line 3: bytes '99999999999999999999' does not fit a signed 64-bit integer"},
      {"1,b,9007199254740993,1,0,\n", "the bytes of all nodes add up to more than 2^53"},
      {"1,b,1,9007199254740993,0,\n",
       "the times of all nodes add up to more than 2^53: use a larger unit"},
  };
  for (const Case& c : cases) {
    const ParsedRemat parsed = parse_remat_csv(string(kHeader) + "0,a,1,1,0,\n" + c.rows);
    CHECK(parsed.message == c.message);
    CHECK(parsed.problem.nodes.empty());
  }
}

TEST_CASE("remat csv: a wrong header is refused") {
  for (const char* text : {"", "\n", "0,a,1,1,0,\n", "id,name,bytes,time,backward\n",
                           "id,name,bytes,time,backward,inputs,colour\n",
                           "id,name,bytes,time,backward,inputs,layer,layer\n"}) {
    const ParsedRemat parsed = parse_remat_csv(text);
    CHECK(parsed.message.starts_with("line 1: the header is '"));
    CHECK(parsed.message.ends_with("and then any of workspace, rerun, layer"));
  }
}

TEST_CASE("remat csv: what was written reads back equal") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RematProblem problem =
        testing::random_graph(seed, {.nodes = 40, .banned = true, .workspace = true});
    const ParsedRemat parsed = parse_remat_csv(write_remat_csv(problem));
    REQUIRE(parsed.message == "");
    REQUIRE(parsed.problem.nodes.size() == problem.nodes.size());
    for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
      const RematNode& a = problem.nodes[i];
      const RematNode& b = parsed.problem.nodes[i];
      CHECK(a.id == b.id);
      CHECK(a.name == b.name);
      CHECK(a.bytes == b.bytes);
      CHECK(a.time == b.time);
      CHECK(a.may_rerun == b.may_rerun);
      CHECK(a.workspace_bytes == b.workspace_bytes);
      CHECK(a.inputs == b.inputs);
    }
  }
}

TEST_CASE("remat csv: plans read back equal, and unknown actions are refused") {
  const RematProblem problem = testing::chain_step(5, 1);
  const RematPlan plan = save_all_plan(problem);
  const ParsedRematPlan parsed = parse_remat_plan_csv(problem, write_remat_plan_csv(problem, plan));
  CHECK(parsed.message.empty());
  CHECK(parsed.plan == plan);
  CHECK(parse_remat_plan_csv(problem, "compute,0\nfree,99\n").message ==
        "line 2: there is no node '99'");
  CHECK(parse_remat_plan_csv(problem, "run,0\n").message ==
        "line 1: expected compute,ID or free,ID, found 'run,0'");
}

TEST_CASE("remat csv: no truncation or flipped byte makes the reader misbehave") {
  const string good = string(kHeader) + "0,a,1,1,0,\n1,b,20,3,1,0\n2,c,20,3,1,0 1\n";
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      const ParsedRemat parsed = parse_remat_csv(bad);
      CHECK((parsed.message.empty() || parsed.problem.nodes.empty()));
      CHECK_FALSE(find_remat_error(parsed.problem));
    }
    const ParsedRemat cut = parse_remat_csv(good.substr(0, at));
    CHECK((cut.message.empty() || cut.problem.nodes.empty()));
  }
}

}  // namespace
}  // namespace trainscope::memplan
