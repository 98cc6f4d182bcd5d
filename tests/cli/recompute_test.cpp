// Memory for time from the command line: budgets, levels, requests, pins, measured costs, tables.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "engine/core/json.h"
#include "engine/core/text.h"
#include "tests/cli/program_runner.h"
#include "tests/cli/recompute_tools.h"

namespace trainscope::test {
TEST_CASE("recompute: a budget in bytes and in units") {
  const TemporaryFolder folder;
  const std::int64_t plain = peak(facts({}, folder));
  const Json bytes = facts({"--memory-budget", "700000"}, folder);
  CHECK(peak(bytes) <= 700000);
  CHECK(bytes.at("recompute").get<std::int64_t>("plain_bytes") == plain);
  CHECK(bytes.at("recompute").get<std::int64_t>("repeats") > 0);
  CHECK(bytes.at("recompute").get<double>("overhead") > 0);
  CHECK(bytes.at("recompute").get<std::int64_t>("bound_bytes") == 700000);
  CHECK(bytes.at("recompute").get<double>("bound_overhead") <=
        bytes.at("recompute").get<double>("overhead"));
  for (const char* same : {"700KB", "0.7MB", "0.0007GB", "700000B", "700000 B"}) {
    CAPTURE(same);
    CHECK(peak(facts({"--memory-budget", same}, folder)) == peak(bytes));
  }
  CHECK(peak(facts({"--memory-budget", "1GiB"}, folder)) == plain);
  const Json quick = facts({"--max-overhead", "2%"}, folder);
  CHECK(quick.at("recompute").get<double>("overhead") <= 0.02);
  CHECK(peak(facts({"--recompute", "auto", "--max-overhead", "0.02"}, folder)) == peak(quick));
}

TEST_CASE("recompute: more memory never means more time") {
  const TemporaryFolder folder;
  double before = 1e9;
  for (int kilobytes = 600; kilobytes <= 790; kilobytes += 30) {
    CAPTURE(kilobytes);
    const Json plan = facts({"--memory-budget", fmt::format("{}KB", kilobytes)}, folder);
    const auto overhead = plan.at("recompute").get<double>("overhead");
    CHECK(overhead <= before);
    before = overhead;
  }
}

TEST_CASE("recompute: what cannot be asked for") {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--memory-budget", "much"}, "--memory-budget is 'much': expected a number of bytes"},
      {{"--memory-budget", "-5"}, "expected a number of bytes"},
      {{"--memory-budget", "0"}, "expected a number of bytes"},
      {{"--memory-budget", "0.5"}, "--memory-budget is '0.5': expected a number of bytes"},
      {{"--memory-budget", "1e30"}, "expected a number of bytes"},
      {{"--memory-budget", "nan"}, "expected a number of bytes"},
      {{"--max-overhead", "-1%"}, "--max-overhead is '-1%': expected a share"},
      {{"--max-overhead", "fast"}, "expected a share"},
      {{"--max-overhead", "5%", "--memory-budget", "1MB"}, "two ways to ask"},
      {{"--skip-ignored", "--loss-chunks", "2"}, "do not go together"},
      {{"--skip-padding", "mask"}, "'mask', which is no input of the model"},
      {{"--skip-padding", "mask", "--target", "h200"}, "--skip-padding is for this machine"},
      {{"--recompute", "auto"}, "needs --memory-budget or --max-overhead"},
      {{"--recompute", "1", "--memory-budget", "1MB"}, "--recompute 1 plans for no limit"},
      {{"--recompute", "none", "--max-overhead", "1%"}, "--recompute none plans for no limit"},
      {{"--recompute", "3"}, "--recompute is '3'"},
      {{"--recompute", "Mul+"}, "--recompute is 'Mul+'"},
      {{"--recompute", "Add+:1"}, "'Add+:1' is no recompute request"},
      {{"--recompute", "Ad+:1:-1"}, "there is no recompute cluster 'Ad+' of kind 1"},
      {{"--recompute", "Nothing+Like+This+:1:-1"}, "plan --opportunities` lists them"},
      {{"--optimizer-in-backward", "--clip", "1"}, "with clipping"},
      {{"--optimizer-in-backward", "--accumulate", "2"}, "with accumulation"}};
  for (const auto& [words, message] : cases) {
    CAPTURE(join(words, " "));
    const Finished finished = plan(words, folder);
    CHECK(finished.exit_code == 2);
    CHECK_MESSAGE(finished.err.find(message) != std::string::npos, finished.err);
  }
  CHECK(plan({"--recompute", "nowhere.json"}, folder).exit_code == 6);
  CHECK(plan({"--pins", "nowhere.txt"}, folder).exit_code == 6);
  CHECK(plan({"--recompute", "1", "--costs", "nowhere.csv"}, folder).exit_code == 6);
}

