// inspect --fate and diff, of a model and of a run.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

const std::string kBert = test_model("bert/model.onnx").string();

Json facts(std::vector<std::string> words) {
  words.insert(words.end(), {"--json", "--threads", "1"});
  const Finished finished = run(words);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return finished.json();
}

// Two steps of bert, recorded once for the cases of this file.
const std::string& bert_run() {
  static const TemporaryFolder folder;
  static const std::string path = [] {
    const Finished finished = run({"train", kBert, "--data", "synthetic", "--steps", "2",
                                   "--threads", "1", "-q", "--recompute", "2", "--run-dir", "bert"},
                                  {}, folder.path());
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    return (folder / "bert").string();
  }();
  return path;
}

// The first node of the model with that fate.
std::string node_with(const Json& fates, std::string_view kind) {
  for (const Json& fate : fates.array_at("fates")) {
    if (fate.contains("node") && fate.get<std::string>("fate") == kind) {
      return fate.get<std::string>("node");
    }
  }
  return {};
}

}  // namespace

TEST_CASE("inspect: each call of a plan names its kernel, and why no other one computes it") {
  const Json all = facts({"inspect", bert_run(), "--calls"});
  std::size_t others = 0;  // which kernels come after one that is chosen, the processor decides
  for (const Json& call : all.array_at("calls")) {
    CHECK(call.get<std::string>("kernel") != "");
    for (const char* list : {"refused", "behind"}) {
      others += call.at(list).size();
      for (const Json& other : call.array_at(list)) {
        CHECK(other.get<std::string>("kernel") != call.get<std::string>("kernel"));
        CHECK(other.get<std::string>("reason") != "");
      }
    }
  }
  CHECK(others > 0);
  const Json one = facts({"inspect", bert_run(), "--calls", "--at", "0"});
  CHECK(one.at("calls").at(0).dump() == all.at("calls").at(0).dump());
  CHECK(one.at("calls").size() < all.at("calls").size());
  CHECK(run({"inspect", bert_run(), "--calls", "--memory"}).exit_code == 2);
}

TEST_CASE("inspect --fate all: every node and value of a run, none unexplained") {
  const Json all = facts({"inspect", bert_run(), "--fate", "all"});
  CHECK(all.get<int>("unexplained") == 0);
  CHECK(all.array_at("fates").size() > 100);
  CHECK(all.at("nodes").get<int>("inside") > 0);
  CHECK(all.at("values").get<int>("kept") > 0);
  for (const Json& fate : all.array_at("fates")) CHECK(!fate.get<std::string>("reason").empty());
  // The same as what the model would be compiled to.
  const Json of_model = facts({"inspect", kBert, "--fate", "all", "--recompute", "2"});
  CHECK(of_model.at("nodes") == all.at("nodes"));
  CHECK(of_model.at("values") == all.at("values"));
  CHECK(text_has(run({"inspect", bert_run(), "--fate", "all"}).out, "\nnodes   "));
}

TEST_CASE("inspect --fate NAME: stage by stage, with pass and reason") {
  const Json all = facts({"inspect", bert_run(), "--fate", "all"});
  const std::string name = node_with(all, "inside");
  REQUIRE(!name.empty());
  const Json one = facts({"inspect", bert_run(), "--fate", name});
  const Json& fate = one.array_at("fates")[0];
  CHECK(fate.get<std::string>("fate") == "inside");
  CHECK(fate.array_at("now").size() == 1);
  CHECK(!fate.array_at("steps").empty());
  CHECK(!fate.array_at("steps")[0].get<std::string>("reason").empty());
  const std::string text = run({"inspect", bert_run(), "--fate", name}).out;
  CHECK(text_has(text, "node '" + name + "': inside node '"));
  CHECK(text_has(text, fate.get<std::string>("stage")));
}

TEST_CASE("inspect --fate: unknown names, and what it does not go with") {
  const Finished unknown = run({"inspect", bert_run(), "--fate", "nothing_of_this_name"});
  CHECK(unknown.exit_code == 2);
  CHECK(text_has(unknown.err, "the model has no node or value 'nothing_of_this_name'"));
  CHECK(run({"inspect", bert_run(), "--fate", "all", "--memory"}).exit_code == 2);
  CHECK(run({"inspect", bert_run(), "--fate", "all", "--stages"}).exit_code == 2);
}

