// `plan --target`: rows, details, refusals.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "engine/core/json.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

const std::string kGpt = test_model("gpt2/model.onnx").string();

Finished plan(std::vector<std::string> more) {
  std::vector<std::string> words = {"plan", kGpt, "--threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return run(words);
}

Json facts(std::vector<std::string> more) {
  more.emplace_back("--json");
  const Finished finished = plan(std::move(more));
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return finished.json();
}

void check_refused(const std::vector<std::string>& more, std::string_view part) {
  const Finished finished = plan(more);
  CAPTURE(more);
  INFO(finished.err);
  CHECK(finished.exit_code == 2);
  CHECK(finished.err.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("plan --target: one device is the plan of this machine") {
  const auto local = facts({}).get<std::int64_t>("arena_bytes");
  const Json world = facts({"--target", "h200"});
  const Json& row = world.at("worlds").at(0);
  CHECK(row.get<std::int64_t>("peak_bytes") == local);
  CHECK(row.get<bool>("fits"));
  CHECK(row.get<double>("step_seconds") > 0.0);
  CHECK(row.get<double>("sent_bytes") == 0.0);
  CHECK_FALSE(world.get<bool>("measured"));
  CHECK(world.get<std::int64_t>("budget_bytes") == std::int64_t{138} << 30);
}

TEST_CASE("plan --target: a row for each world") {
  const Json world = facts({"--target", "a100-40", "--world", "1,2,4, 8", "--zero", "3"});
  const JsonArray& rows = world.at("worlds").as_array();
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].get<int>("zero") == 0);  // nobody to share with
  for (std::size_t i = 1; i < rows.size(); ++i) {
    CHECK(rows[i].get<int>("zero") == 3);
    CHECK(rows[i].get<std::int64_t>("data_parallel") == std::int64_t{1} << i);
    CHECK(rows[i].get<std::int64_t>("state_bytes") < rows[i - 1].get<std::int64_t>("state_bytes"));
    CHECK(rows[i].get<double>("samples_per_second") > 0.0);
  }
  const Finished text = plan({"--target", "a100-40", "--world", "2", "--zero", "1"});
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("not measured") != std::string::npos);
}

TEST_CASE("plan --target: what does not fit is recomputed, or refused with exit code 5") {
  const auto plain =
      facts({"--target", "v100-16"}).at("worlds").at(0).get<std::int64_t>("peak_bytes");
  const std::string budget = std::to_string(plain * 85 / 100);
  const Json row = facts({"--target", "v100-16", "--memory-budget", budget}).at("worlds").at(0);
  CHECK(row.get<std::int64_t>("peak_bytes") <= plain * 85 / 100);
  CHECK(row.get<std::int64_t>("plain_bytes") == plain);
  CHECK(row.get<std::int64_t>("repeats") > 0);
  const Finished refused = plan({"--target", "v100-16", "--memory-budget", "10KB"});
  CHECK(refused.exit_code == 5);
  CHECK(refused.err.find("least budget") != std::string::npos);
}

TEST_CASE("plan --target: --recompute says whether what does not fit is recomputed") {
  const auto peak =
      facts({"--target", "v100-16"}).at("worlds").at(0).get<std::int64_t>("peak_bytes");
  const std::string budget = std::to_string(peak * 85 / 100);
  const auto row = [&](const char* recompute) {
    return facts({"--target", "v100-16", "--memory-budget", budget, "--recompute", recompute})
        .at("worlds")
        .at(0);
  };
  CHECK(row("auto").get<bool>("fits"));
  CHECK(row("auto").get<std::int64_t>("repeats") > 0);
  const Finished none =
      plan({"--target", "v100-16", "--memory-budget", budget, "--recompute", "none"});
  CHECK(none.exit_code == 5);
  CHECK(none.err.find(fmt::format("a device needs {} bytes, {} are there", peak, budget)) !=
        std::string::npos);
  CHECK(facts({"--target", "v100-16", "--recompute", "auto"}).at("worlds").at(0).get<bool>("fits"));
}

