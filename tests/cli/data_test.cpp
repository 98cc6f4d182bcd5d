// The verb data, and training on what it makes.
#include <doctest/doctest.h>

#include <fstream>

#include "tests/cli/program_runner.h"
#include "tests/support/http_server.h"
#include "tests/support/shared.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

Json facts(std::vector<std::string> words, const fs::path& folder,
           const std::map<std::string, std::string>& environment = {}) {
  words.insert(words.end(), {"--json", "--threads", "1"});
  const Finished finished = run(words, environment, folder);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return finished.json();
}

// The source that `data make` says its files are.
std::string made(const std::string& kind, const TemporaryFolder& folder,
                 const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"data", "make", kind, "--dir", kind};
  words.insert(words.end(), more.begin(), more.end());
  return facts(words, folder.path()).get<std::string>("source");
}

// First and last training loss.
std::pair<double, double> losses(const fs::path& run_folder) {
  std::ifstream lines(run_folder / "metrics.jsonl");
  std::string line;
  std::vector<double> all;
  while (std::getline(lines, line)) {
    const Json json = Json::parse(line);
    if (json.get<std::string>("kind") == "step") all.push_back(json.get<double>("loss"));
  }
  REQUIRE(!all.empty());
  return {all.front(), all.back()};
}

// A linear classifier of `features` numbers.
void write_linear(const fs::path& path, const std::string& shape, int features, int classes) {
  std::string zeros = "0";
  for (int i = 1; i < features * classes; ++i) zeros += ",0";
  write_model("<ir_version: 8, opset_import: [\"\" : 17]> g (float[B," + shape +
                  "] x) => (float[B," + std::to_string(classes) + "] logits) <float[" +
                  std::to_string(features) + "," + std::to_string(classes) + "] w = {" + zeros +
                  "}> { f = Flatten(x) logits = MatMul(f, w) }",
              path);
}

TEST_CASE("data list: licences, sizes, hashes, and what is there") {
  const TemporaryFolder folder;
  const Json json = facts({"data", "list"}, {}, {{"TRAINSCOPE_DATA_DIR", folder.path().string()}});
  CHECK(json.get<std::string>("folder") == folder.path().string());
  const Json& mnist = json.array_at("sets")[1];
  CHECK(mnist.get<std::string>("name") == "mnist");
  CHECK(mnist.get<std::int64_t>("size_bytes") == 9912422 + 28881 + 1648877 + 4542);
  CHECK(!mnist.get<std::string>("licence").empty());
  CHECK(mnist.array_at("files")[0].get<std::string>("sha256").size() == 64);
  CHECK(mnist.array_at("files")[0].get<std::string>("state") == "absent");
  const Finished text = run({"data", "list", "--dir", "x"}, {}, folder.path());
  CHECK(text.out.find("tinyshakespeare: ") != std::string::npos);
  CHECK(text.out.find("licence: public domain") != std::string::npos);
}

TEST_CASE("data: the folder by flag, variable, XDG cache and home") {
  const auto where = [](std::vector<std::string> more,
                        const std::map<std::string, std::string>& environment) {
    std::vector<std::string> words = {"data", "list"};
    words.insert(words.end(), more.begin(), more.end());
    return facts(words, {}, environment).get<std::string>("folder");
  };
  CHECK(where({"--dir", "/d"}, {{"TRAINSCOPE_DATA_DIR", "/t"}}) == "/d");
  CHECK(where({}, {{"TRAINSCOPE_DATA_DIR", "/t"}, {"XDG_CACHE_HOME", "/x"}}) == "/t");
  CHECK(where({}, {{"TRAINSCOPE_DATA_DIR", ""}, {"XDG_CACHE_HOME", "/x"}}) == "/x/trainscope/data");
  CHECK(where({}, {{"TRAINSCOPE_DATA_DIR", ""}, {"XDG_CACHE_HOME", "x"}, {"HOME", "/h"}}) ==
        "/h/.cache/trainscope/data");
}

TEST_CASE("data get: errors have their exit codes") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "served");
  std::ofstream(folder / "served/input.txt") << std::string(1115394, 'x');
  const HttpServer server(folder / "served", folder / "log");
  const auto get = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"data", "get", "tinyshakespeare", "--dir", "sets"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, {}, folder.path());
  };
  const Finished absent = get({"--url", server.url("missing")});
  CHECK(absent.exit_code == 6);
  CHECK(absent.err.find("it answers 404") != std::string::npos);
  const Finished wrong = get({"--url", server.url("missing"), "--url", server.url("ok")});
  CHECK(wrong.exit_code == 3);
  CHECK(wrong.err.find("are not the file of the catalog") != std::string::npos);
  CHECK(get({"--from-dir", "served"}).exit_code == 3);
  CHECK(get({"--from-dir", "nowhere"}).exit_code == 6);
  CHECK(!fs::exists(folder / "sets/tinyshakespeare/input.txt"));
  CHECK(get({"--from-dir", "served", "--url", "http://127.0.0.1:1"}).exit_code == 2);
}