TEST_CASE("recompute: a flag that would do nothing is refused") {
  const TemporaryFolder folder;
  const std::string alone = "--micro-batches compares splits of a step";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--micro-batches", "--front"}, alone},
      {{"--micro-batches", "--sweep", "3"}, alone},
      {{"--micro-batches", "--compare"}, alone},
      {{"--micro-batches", "--opportunities"}, alone},
      {{"--micro-batches", "--largest-batch", "--memory-budget", "9MB"}, alone},
      {{"--micro-batches", "--target", "h200"}, "--micro-batches is for this machine"},
      {{"--micro-batches", "--world", "2"}, "--world needs --target"},
      {{"--link-rate", "25GB"}, "--link-rate needs --offload"},
      {{"--max-overhead", "5%", "--link-rate", "25GB"}, "--link-rate needs --offload"}};
  for (const auto& [words, message] : cases) {
    CAPTURE(join(words, " "));
    const Finished finished = plan(words, folder);
    CHECK(finished.exit_code == 2);
    CHECK_MESSAGE(finished.err.find(message) != std::string::npos, finished.err);
  }
}

TEST_CASE("recompute: a budget that no plan keeps is exit code 5 with the least workable one") {
  const TemporaryFolder folder;
  const Finished finished = plan({"--memory-budget", "10KB"}, folder);
  CHECK(finished.exit_code == 5);
  CHECK(finished.err.find("no plan was found for 10000 bytes: most are needed by node '") !=
        std::string::npos);
  CHECK(finished.err.find("the least budget with a plan is ") != std::string::npos);
}

TEST_CASE("recompute: requests, a file of them, pins") {
  const TemporaryFolder folder;
  const Json table = facts({"--opportunities"}, folder).at("opportunities");
  REQUIRE(table.as_array().size() > 2);
  const Json& first = table.at(std::size_t{0});
  const auto cluster = first.get<std::string>("cluster");
  const std::string request = cluster + ":1:-1";
  const Json asked = facts({"--recompute", request}, folder);
  CHECK(asked.at("recompute").get<std::int64_t>("plain_bytes") - peak(asked) ==
        first.get<std::int64_t>("peak_saved_bytes"));
  std::ofstream(folder / "requests.json") << Json::array({request}).dump();
  CHECK(peak(facts({"--recompute", "requests.json"}, folder)) == peak(asked));
  std::ofstream(folder / "wrong.json") << "{\"a\": 1}";
  CHECK(plan({"--recompute", "wrong.json"}, folder).exit_code == 3);

  std::ofstream(folder / "pins.txt") << "# all of it\n\nkeep *\n";
  const Json kept = facts({"--recompute", "1", "--pins", "pins.txt"}, folder);
  CHECK(kept.at("recompute").get<std::int64_t>("repeats") == 0);
  CHECK(plan({"--pins", "pins.txt"}, folder).exit_code == 2);
  std::ofstream(folder / "bad.txt") << "keep *\nforget x\n";
  const Finished bad = plan({"--recompute", "1", "--pins", "bad.txt"}, folder);
  CHECK(bad.exit_code == 3);
  CHECK(bad.err.find("bad.txt:2") != std::string::npos);
  for (const char* word : {"recompute", "again"}) {  // the second one is that of older files
    std::ofstream(folder / "none.txt") << word << " nothing_like_this\n";
    CHECK(plan({"--recompute", "1", "--pins", "none.txt"}, folder).exit_code == 2);
  }
}

TEST_CASE("recompute: the front falls in memory and rises in time") {
  const TemporaryFolder folder;
  const Json front = facts({"--front"}, folder).at("front");
  const std::vector<Json>& rows = front.as_array();
  REQUIRE(rows.size() > 5);
  for (const char* seq : {"8", "16", "24", "32"}) {  // sums of other times each
    const Json first = facts({"--front", "--seq", seq}, folder, kBuilt).at("front");
    CHECK(first.at(std::size_t{0}).get<double>("overhead") == 0.0);
  }
  CHECK(rows.front().get<double>("overhead") == 0.0);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    CHECK(rows[i].get<std::int64_t>("arena_bytes") < rows[i - 1].get<std::int64_t>("arena_bytes"));
    CHECK(rows[i].get<double>("seconds") >= rows[i - 1].get<double>("seconds"));
  }
}