TEST_CASE("plan --target: a refusal of several worlds names each") {
  const Finished refused =
      plan({"--target", "v100-16", "--memory-budget", "10KB", "--world", "1,2", "--zero", "1"});
  CHECK(refused.exit_code == 5);
  for (const char* world : {"--world 1: no plan", "--world 2: no plan", "--world 2: the least"}) {
    CHECK(refused.err.find(world) != std::string::npos);
  }
}

TEST_CASE("plan --target: the largest batches fit, and those that are one larger do not") {
  const auto asked = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"plan", "mlp:dims=64+256+256+256+10", "--target", "v100-16",
                               "--threads", "1", "--memory-budget", "9MB", "--json"});
    return run(more);
  };
  const std::vector<std::vector<std::string>> layouts = {
      {"--world", "4", "--zero", "3"}, {"--world", "2", "--pipeline", "2", "--accumulate", "4"}};
  bool recomputed = false;
  for (const std::vector<std::string>& layout : layouts) {
    CAPTURE(layout);
    const auto batch = [&](std::int64_t number, const std::string& recompute) {
      std::vector<std::string> words = {"--batch", std::to_string(number), "--recompute",
                                        recompute};
      words.insert(words.end(), layout.begin(), layout.end());
      return asked(words);
    };
    std::vector<std::string> words = {"--largest-batch"};
    words.insert(words.end(), layout.begin(), layout.end());
    const Finished found = asked(words);
    INFO(found.err);
    REQUIRE(found.exit_code == 0);
    const Json row = found.json().at("worlds").at(0);
    const auto most = row.get<std::int64_t>("largest_batch");
    const auto plain = row.get<std::int64_t>("largest_batch_plain");
    const auto eager = row.get<std::int64_t>("largest_batch_eager");
    CHECK(plain > 0);
    CHECK(most >= plain);
    recomputed = recomputed || most > plain;
    const auto first = [](const Finished& plan) { return plan.json().at("worlds").at(0); };
    CHECK(first(batch(most, "auto")).get<bool>("fits"));
    CHECK(first(batch(plain, "none")).get<bool>("fits"));
    CHECK(batch(plain + 1, "none").exit_code == 5);
    CHECK(first(batch(eager, "none")).get<std::int64_t>("eager_bytes") <= 9'000'000);
    CHECK(first(batch(eager + 1, "none")).get<std::int64_t>("eager_bytes") > 9'000'000);
    words = {"--batch", std::to_string(most + 1)};
    words.insert(words.end(), layout.begin(), layout.end());
    CHECK(asked(words).exit_code == 5);
  }
  CHECK(recomputed);
}

TEST_CASE("plan --target: a quick link to host memory takes the place of recomputation") {
  const std::vector<std::string> tight = {"--target", "v100-16", "--memory-budget", "690KB"};
  const auto row = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = tight;
    words.insert(words.end(), more.begin(), more.end());
    return facts(words).at("worlds").at(0);
  };
  const Json alone = row({});
  const Json slow = row({"--offload", "--link-rate", "1KB"});
  const Json quick = row({"--offload", "--link-rate", "100TB"});
  CHECK(alone.get<std::int64_t>("host_bytes") == 0);
  CHECK(slow.get<std::int64_t>("host_bytes") == 0);
  CHECK(slow.get<double>("step_seconds") == alone.get<double>("step_seconds"));
  CHECK(quick.get<std::int64_t>("peak_bytes") <= 690'000);
  CHECK(quick.get<double>("step_seconds") <= alone.get<double>("step_seconds"));
}

TEST_CASE("plan: a builder's model without a file has the plan of its file") {
  const TemporaryFolder folder;
  const std::string file = (folder / "gpt.onnx").string();
  REQUIRE(run({"model", "gpt2", "--layers", "1", "--heads", "2", "--embedding", "16", "--vocab",
               "40", "--no-bias", "-o", file})
              .exit_code == 0);
  const std::vector<std::string> rest = {"--batch", "2", "--seq", "8", "--threads", "1", "--json"};
  const auto bytes = [&rest](const std::string& model) {
    std::vector<std::string> words = {"plan", model};
    words.insert(words.end(), rest.begin(), rest.end());
    const Finished finished = run(words);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    return finished.json().get<std::int64_t>("arena_bytes");
  };
  CHECK(bytes("gpt2:layers=1,heads=2,embedding=16,vocab=40,bias=off") == bytes(file));
  for (const char* wrong : {"gpt2:99M", "gpt2:124M,layers", "gpt2:124M,depth=2", "gpt2:layers=x",
                            "gpt2:layers=1,layers=2", "mlp:dims=3,4", "gpt2:heads=5"}) {
    CAPTURE(wrong);
    CHECK(run({"plan", wrong}).exit_code == 2);
  }
  CHECK(run({"plan", "nothing:1"}).exit_code == 6);
}