TEST_CASE("diff: two stages of a run, in either order") {
  const Json diff = facts({"diff", bert_run() + ":imported", bert_run()});
  CHECK(diff.get<int>("unexplained") == 0);
  CHECK(diff.get<std::string>("from") == "00-imported");
  CHECK(diff.get<std::string>("to").ends_with("-recompute"));
  CHECK(diff.at("nodes").get<int>("rematerialized") > 0);
  CHECK(diff.at("nodes").get<int>("added") > 0);
  for (const Json& row : diff.array_at("rows")) CHECK(!row.get<std::string>("reason").empty());
  const Json back = facts({"diff", bert_run(), bert_run() + ":imported"});
  CHECK(back.at("nodes") == diff.at("nodes"));
  const std::string text = run({"diff", bert_run() + ":loss", bert_run() + ":differentiate"}).out;
  CHECK(text_has(text, "from "));
  CHECK(text_has(text, "-differentiate: Append the gradients"));
  CHECK(run({"diff", bert_run() + ":imported", bert_run() + ":imported", "--all"}).out.size() >
        run({"diff", bert_run() + ":imported", bert_run() + ":imported"}).out.size());
}

TEST_CASE("diff and inspect: stages by number") {
  const Json diff = facts({"diff", bert_run() + ":00", bert_run() + ":3"});
  CHECK(diff.get<std::string>("from") == "00-imported");
  CHECK(diff.get<std::string>("to").starts_with("03-"));
  const std::string label = diff.get<std::string>("to");
  const Json named = facts({"inspect", bert_run(), "--stage", label});
  CHECK(facts({"inspect", bert_run(), "--stage", "3"}) == named);
  CHECK(facts({"inspect", bert_run(), "--stage", "03"}) == named);
  CHECK(facts({"inspect", kBert, "--stage", "0"}) ==
        facts({"inspect", kBert, "--stage", "imported"}));
}

TEST_CASE("diff and inspect --fate: an earlier session of a run") {
  const TemporaryFolder folder;
  const auto train = [&folder](const char* steps, const char* recompute) {
    const Finished finished = run(
        {"train", kBert, "--data", "synthetic", "--steps", steps, "--threads", "1", "-q",
         "--recompute", recompute, "--save-every", "1", "--run-dir", "bert", "--resume", "auto"},
        {}, folder.path());
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
  };
  train("1", "2");
  const std::string path = (folder / "bert").string();
  const Json fates = facts({"inspect", path, "--fate", "all"});
  const Json diff = facts({"diff", path + ":0", path});
  train("2", "none");
  CHECK(facts({"inspect", path, "--fate", "all", "--session", "1"}) == fates);
  CHECK(facts({"diff", path + ":0", path, "--session", "1"}) == diff);
  CHECK(facts({"diff", path + ":0", path}) != diff);
  CHECK(run({"inspect", path, "--fate", "all", "--session", "3"}).exit_code == 2);
  CHECK(run({"inspect", kBert, "--fate", "all", "--session", "1"}).exit_code == 2);
}

TEST_CASE("diff: stages of two compilations by names") {
  const std::string mlp = test_model("mlp/model.onnx").string();
  const Json same = facts({"diff", kBert + ":loss", bert_run() + ":loss"});
  CHECK(same.at("nodes").size() == 1);
  CHECK(same.at("nodes").contains("same"));
  const Json other = facts({"diff", mlp + ":imported", kBert + ":imported"});
  CHECK(other.at("nodes").contains("only in A"));
  CHECK(other.at("nodes").contains("only in B"));
}

TEST_CASE("diff: what is not there") {
  const Finished stage = run({"diff", bert_run() + ":lss", bert_run()});
  CHECK(stage.exit_code == 2);
  CHECK(text_has(stage.err, "there is no stage 'lss'"));
  CHECK(text_has(stage.err, "did you mean 'loss'?"));
  const Finished number = run({"diff", bert_run() + ":99", bert_run()});
  CHECK(number.exit_code == 2);
  CHECK(text_has(number.err, "the stages are 00-imported to "));
  CHECK(run({"diff", bert_run(), bert_run() + ":0", "--session", "2"}).exit_code == 2);
  CHECK(run({"diff", kBert, kBert + ":0", "--session", "1"}).exit_code == 2);
  CHECK(run({"diff", "nothing:loss", "nothing"}).exit_code == 6);
  CHECK(run({"diff", bert_run()}).exit_code == 2);
}

}  // namespace trainscope::test