TEST_CASE("recompute: tables keep to pins") {
  const TemporaryFolder folder;
  std::ofstream(folder / "keep.txt") << "keep *\n";
  const Json kept = facts({"--pins", "keep.txt", "--max-overhead", "10%", "--front", "--sweep", "3",
                           "--compare", "--opportunities"},
                          folder);
  REQUIRE(kept.at("front").as_array().size() == 1);  // nothing may be recomputed
  CHECK(kept.at("front").at(std::size_t{0}).get<std::int64_t>("repeats") == 0);
  CHECK(kept.at("sweep").get<std::int64_t>("front_points") == 1);
  for (const Json& row : kept.at("compare").as_array()) {
    CHECK(row.get<std::int64_t>("repeats") == 0);
  }
  CHECK(kept.at("opportunities").as_array().empty());

  std::ofstream(folder / "recompute.txt") << "recompute *Attention*\n";
  const Json forced = facts({"--pins", "recompute.txt", "--front", "--compare"}, folder);
  // The word of older files.
  std::ofstream(folder / "again.txt") << "again *Attention*\n";
  CHECK(facts({"--pins", "again.txt", "--front"}, folder).at("front") == forced.at("front"));
  for (const char* table : {"front", "compare"}) {
    CAPTURE(table);
    REQUIRE(!forced.at(table).as_array().empty());
    for (const Json& row : forced.at(table).as_array()) {
      CHECK(row.get<std::int64_t>("repeats") > 0);
    }
  }
}

TEST_CASE("recompute: the front of a run stays in its folder") {
  const TemporaryFolder folder;
  const Finished trained = run({"train", kGpt, "--data", "synthetic", "--steps", "1", "--threads",
                                "1", "-q", "--run-dir", "r", "--memory-budget", "700KB"},
                               {}, folder.path());
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const Finished asked = run({"plan", "r", "--front", "--json"}, {}, folder.path());
  INFO(asked.err);
  REQUIRE(asked.exit_code == 0);
  CHECK(asked.json().at("recompute").get<std::int64_t>("repeats") > 0);
  const Json kept = read_json_file(folder / "r/front.json");
  CHECK(kept.at("front").as_array().size() == asked.json().at("front").as_array().size());
}

TEST_CASE("recompute: beside each method the planner is not slower in its memory") {
  const TemporaryFolder folder;
  const Json table = facts({"--compare"}, folder).at("compare");
  const std::vector<Json>& rows = table.as_array();
  REQUIRE(rows.size() >= 7);
  CHECK(rows.front().get<std::string>("method") == "none");
  for (std::size_t i = 1; i + 1 < rows.size(); i += 2) {
    CAPTURE(rows[i].get<std::string>("method"));
    CHECK(rows[i + 1].get<std::string>("method") == "planner");
    CHECK(rows[i + 1].get<std::int64_t>("arena_bytes") <= rows[i].get<std::int64_t>("arena_bytes"));
    CHECK(rows[i + 1].get<double>("seconds") <= rows[i].get<double>("seconds") * (1 + 1e-9));
  }
}

TEST_CASE("recompute: a sweep plans every budget, no slower with more memory") {
  const TemporaryFolder folder;
  const Json sweep = facts({"--sweep", "12"}, folder).at("sweep");
  const std::vector<Json>& rows = sweep.at("plans").as_array();
  REQUIRE(rows.size() == 12);
  CHECK(sweep.get<std::int64_t>("front_points") > 3);
  double before = 1e9;
  for (const Json& row : rows) {
    CHECK(row.get<std::int64_t>("arena_bytes") <= row.get<std::int64_t>("budget_bytes"));
    CHECK(row.get<double>("seconds") <= before);
    before = row.get<double>("seconds");
  }
  CHECK(rows.back().get<double>("overhead") == 0.0);
}