TEST_CASE("plan --target: a published size needs no file of gigabytes") {
  const auto planned = [](const char* device) {
    return run({"plan", "gpt2:1558M", "--batch", "1", "--seq", "1024", "--target", device,
                "--recompute", "none", "--threads", "1", "--json"});
  };
  const Finished finished = planned("h200");
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  const Json row = finished.json().at("worlds").at(0);
  CHECK(row.get<bool>("fits"));
  CHECK(planned("v100-16").exit_code == 5);
  CHECK(row.get<std::int64_t>("parameter_bytes") == std::int64_t{4} * 1557611200);
}

TEST_CASE("plan --target: the wrong question is one error") {
  check_refused({"--target", "h100"}, "h200, a100-80, a100-40, v100-32, v100-16");
  check_refused({"--target", "h200", "--world", "0"}, "--world is '0'");
  check_refused({"--target", "h200", "--world", "2,x"}, "--world is '2,x'");
  check_refused({"--target", "h200", "--zero", "1"}, "--zero 1");
  check_refused({"--target", "h200", "--zero", "4"}, "--zero");
  check_refused({"--target", "h200", "--world", "6", "--tensor-parallel", "4"}, "multiple");
  check_refused({"--target", "h200", "--world", "3", "--tensor-parallel", "3"}, "heads");
  check_refused({"--target", "h200", "--world", "4", "--tensor-parallel", "4", "--zero", "2"},
                "--zero 2");
  check_refused({"--target", "h200", "--world", "1000", "--pipeline", "1000"},
                "stages can be made");
  check_refused({"--target", "v100-16", "--tf32"}, "v100-16 has no TF32");
  check_refused({"--target", "v100-16", "--precision", "bf16"}, "v100-16 has no bf16");
  check_refused({"--target", "h200", "--precision", "bf16", "--tf32"}, "--precision is bf16");
  check_refused({"--tf32"}, "--tf32 needs --target");
  check_refused({"--target", "h200", "--precision", "tf32"}, "with --target it is --tf32");
  check_refused({"--precision", "tf32"}, "cpu has no matmuls in TF32");
  check_refused({"--world", "8"}, "--world needs --target");
  for (const char* flag : {"--front", "--compare", "--opportunities", "--micro-batches"}) {
    check_refused({"--target", "h200", flag}, std::string(flag) + " is for this machine");
  }
  check_refused({"--target", "h200", "--sweep", "3"}, "--sweep is for this machine");
  check_refused({"--target", "h200", "--link-rate", "1GB"}, "--link-rate needs --offload");
  check_refused({"--target", "h200", "--offload", "--recompute", "none"}, "--offload is a part of");
  check_refused({"--target", "h200", "--recompute", "1"}, "--recompute 1");
}

TEST_CASE("plan --target --plans: a folder for each device, as a run has its plan") {
  const TemporaryFolder folder;
  const std::string plans = (folder / "plans").string();
  const Json world = facts({"--target", "a100-40", "--world", "1,2", "--plans", plans});
  for (const std::string name : {"world-1", "world-2"}) {
    const std::filesystem::path stage = folder / "plans" / name / "stage-0";
    const Json plan = Json::parse(read_text(stage / "plan.json"));
    const Json& row = world.at("worlds").at(name == "world-1" ? 0 : 1);
    CHECK(plan.get<std::int64_t>("arena_bytes") == row.get<std::int64_t>("peak_bytes"));
    CHECK(plan.at("recompute").get<std::int64_t>("budget_bytes") ==
          world.get<std::int64_t>("budget_bytes"));
    CHECK(std::filesystem::exists(stage / "stages/01-recompute.onnx"));
  }
  check_refused({"--plans", plans}, "--plans needs --target");
}

}  // namespace trainscope::test
