// The largest batch within a budget, and micro-batches of every size.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/cli/recompute_tools.h"

namespace trainscope::test {

TEST_CASE("recompute: the largest batch within a budget") {
  const TemporaryFolder folder;
  REQUIRE(run({"model", "mlp", "--dims", "16,64,4", "-o", "m.onnx"}, {}, folder.path()).exit_code ==
          0);
  const auto asked = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"plan", "m.onnx", "--threads", "1", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, {}, folder.path());
  };
  const Finished found = asked({"--memory-budget", "200KB", "--largest-batch"});
  INFO(found.err);
  REQUIRE(found.exit_code == 0);
  const auto plain = found.json().get<std::int64_t>("largest_batch_plain");
  CHECK(found.json().get<std::int64_t>("largest_batch") >= plain);
  REQUIRE(plain > 1);
  const auto arena = [&](std::int64_t batch) {
    return peak(asked({"--batch", std::to_string(batch)}).json());
  };
  CHECK(arena(plain) <= 200000);
  CHECK(arena(plain + 1) > 200000);
  const auto most = found.json().get<std::int64_t>("largest_batch");
  const auto fits = [&](std::int64_t batch) {
    return asked({"--memory-budget", "200KB", "--batch", std::to_string(batch)}).exit_code == 0;
  };
  CHECK(fits(most));
  CHECK_FALSE(fits(most + 1));
  CHECK(asked({"--largest-batch"}).exit_code == 2);
}

TEST_CASE("recompute: micro-batches of every size, the quickest that fits is named") {
  const TemporaryFolder folder;
  const Json all = facts({"--micro-batches", "--batch", "2", "--accumulate", "3", "--seq", "64"},
                         folder, kBuilt);
  CHECK(all.get<std::int64_t>("examples") == 6);
  const std::vector<Json>& splits = all.at("splits").as_array();
  REQUIRE(splits.size() == 4);  // 6, 3, 2, 1
  CHECK(splits[0].get<std::int64_t>("batch") == 6);
  CHECK(splits[3].get<std::int64_t>("accumulate") == 6);
  CHECK(splits[3].get<std::int64_t>("arena_bytes") < splits[0].get<std::int64_t>("arena_bytes"));
  const auto one = splits[3].get<std::int64_t>("arena_bytes");
  CHECK(peak(facts({"--batch", "1", "--accumulate", "6", "--seq", "64"}, folder, kBuilt)) == one);
  const Json tight = facts(
      {"--micro-batches", "--batch", "6", "--seq", "64", "--memory-budget", std::to_string(one)},
      folder, kBuilt);
  CHECK(tight.at("quickest").get<std::int64_t>("arena_bytes") <= one);
  const Finished none = plan(
      {"--micro-batches", "--batch", "2", "--seq", "64", "--memory-budget", "1KB"}, folder, kBuilt);
  CHECK(none.exit_code == 5);
  CHECK(none.err.find("no split of 2 examples has a plan within") != std::string::npos);
  CHECK(plan({"--micro-batches", "--costs", "times.csv"}, folder).exit_code == 2);
}

TEST_CASE("recompute: transfers of micro-batches take what the link says") {
  const TemporaryFolder folder;
  for (const char* rate : {"30GB", "100GB"}) {
    CAPTURE(rate);
    std::vector<std::string> words = {"--batch", "8",         "--seq",       "64", "--max-overhead",
                                      "30%",     "--offload", "--link-rate", rate};
    const Json alone = facts(words, folder, kBuilt).at("recompute");
    words.emplace_back("--micro-batches");
    const Json whole = facts(words, folder, kBuilt).at("splits").at(std::size_t{0});
    CHECK(alone.get<std::int64_t>("offloaded_bytes") > 0);
    CHECK(whole.get<std::int64_t>("batch") == 8);
    CHECK(whole.get<double>("seconds") == doctest::Approx(alone.get<double>("seconds")));
  }
}

TEST_CASE("recompute: the smallest micro-batch is not always the smallest arena") {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"--micro-batches", "--batch", "2"};  // one gradient less
  const auto within = [&](std::int64_t budget) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--memory-budget", std::to_string(budget)});
    return plan(all, folder, "mlp");
  };
  const Json both = facts(words, folder, "mlp");
  const std::vector<Json>& splits = both.at("splits").as_array();
  REQUIRE(splits.size() == 2);  // 2 x 1, 1 x 2
  const auto whole = splits[0].get<std::int64_t>("arena_bytes");
  const auto halves = splits[1].get<std::int64_t>("arena_bytes");
  REQUIRE(whole < halves);
  const Finished found = within((whole + halves) / 2);
  INFO(found.err);
  REQUIRE(found.exit_code == 0);
  CHECK(found.json().at("splits").as_array().size() == 1);
  CHECK(found.json().at("quickest").get<std::int64_t>("batch") == 2);
  const Finished none = within(whole / 2);
  CHECK(none.exit_code == 5);
  CHECK(none.err.find(fmt::format("--memory-budget {} or more", whole)) != std::string::npos);
  CHECK(none.err.find("--batch 2 --accumulate 1") != std::string::npos);
}

}  // namespace trainscope::test
