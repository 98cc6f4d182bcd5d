// doctor: what it says of the machine, and of CUDA drivers that a stub plays.
#include <doctest/doctest.h>

#include <fstream>

#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

using Variables = std::map<std::string, std::string>;

Json doctor(Variables variables = {}) {
  const Finished finished = run({"doctor", "--json"}, variables);
  REQUIRE(finished.exit_code == 0);
  return finished.json();
}

// With the stub in place of a driver.
Json doctor_with_driver(Variables variables) {
  variables["LD_LIBRARY_PATH"] = TRAINSCOPE_CUDA_STUB;
  return doctor(std::move(variables)).at("cuda");
}

bool says(const Json& cuda, std::string_view part) {
  return cuda.get<std::string>("why").find(part) != std::string::npos;
}

TEST_CASE("doctor: processor, memory, disk, libraries") {
  const Json facts = doctor();
  CHECK(facts.at("cpu").get<int>("usable_cores") >= 1);
  CHECK(facts.at("cpu").contains("instruction_sets"));
  const Json& memory = facts.at("memory");
  CHECK(memory.get<std::int64_t>("total_bytes") >= memory.get<std::int64_t>("available_bytes"));
  CHECK(facts.at("disk").get<std::int64_t>("free_bytes") > 0);
  CHECK(facts.at("disk").get<std::string>("folder").starts_with('/'));
  for (const char* library : {"onnx", "protobuf", "oneDNN"}) {
    INFO(library);
    const auto version = facts.at("libraries").get<std::string>(library);
    CHECK(version.find('.') != std::string::npos);
    CHECK(version.find_first_not_of("0123456789.") == std::string::npos);
  }
  const std::string text = run({"doctor"}).out;
  for (const char* heading : {"cpu  ", "memory  ", "disk  ", "libraries  ", "cuda  "}) {
    CHECK(text.find(heading) != std::string::npos);
  }
}

TEST_CASE("doctor: the disk is that of the runs' folder") {
  const TemporaryFolder folder;
  const auto place = [&folder] {
    return run({"doctor", "--json"}, {}, folder.path())
        .json()
        .at("disk")
        .get<std::string>("folder");
  };
  CHECK(!place().ends_with("/runs"));
  std::filesystem::create_directory(folder / "runs");
  CHECK(place().ends_with("/runs"));
}

TEST_CASE("doctor: why CUDA is absent") {
  SUBCASE("a driver that is too old") {
    const Json cuda = doctor_with_driver({{"STUB_CUDA_VERSION", "12040"}});
    CHECK(says(cuda, "the driver is too old: it knows CUDA 12.4, needed is 13.0"));
    CHECK(cuda.get<std::string>("driver_cuda_version") == "12.4");
  }
  SUBCASE("a driver without a device") {
    CHECK(says(doctor_with_driver({{"STUB_CUDA_INIT_CODE", "100"}}), "the driver finds no device"));
    CHECK(says(doctor_with_driver({{"STUB_CUDA_DEVICES", "0"}}), "the driver finds no device"));
  }
  SUBCASE("a driver that fails") {
    CHECK(says(doctor_with_driver({{"STUB_CUDA_INIT_CODE", "999"}}),
               "the driver does not start: error 999, a stub's error"));
    CHECK(says(doctor_with_driver({{"STUB_CUDA_INIT_CODE", "3"}}),
               "the driver does not start: error 3"));
    CHECK(says(doctor_with_driver({{"STUB_CUDA_COUNT_CODE", "999"}}),
               "the driver cannot count devices: error 999"));
    CHECK(says(doctor_with_driver({{"STUB_CUDA_VERSION_CODE", "999"}}),
               "the driver does not tell its version: error 999"));
    CHECK(says(doctor_with_driver({{"STUB_CUDA_VERSION", "0"}}),
               "the driver does not tell its version"));
  }
  SUBCASE("a driver and a device that the back end cannot use") {
    const Json cuda = doctor_with_driver({{"STUB_CUDA_DEVICES", "2"}});
    const bool built = !says(cuda, "this build has no CUDA back end");
    if (built) CHECK(says(cuda, "CUDA does not start: cudaGetDeviceCount: error "));
    CHECK(!says(cuda, ";"));
    REQUIRE(cuda.array_at("devices").size() == 2);
    CHECK(cuda.array_at("devices")[0].as_string() == "Stub GPU\\x1b[31m");
    CHECK(!cuda.get<bool>("available"));
  }
  SUBCASE("a library of that name that is no driver") {
    const Json cuda = doctor({{"LD_LIBRARY_PATH", TRAINSCOPE_NO_CUDA_STUB}}).at("cuda");
    CHECK(says(cuda, "libcuda.so.1 is no CUDA driver: it lacks its functions"));
  }
  SUBCASE("a file that cannot be loaded") {
    const TemporaryFolder folder;
    std::ofstream(folder / "libcuda.so.1") << "no library";
    const Json cuda = doctor({{"LD_LIBRARY_PATH", folder.path().string()}}).at("cuda");
    CHECK(says(cuda, "there is no NVIDIA driver: "));
    CHECK(!cuda.contains("driver_cuda_version"));
  }
}

TEST_CASE("doctor: --device cuda is exit 4 with the same reason") {
  const Finished finished =
      run({"check", "x.onnx", "--device", "cuda"},
          {{"LD_LIBRARY_PATH", TRAINSCOPE_CUDA_STUB}, {"STUB_CUDA_VERSION", "12040"}});
  CHECK(finished.exit_code == 4);
  CHECK(finished.err.find("the driver is too old: it knows CUDA 12.4") != std::string::npos);
}

}  // namespace
}  // namespace trainscope::test