TEST_CASE("recompute: offload needs a limit, a rate is a number of bytes") {
  const TemporaryFolder folder;
  const Json plain = facts({"--batch", "8", "--seq", "64"}, folder, kBuilt);
  const Json quick = facts(
      {"--batch", "8", "--seq", "64", "--max-overhead", "5%", "--offload", "--link-rate", "40GB"},
      folder, kBuilt);
  CHECK(peak(quick) < peak(plain));
  CHECK(quick.get<std::int64_t>("host_arena_bytes") > 0);
  const Json tables =
      facts({"--batch", "8", "--seq", "64", "--max-overhead", "20%", "--offload", "--front"},
            folder, kBuilt);
  CHECK(std::ranges::any_of(tables.at("front").as_array(), [](const Json& row) {
    return row.get<std::int64_t>("host_bytes") > 0;
  }));
  CHECK(plain.get<std::int64_t>("host_arena_bytes") == 0);
  CHECK(plan({"--offload"}, folder).exit_code == 2);
  CHECK(plan({"--offload", "--max-overhead", "1%", "--link-rate", "fast"}, folder).exit_code == 2);
  CHECK(plan({"--offload", "--max-overhead", "1%", "--link-rate", "0.5"}, folder).exit_code == 2);
}

TEST_CASE("bench: w5 computes every position, and those that count alone when asked to") {
  const TemporaryFolder folder;
  const auto compact_matmuls = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"bench",     "w5",    "--steps",    "1",      "--batch",
                                      "2",         "--seq", "32",         "--seed", "1",
                                      "--threads", "1",     "--op-times", "t.csv",  "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(words, {}, folder.path());
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    const Json facts = Json::parse(finished.out);
    return std::ranges::count_if(facts.at("ops").as_array(), [](const Json& op) {
      return op.get<std::string>("op") == "CompactMatMul";
    });
  };
  CHECK(compact_matmuls({}) == 0);
  CHECK(compact_matmuls({"--skip-ignored"}) == 3);  // the last layer and its two gradients
}

TEST_CASE("recompute: measured times of a workload are costs for its plans") {
  const TemporaryFolder folder;
  const std::vector<std::string> bench = {"bench",     "w2-lenet", "--steps", "1",
                                          "--threads", "1",        "--json"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = bench;
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(words, {}, folder.path());
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    return Json::parse(finished.out);
  };
  const Json plain = with({"--op-times", "times.csv"});
  for (const Json& op : plain.at("ops").as_array()) {
    CHECK(op.get<std::int64_t>("bytes") > 0);
    CHECK(op.get<std::int64_t>("kernel_bytes") > 0);
    CHECK(op.get<std::string>("kernel") != "");
    CHECK(op.get<double>("ms") > 0.0);
  }
  CHECK(plain.at("ops").as_array().size() > 10);
  // The step is its ops and its gaps.
  double sum_ms = plain.get<double>("ops_ms");
  for (const char* gap : {"before_first_op", "between_ops", "after_last_op"}) {
    CHECK(plain.at("gaps_ms").get<double>(gap) >= 0.0);  // rounded to 0.1 us
    sum_ms += plain.at("gaps_ms").get<double>(gap);
  }
  CHECK(sum_ms == doctest::Approx(plain.get<double>("measured_step_ms")).epsilon(5e-3));
  const Json level = with({"--costs", "times.csv", "--recompute", "1"});
  CHECK(level.at("recompute").get<double>("plain_seconds") > 0);
  CHECK(level.get<std::int64_t>("used_bytes") == level.get<std::int64_t>("arena_bytes"));
  CHECK(level.get<double>("loss_last") == plain.get<double>("loss_last"));
  const Finished foreign =
      run({"bench", "w1-sgd", "--steps", "1", "--costs", "times.csv", "--recompute", "1"}, {},
          folder.path());
  CHECK(foreign.exit_code == 3);
  CHECK(foreign.err.find("no time for") != std::string::npos);
}

TEST_CASE("recompute: any model's ops are timed by themselves, as costs for its plans") {
  const TemporaryFolder folder;
  const Json plain = facts({"--op-times", "times.csv"}, folder);
  CHECK(peak(plain) == peak(facts({}, folder)));
  const Json level = facts({"--costs", "times.csv", "--recompute", "1"}, folder);
  CHECK(level.at("recompute").get<double>("plain_seconds") > 0);
  CHECK(level.at("recompute").get<double>("overhead") > 0);
  CHECK(plan({"--op-times", "times.csv", "--target", "h200"}, folder).exit_code == 2);
  CHECK(plan({"--op-times", "times.csv", "--micro-batches"}, folder).exit_code == 2);
}

}  // namespace trainscope::test
