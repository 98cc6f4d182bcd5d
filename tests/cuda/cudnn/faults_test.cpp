// What is broken is an error, what the library has no way for is a refusal; engines that do not say
// how they compute are not used. On the simulated library.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/cudnn/conv_graphs.h"
#include "kernels/cuda/cudnn/cudnn.h"
#include "kernels/cuda/cudnn/graph_descriptors.h"
#include "kernels/cuda/cudnn/plan.h"
#include "tests/cuda/cudnn/library.h"

namespace trainscope::test {
namespace {

// Fails calls of the simulated library while it lives.
class AskedFault {
 public:
  AskedFault(const std::string& place, int status) {
    const std::string text = place + " " + std::to_string(status);
    ::setenv("TRAINSCOPE_SIMULATED_CUDNN_FAULT", text.c_str(), 1);
  }
  ~AskedFault() { ::unsetenv("TRAINSCOPE_SIMULATED_CUDNN_FAULT"); }
  AskedFault(const AskedFault&) = delete;
  AskedFault& operator=(const AskedFault&) = delete;
};

cuda::OpGraph pointwise_conv() {
  return cuda::conv_graph({.type = CUDNN_DATA_FLOAT,
                           .window = {.rank = 2,
                                      .kernel = {1, 1, 1},
                                      .stride = {1, 1, 1},
                                      .dilation = {1, 1, 1},
                                      .pad_begin = {0, 0, 0},
                                      .pad_end = {0, 0, 0}},
                           .x = {1, 8, 4, 4},
                           .w = {8, 8, 1, 1},
                           .y = {1, 8, 4, 4}});
}

// A limit that no graph was planned with before: plans and refusals of others are kept.
std::size_t new_limit() {
  static std::size_t last = std::size_t{1} << 20;
  return ++last;
}

// "" where a plan was made or refused.
std::string error_of_planning(std::size_t limit) {
  try {
    (void)cuda::planned(pointwise_conv(), limit);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

bool tells(std::string_view text, const std::string& part) {
  return text.find(part) != std::string_view::npos;
}

constexpr const char* kPlaces[] = {"graph", "heuristics", "plan"};

TEST_CASE("cudnn: what is broken is an error, and the next call tries again") {
  REQUIRE(load_simulated_cudnn() == "");
  // Libraries, mistakes, the driver, the runtime, prerequisites, compilation, memory, execution.
  for (const int status : {1001, 1002, 1008, 2000, 2005, 3005, 3006, 3008, 3009, 4000, 4001, 4003,
                           4004, 5000, 5001, 5003}) {
    for (const char* const place : kPlaces) {
      CAPTURE(status);
      CAPTURE(place);
      const std::size_t limit = new_limit();
      std::string error;
      {
        const AskedFault fault(place, status);
        error = error_of_planning(limit);
      }
      CHECK(tells(error, "cudnnBackendFinalize of a descriptor ("));
      CHECK(tells(error, "): status " + std::to_string(status) + " ("));
      CHECK(tells(error, "the environment asks for it"));
      CHECK(tells(error, "TRAINSCOPE_CUDNN=off"));
      CHECK(cuda::planned(pointwise_conv(), limit).plan != nullptr);
    }
  }
}

TEST_CASE("cudnn: what it has no way for is a refusal, which is kept") {
  REQUIRE(load_simulated_cudnn() == "");
  for (const int status : {3000, 3001, 3002, 3003, 3004, 3007, 3010, 3014, 3999}) {
    for (const char* const place : kPlaces) {
      CAPTURE(status);
      CAPTURE(place);
      const std::size_t limit = new_limit();
      {
        const AskedFault fault(place, status);
        CHECK(error_of_planning(limit) == "");
      }
      const cuda::PlannedGraph planned = cuda::planned(pointwise_conv(), limit);
      CHECK(planned.plan == nullptr);
      CHECK(tells(planned.why_not, "status " + std::to_string(status) + " ("));
    }
  }
}

TEST_CASE("cudnn: a handle that cannot be made is an error, and is made when it can be") {
  REQUIRE(load_simulated_cudnn() == "");
  // A device whose handle nobody has asked for.
  REQUIRE(cudaSetDevice(3) == cudaSuccess);
  const std::size_t limit = new_limit();
  std::string error;
  {
    const AskedFault fault("handle", 1008);
    error = error_of_planning(limit);
  }
  CHECK(tells(error, "cudnnCreate: status 1008 ("));
  CHECK(cuda::planned(pointwise_conv(), limit).plan != nullptr);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("cudnn: a plan whose workspace is too large is not made at all") {
  REQUIRE(load_simulated_cudnn() == "");
  const AskedFault fault("plan", 4001);
  CHECK(error_of_planning(16) == "");
  const cuda::PlannedGraph planned = cuda::planned(pointwise_conv(), 16);
  CHECK(tells(planned.why_not, "its workspace is larger than 16 bytes"));
}

TEST_CASE("cudnn: engines whose notes cannot be read, or are of a later version, are not used") {
  REQUIRE(load_simulated_cudnn() == "");
  std::string why_not;
  const cuda::CudnnTarget target{.handle = cuda::cudnn_handle(&why_not)};
  REQUIRE(target.handle != nullptr);
  cuda::CudnnFailure failure;
  const cuda::GraphDescriptors graph = cuda::describe_graph(pointwise_conv(), target, failure);
  const std::vector<cuda::EngineConfig> configs = cuda::engine_configs(graph, failure);
  CHECK(failure.text() == "");
  // Of each of two modes: five of six engines can be read, and one of these may be used.
  CHECK(configs.size() == 10);
  constexpr std::size_t kMost = std::size_t{1} << 20;
  std::vector<std::int64_t> used;
  std::size_t of_later_versions = 0;
  for (const cuda::EngineConfig& config : configs) {
    CHECK(config.index != 0);
    CHECK(config.workspace_bytes > 0);
    const std::string reason = cuda::why_not_used(config, CUDNN_DATA_FLOAT, kMost);
    if (reason.empty()) used.push_back(config.index);
    if (tells(reason, "that this build does not know")) ++of_later_versions;
  }
  CHECK(used == std::vector<std::int64_t>{5, 5});
  CHECK(of_later_versions == 2);
}

TEST_CASE("cudnn: its description says whether attention is its work") {
  REQUIRE(load_simulated_cudnn() == "");
  const std::string version = "cuDNN " + cuda::cudnn().version_text();
  {
    const AskedFault fault("plan", 3008);
    CHECK(tells(cuda::cudnn_description(), version + ", attention fails: cudnnBackendFinalize"));
  }
  CHECK(cuda::cudnn_description() == version);
  REQUIRE(cudaSetDevice(4) == cudaSuccess);
  {
    const AskedFault fault("plan", 3002);
    CHECK(tells(cuda::cudnn_description(), version + ", attention by own kernels: "));
  }
  REQUIRE(cudaSetDevice(5) == cudaSuccess);
  {
    const AskedFault fault("handle", 1002);
    CHECK(tells(cuda::cudnn_description(), "no cuDNN: cudnnCreate: status 1002"));
  }
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

}  // namespace
}  // namespace trainscope::test
