// How errors reach a terminal, a log and a reader of JSON.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "engine/core/json.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {

TEST_CASE("errors: with --log-format json a line of the log") {
  const Finished finished = run({"trian", "--log-format", "json"});
  CHECK(finished.exit_code == 2);
  const Json line = Json::parse(finished.err);
  CHECK(line.get<std::string>("level") == "error");
  CHECK(line.get<std::string>("message") == "there is no verb 'trian'");
  CHECK(line.get<std::string>("hint") == "did you mean 'train'?");
  CHECK(line.get<int>("code") == 2);
  CHECK(line.get<std::string>("time").ends_with('Z'));
}

TEST_CASE("errors: with --json an object on standard output too") {
  const Finished finished = run({"inspect", "nothing.onnx", "--json"});
  CHECK(finished.exit_code == 6);
  const Json error = finished.json().at("error");
  CHECK(finished.json().get<int>("schema_version") == 1);
  CHECK(error.get<int>("code") == 6);
  CHECK(error.get<std::string>("name") == "io");
  CHECK(error.get<std::string>("message").find("nothing.onnx") != std::string::npos);
  CHECK(run({"inspect", "nothing.onnx"}, {{"TRAINSCOPE_JSON", "1"}}).json().contains("error"));
}

TEST_CASE("errors: colour only when asked for") {
  CHECK(run({"trian"}).err.find('\033') == std::string::npos);
  CHECK(run({"trian", "--color", "always"}).err.find('\033') != std::string::npos);
  CHECK(run({"trian", "--color=never"}).err.find('\033') == std::string::npos);
  CHECK(run({"trian"}, {{"TRAINSCOPE_COLOR", "always"}}).err.find('\033') != std::string::npos);
  // NO_COLOR takes away what a terminal would get, not what was asked for.
  CHECK(run({"trian", "--color", "always"}, {{"NO_COLOR", "1"}}).err.find('\033') !=
        std::string::npos);
}

TEST_CASE("errors: protobuf's own messages do not stand before ours") {
  const TemporaryFolder folder;
  // IR 8, a graph with a node whose input's name is no UTF-8.
  std::ofstream(folder / "bad.onnx", std::ios::binary)
      << std::string_view("\x08\x08\x3a\x05\x0a\x03\x0a\x01\xff");
  const Finished finished = run({"check", "bad.onnx"}, {}, folder.path());
  CHECK(finished.exit_code == 3);
  CHECK(finished.err.starts_with("error: "));
  CHECK(finished.err.find("libprotobuf") == std::string::npos);
}

TEST_CASE("errors: a newer IR version is a warning, and the model is read") {
  const TemporaryFolder folder;
  std::ifstream file(std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/models/mlp/model.onnx",
                     std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(bytes.starts_with("\x08\x08"));  // IR 8
  bytes[1] = 99;
  std::ofstream(folder / "new.onnx", std::ios::binary) << bytes;
  const Finished finished = run({"check", "new.onnx"}, {}, folder.path());
  CHECK(finished.exit_code == 0);
  CHECK(finished.err.find("warning: the model: IR version 99 is newer than 14") !=
        std::string::npos);
}

TEST_CASE("names from files cannot reach the terminal as escapes") {
  const TemporaryFolder folder;
  const std::string name = "evil\033[31m.onnx";
  std::ofstream(folder / name) << "x";
  const Finished finished = run({"inspect", name}, {}, folder.path());
  CHECK(finished.exit_code == 3);
  CHECK(finished.err.find('\033') == std::string::npos);
}

}  // namespace trainscope::test
