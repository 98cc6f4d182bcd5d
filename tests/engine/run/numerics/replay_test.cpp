// What keeps a replay from giving the bits of a session.
#include "engine/run/numerics/replay.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "engine/exec/backends.h"
#include "tests/engine/run/run_tools.h"

namespace trainscope {
namespace {

bool names(const std::vector<std::string>& differences, std::string_view what) {
  return std::ranges::any_of(differences, [what](const std::string& difference) {
    return difference.find(what) != std::string::npos;
  });
}

TrainRequest request_of_now() {
  TrainRequest request = test::points_request("none", 1);
  request.compile.device = cpu_device();
  request.compile.lower.threads = 2;
  request.notes.program_version = "0.1.0";
  return request;
}

RunSession session_of_now() {
  return {.program_version = "0.1.0", .device = "cpu", .threads = 2, .isa = std::string(cpu_isa())};
}

TEST_CASE("replay: the same device, threads, instruction set and program give a session's bits") {
  CHECK(differences_from(session_of_now(), request_of_now()).empty());
}

TEST_CASE("replay: another device is a difference, and another GPU of that name") {
  RunSession session = session_of_now();
  session.device = "cuda:0";
  session.device_name = "NVIDIA H100";
  const std::vector<std::string> from = differences_from(session, request_of_now());
  CHECK(names(from, "the device was cuda:0, is cpu"));
  RunSession other = session;
  CHECK(differences_between(session, other).empty());
  other.device_name = "NVIDIA H200";
  CHECK(names(differences_between(session, other), "the GPU was NVIDIA H100, is NVIDIA H200"));
  other.device_name.clear();  // as a run of an earlier program: not known
  CHECK(differences_between(session, other).empty());
  other.device = "cuda:1";
  CHECK(names(differences_between(session, other), "the device was cuda:0, is cuda:1"));
}

TEST_CASE("replay: options that are only about records are no difference") {
  RunSession a = session_of_now();
  RunSession b = session_of_now();
  a.options = Json::object({{"lr", 0.1}, {"record-values", "fused"}, {"profile", "steps=1:2"}});
  b.options = Json::object({{"lr", 0.1}, {"record-values", "all"}});
  CHECK(differences_between(a, b).empty());
  b.options.set("lr", 0.2);
  CHECK(names(differences_between(a, b), "lr"));
}

}  // namespace
}  // namespace trainscope