TEST_CASE("data: calls that make no sense") {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"data"},
       "error: data needs list|get|make\n  try: `trainscope help data` lists its flags\n"},
      {{"data", "gte"}, "error: data cannot 'gte'\n  try: did you mean 'get'?\n"},
      {{"data", "get"}, "error: data get needs the NAME of a set\n"},
      {{"data", "make"}, "error: data make needs a KIND\n"},
      {{"data", "make", "text"}, "error: data make needs --dir DIR\n"},
      {{"data", "make", "txt", "--dir", "x"},
       "error: data make has no kind 'txt'\n  try: did you mean 'text'?\n"},
      {{"data", "list", "mnist"}, "error: data list takes no further argument: 'mnist'\n"},
      {{"data", "list", "--examples", "3"}, "error: --examples means nothing with data list\n"},
      {{"data", "get", "minst"},
       "error: there is no data set 'minst'\n  try: did you mean 'mnist'?\n"},
      {{"data", "make", "text", "--dir", "x", "--examples", "0"},
       "error: --examples is '0': expected a whole number from 1 to 16777216\n"},
  };
  const TemporaryFolder folder;
  for (const auto& [words, message] : cases) {
    const Finished finished = run(words, {}, folder.path());
    CHECK(finished.exit_code == 2);
    CHECK(finished.err == message);
  }
}

TEST_CASE("train: digits in MNIST's format, plain columns, tensors") {
  const TemporaryFolder folder;
  write_linear(folder / "digits.onnx", "1,28,28", 784, 10);
  write_linear(folder / "flowers.onnx", "4", 4, 3);
  const std::pair<std::string, std::string> cases[] = {
      {"mnist", "digits.onnx"}, {"csv", "flowers.onnx"}, {"tensors", "flowers.onnx"}};
  for (const auto& row : cases) {
    const std::string& kind = row.first;
    const std::string& model = row.second;
    INFO(kind);
    const std::string source = made(kind, folder, {"--examples", "200"});
    facts({"train", model, "--data", source, "--steps", "60", "--batch", "20", "--lr", "0.02",
           "--run-dir", "run-" + kind, "-q"},
          folder.path());
    const auto [first, last] = losses(folder / ("run-" + kind));
    CHECK(last < 0.6 * first);
  }
}

TEST_CASE("train: a language model on tokens and on byte pairs") {
  const TemporaryFolder folder;
  const std::pair<std::string, std::string> cases[] = {{"tokens", "48"}, {"bpe", "280"}};
  for (const auto& row : cases) {
    const std::string& kind = row.first;
    const std::string& vocabulary = row.second;
    INFO(kind);
    facts({"model", "gpt2", "--layers", "1", "--heads", "2", "--embedding", "32", "--context", "16",
           "--vocab", vocabulary, "--seed", "1", "-o", kind + ".onnx"},
          folder.path());
    const std::string source = made(kind, folder, {"--vocab", vocabulary});
    facts({"train", kind + ".onnx", "--data", source, "--steps", "80", "--batch", "8", "--seq",
           "16", "--lr", "1e-2", "--run-dir", "run-" + kind, "-q"},
          folder.path());
    const auto [first, last] = losses(folder / ("run-" + kind));
    CHECK(last < 0.8 * first);
    CHECK(facts({"eval", "run-" + kind}, folder.path()).get<double>("loss") < first);
  }
}

TEST_CASE("train: malformed data files are exit code 3 and name the file") {
  const TemporaryFolder folder;
  write_linear(folder / "m.onnx", "4", 4, 3);
  std::ofstream(folder / "bad.csv") << "a,b,c,d,y\n1,2,3,4,0\n1,2,x,4,0\n";
  std::ofstream(folder / "bad.npz") << "PK\x03\x04 and more of it, but no directory";
  std::ofstream(folder / "bad.idx") << "no idx";
  const std::pair<std::string, std::string> cases[] = {
      {"csv:bad.csv,label=y", "error: 'bad.csv' row 2 (line 3), column 'c': 'x' is no number\n"},
      {"tensors:bad.npz",
       "error: 'bad.npz': the zip archive has no end record: it is cut short\n"
       "  try: copy or save the file again\n"},
      {"idx:bad.idx,bad.idx",
       "error: 'bad.idx' is no IDX file: it begins with 6e 6f\n"
       "  try: the form is idx:IMAGES,LABELS\n"},
  };
  for (const auto& [source, message] : cases) {
    const Finished finished = run(
        {"train", "m.onnx", "--data", source, "--steps", "1", "--threads", "1"}, {}, folder.path());
    CHECK(finished.exit_code == 3);
    CHECK(finished.err == message);
    CHECK(!fs::exists(folder / "runs"));
  }
}

TEST_CASE("data get: from a folder, then catalog:NAME trains" *
          doctest::skip(!has_shared("data/tinyshakespeare/input.txt"))) {
  const TemporaryFolder folder;
  const std::map<std::string, std::string> environment = {
      {"TRAINSCOPE_DATA_DIR", (folder / "sets").string()}};
  const std::string from = shared_path("data/tinyshakespeare").string();
  const std::vector<std::string> get = {"data", "get", "tinyshakespeare", "--from-dir", from};
  const auto outcome = [&] {
    return facts(get, folder.path(), environment).array_at("files")[0].get<std::string>("outcome");
  };
  CHECK(outcome() == "copied");
  CHECK(outcome() == "present");
  facts({"model", "gpt2", "--layers", "1", "--heads", "2", "--embedding", "16", "--context", "8",
         "--vocab", "65", "--seed", "1", "-o", "gpt.onnx"},
        folder.path());
  facts({"train", "gpt.onnx", "--data", "catalog:tinyshakespeare", "--seq", "8", "--steps", "2",
         "--run-dir", "r", "-q"},
        folder.path(), environment);
  CHECK(
      run({"train", "gpt.onnx", "--data", "catalog:tinyshakespeare", "--seq", "8", "--steps", "2"},
          {{"TRAINSCOPE_DATA_DIR", (folder / "none").string()}}, folder.path())
          .exit_code == 6);
}

}  // namespace
}  // namespace trainscope::test
