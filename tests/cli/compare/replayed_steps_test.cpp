// Limits of steps after the first: by running them again from the other run's parameters and
// states, or by their number.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/numerics_tools.h"

namespace trainscope::test {
namespace {

const std::vector<std::string> kAllOfTenSteps = {"--record-steps", "1,2,3,4,5,6,7,8,9,10",
                                                 "--record-full", "*"};

std::vector<std::string> joined(std::vector<std::string> words,
                                const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Json compared(const std::string& a, const std::string& b, int exit_code,
              const std::vector<std::string>& flags = {}) {
  const Finished both = run(joined({"compare", a, b, "--only", "tensors", "--json"}, flags));
  CAPTURE(both.out.substr(0, 2000));
  CAPTURE(both.err);
  REQUIRE(both.exit_code == exit_code);
  return both.json();
}

std::map<std::pair<std::int64_t, std::string>, double> limits_of(const Json& facts) {
  std::map<std::pair<std::int64_t, std::string>, double> limits;
  for (const Json& tensor : facts.at("tensors").as_array()) {
    if (tensor.at("limit").is_null()) continue;  // the program's own
    limits.emplace(std::pair(tensor.at("step").as_int(), tensor.at("value").as_string()),
                   tensor.at("limit").as_number());
  }
  return limits;
}

TEST_CASE("compare: the drift of ten correct steps is within limits of one step") {
  const TemporaryFolder folder;
  const std::string a =
      record(10, "resnet18", folder / "a", joined({"--threads", "2"}, kAllOfTenSteps));
  const std::string b =
      record(10, "resnet18", folder / "b",
             joined({"--threads", "1", "--kernels", "reference"}, kAllOfTenSteps));
  const Json facts = compared(a, b, 0);
  CHECK(facts.at("faults").as_int() == 0);
  const auto& limits = facts.at("limits").as_array();
  REQUIRE(limits.size() == 10);
  for (const Json& of : limits) {
    CHECK(of.at("times").as_int() == 1);
    if (of.at("step").as_int() == 1) {
      CHECK(of.at("replayed").is_null());
      continue;
    }
    CHECK(of.at("why_not").is_null());
    CHECK(of.at("replayed").as_string() == "A");
    CHECK(of.at("from").as_string() == "B");
  }
  int differ = 0;
  for (const Json& tensor : facts.at("tensors").as_array()) {
    differ += tensor.at("error").as_number() > 0.0 ? 1 : 0;
  }
  CHECK(differ > 1000);
  // Drift is what is left out: by the number of steps limits of the tenth are wider.
  const auto one = limits_of(facts);
  const auto many = limits_of(compared(a, b, 0, {"--no-replay"}));
  REQUIRE(one.size() == many.size());
  int wider = 0;
  int later = 0;
  for (const auto& [place, limit] : one) {
    if (place.first != 10 || limit == 0.0) continue;
    ++later;
    wider += many.at(place) > 2.0 * limit ? 1 : 0;
  }
  CHECK(later > 20);
  CHECK(wider > later * 9 / 10);
}

// A goes on from step 4 at a rate that is 3 in 1000 larger: less than what ten steps may drift.
TEST_CASE("compare: a small fault that begins at step 5 is named there") {
  const TemporaryFolder folder;
  const std::vector<std::string> saves =
      joined({"--save-every", "4", "--keep", "9"}, kAllOfTenSteps);
  const std::string a = record(10, "gpt2", folder / "a", saves);
  const std::string checkpoint = (folder / "a" / "checkpoints" / "step-00000004").string();
  const std::string b =
      record(10, "gpt2", folder / "b",
             joined({"--lr", "0.001003", "--resume", checkpoint}, kAllOfTenSteps));
  const Json facts = compared(a, b, 9);
  const Json first = facts.at("first");
  CHECK(first.at("step").as_int() == 5);
  CHECK(first.at("phase").as_string() == "update");
  CHECK(text_has(first.at("value").as_string(), "param:"));
  for (const Json& tensor : facts.at("tensors").as_array()) {
    if (tensor.at("phase").as_string() == "update" || tensor.at("limit").is_null()) continue;
    CAPTURE(tensor.dump());  // of one step, and so not of the updates before
    CHECK(tensor.at("error").as_number() <= tensor.at("limit").as_number());
  }
  const Json by_count = compared(a, b, 9, {"--no-replay"});
  CHECK(by_count.at("first").at("step").as_int() > 5);
  // From the other side as well.
  CHECK(compared(b, a, 9).at("first").at("step").as_int() == 5);
}

TEST_CASE("compare: without the other's elements limits grow with the steps, and it says so") {
  const TemporaryFolder folder;
  const std::vector<std::string> three = {"--record-steps", "1,2,3"};
  const std::string a = record(3, "lenet", folder / "a", three);
  const std::string b = record(3, "lenet", folder / "b", three);
  const Json facts = compared(a, b, 0);
  const auto& limits = facts.at("limits").as_array();
  REQUIRE(limits.size() == 3);
  CHECK(limits[0].at("times").as_int() == 1);
  CHECK(limits[2].at("times").as_int() == 6);
  CHECK(limits[2].at("replayed").is_null());
  CHECK(text_has(limits[2].at("why_not").as_string(), "B lacks elements of param:"));
  const Finished text = run({"compare", a, b, "--only", "tensors"});
  CHECK(text_has(text.out, "limits of step 1: of one step\n"));
  CHECK(text_has(text.out, "limits of steps 2, 3: that of one step times 1 + 2 + ... + step: "));
  CHECK(text_has(text.out, "--record-steps 1,2,3 --record-full '*'"));
  // One side that has them is enough: the other one goes on from there.
  const std::string whole =
      record(3, "lenet", folder / "whole", joined({"--record-full", "*"}, three));
  const Json from_whole = compared(whole, b, 0);
  for (const Json& of : from_whole.at("limits").as_array()) {
    if (of.at("step").as_int() > 1) CHECK(of.at("replayed").as_string() == "B");
  }
}

TEST_CASE("compare: a run that would not have its bits again is not run again") {
  const TemporaryFolder folder;
  const std::vector<std::string> full = {"--record-steps", "1,2", "--record-full", "*"};
  const std::string a = record(2, "mlp", folder / "a", full);
  const std::string b = record(2, "mlp", folder / "b", full) + "/numerics";
  CHECK(compared(a, b, 0).at("limits").at(1).at("replayed").as_string() == "A");
  // As if another program had trained it.
  const std::filesystem::path manifest = folder / "a" / "manifest.json";
  std::string text = read_text(manifest);
  const std::string key = "\"program_version\": \"";
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    text.insert(at + key.size(), "9");
  }
  std::ofstream(manifest, std::ios::trunc) << text;
  const Json limits = compared(a, b, 0).at("limits").at(1);
  CHECK(limits.at("replayed").is_null());
  CHECK(text_has(limits.at("why_not").as_string(), "A cannot run again"));
  CHECK(text_has(limits.at("why_not").as_string(), "the program was 9"));
}

TEST_CASE("compare: a run whose model is gone is compared by the number of steps") {
  const TemporaryFolder folder;
  const std::filesystem::path model = folder / "model.onnx";
  std::filesystem::copy_file(test_model("mlp/model.onnx"), model);
  const auto trained = [&](const std::string& name) {
    const std::string to = (folder / name).string();
    const Finished finished =
        run({"train", model.string(), "--data", "synthetic", "--steps", "2", "--quiet",
             "--record-numerics", "--record-steps", "1,2", "--record-full", "*", "--run-dir", to});
    CAPTURE(finished.err);
    REQUIRE(finished.exit_code == 0);
    return to;
  };
  const std::string a = trained("a");
  const std::string b = trained("b");
  CHECK(compared(a, b, 0).at("limits").at(1).at("replayed").as_string() == "A");
  REQUIRE(std::filesystem::remove(model));
  const Json limits = compared(a, b, 0).at("limits").at(1);
  CHECK(limits.at("replayed").is_null());
  CHECK(limits.at("times").as_int() == 3);
  CHECK(text_has(limits.at("why_not").as_string(), "A cannot run again"));
  CHECK(text_has(limits.at("why_not").as_string(), "model.onnx"));
}

// Appends to a run's trace a copy of the first activation of step 2, by a name that no model has.
void add_strange_row(const std::filesystem::path& folder) {
  const std::filesystem::path values = folder / "numerics" / "values.tsv";
  const std::filesystem::path sketches = folder / "numerics" / "sketch.bin";
  std::istringstream lines(read_text(values));
  std::string line;
  std::size_t row = 0;
  std::getline(lines, line);  // names of columns
  while (std::getline(lines, line)) {
    if (line.starts_with("2\t") && text_has(line, "\tact\t")) break;
    ++row;
  }
  const std::size_t name = line.find("\tact\t") + 5;
  line.replace(name, line.find('\t', name) - name, "strange");
  std::ofstream(values, std::ios::app) << line << "\n";
  const std::string sketch = read_text(sketches).substr(32 + 1024 * row, 1024);
  std::ofstream(sketches, std::ios::app | std::ios::binary) << sketch;
}

TEST_CASE("compare: tensors that a step run again does not have are counted") {
  const TemporaryFolder folder;
  const std::vector<std::string> full = {"--record-steps", "1,2", "--record-full", "*"};
  const std::string a = record(2, "mlp", folder / "a", full);
  const std::string b = record(2, "mlp", folder / "b", full);
  CHECK(compared(a, b, 0).at("limits").at(1).at("not_replayed").as_int() == 0);
  for (const std::string side : {"a", "b"}) add_strange_row(folder / side);
  const Json limits = compared(a, b, 0).at("limits").at(1);
  CHECK(limits.at("replayed").as_string() == "A");
  CHECK(limits.at("not_replayed").as_int() == 1);
  CHECK(text_has(run({"compare", a, b, "--only", "tensors"}).out,
                 "those that it did not make again (1) have that times 1 + 2 + ... + step"));
}

TEST_CASE("compare: traces of engines that are no runs") {
  const std::string traces = std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/numerics/";
  const Json facts = compared(traces + "mlp-trainscope", traces + "mlp-pytorch", 0);
  CHECK(text_has(facts.at("limits").at(1).at("why_not").as_string(), "neither is a run"));
  CHECK(facts.at("limits").at(1).at("times").as_int() == 3);
}

}  // namespace
}  // namespace trainscope::test
