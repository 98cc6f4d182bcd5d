// Command lines that print JSON, in processes of their own.
#include "gui/budget/json_process.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "gui/budget/child_process.h"
#include "tests/gui/budget/budget_tools.h"

namespace trainscope::gui::test {
namespace {

using Phase = JsonProcess::Phase;
using trainscope::test::TemporaryFolder;
using trainscope::test::wait_until;

void wait_for_end(JsonProcess& process) {
  REQUIRE(wait_until([&] {
    process.poll();
    return process.phase() != Phase::kRunning;
  }));
}

}  // namespace

TEST_SUITE_BEGIN("processes");

TEST_CASE("json process: an answer, an error's words, and a program that is not there") {
  const TemporaryFolder folder;
  JsonProcess made(trainscope_program(), {"model", "mlp", "-o", (folder / "model.onnx").string()});
  wait_for_end(made);
  CHECK(made.phase() == Phase::kDone);
  CHECK(made.json().at("command").as_string() == "model");

  JsonProcess refused(trainscope_program(), {"query", (folder / "nothing").string()});
  wait_for_end(refused);
  CHECK(refused.phase() == Phase::kFailed);
  CHECK(refused.fault().find("nothing") != std::string::npos);

  JsonProcess absent(folder / "nothing", {"query"});
  CHECK(absent.phase() == Phase::kFailed);
  CHECK(absent.hint() == "the program trainscope has to be beside trainscope-window");
  absent.poll();
}

TEST_CASE("json process: a program that prints no JSON, and one that nobody waits for") {
  JsonProcess noise("/bin/echo", {"no", "JSON"});
  wait_for_end(noise);
  CHECK(noise.phase() == Phase::kFailed);
  CHECK(noise.fault().starts_with("its answer cannot be read"));
  JsonProcess fails("/bin/false", {});
  wait_for_end(fails);
  CHECK(fails.fault() == "trainscope ended with exit code 1");
  const JsonProcess sleeps("/bin/sleep", {"1000"});  // its destructor ends it
}

TEST_SUITE_END();

}  // namespace trainscope::gui::test
