// NVIDIA's cuDNN and descriptions of GPUs: which graphs it has engines for, and what it says of
// others. A plan is built up to where it would load its code onto a GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/cuda/cudnn/cudnn.h"
#include "kernels/cuda/own_kernels.h"
#include "tests/cuda/cudnn/library.h"
#include "tests/cuda/cudnn/workloads.h"

namespace trainscope::test {
namespace {

using cuda::AttentionShape;
using cuda::CudnnFailure;
using cuda::OpGraph;

// What the library proposes for a graph on a described device.
struct Planned {
  std::size_t usable = 0;       // configurations that CudnnPlan would build, in their order
  std::size_t passed_over = 0;  // before the first of these: their workspace is too large
  std::int64_t workspace = -1;  // of the first one, in bytes
  std::size_t built = 0;        // up to where they need a driver, at least
  std::string why_not;
};

constexpr std::size_t kAnyWorkspace = std::numeric_limits<std::size_t>::max();

Planned planned_on(std::string_view device, const OpGraph& graph, std::size_t most_workspace,
                   std::size_t most_built) {
  const cuda::CudnnTarget target = described_device(device);
  CudnnFailure failure;
  const cuda::GraphDescriptors descriptors = cuda::describe_graph(graph, target, failure);
  const std::vector<cuda::EngineConfig> configs = cuda::engine_configs(descriptors, failure);
  const cudnnDataType_t type = graph.tensor(graph.operands()[0]).type;
  Planned planned{.why_not = failure.text()};
  for (const cuda::EngineConfig& config : configs) {
    const std::string reason = cuda::why_not_used(config, type, most_workspace);
    if (!reason.empty()) {
      const bool too_large = cuda::why_not_used(config, type, kAnyWorkspace).empty();
      if (too_large && planned.usable == 0) ++planned.passed_over;
      if (planned.why_not.find(reason) == std::string::npos) planned.why_not = reason;
      continue;
    }
    if (++planned.usable == 1) planned.workspace = config.workspace_bytes;
    if (planned.built == most_built) continue;
    CudnnFailure refusal;
    (void)cuda::plan_descriptor(config, descriptors, target, refusal);
    const bool needs_driver = refusal.status() == CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER;
    if (refusal.none() || needs_driver) ++planned.built;
  }
  return planned;
}

TEST_SUITE("long" * doctest::skip(!has_real_cudnn())) {
  TEST_CASE("cudnn: attention has an engine on each device, forward and backward") {
    REQUIRE(load_real_cudnn() == "");
    MESSAGE("cuDNN " << cuda::cudnn().version_text());
    for (const auto& [name, shape] : attention_workloads()) {
      const OpGraph backward = cuda::attention_grad_graph(cuda::attention_grad_part(shape));
      const std::size_t most = cuda::most_attention_grad_workspace_bytes(shape);
      for (const std::string_view device : kDescribedDevices) {
        CAPTURE(name);
        CAPTURE(device);
        // To build one takes NVIDIA's compiler: of bf16 alone.
        const bool builds = shape.type == CUDNN_DATA_BFLOAT16;
        for (const OpGraph& graph : {cuda::attention_graph(shape), backward}) {
          const Planned planned = planned_on(device, graph, most, builds ? 1 : 0);
          CHECK_MESSAGE(planned.usable > 0, planned.why_not);
          CHECK(planned.workspace >= 0);
          if (builds) CHECK(planned.built == 1);
        }
      }
    }
  }

  TEST_CASE("cudnn: convolutions have an engine on each device, forward and both gradients") {
    REQUIRE(load_real_cudnn() == "");
    std::size_t graphs = 0;
    std::size_t passed_over = 0;
    for (const auto& [name, shape] : conv_workloads()) {
      cuda::ConvShape biased = shape;
      biased.has_bias = true;
      for (const OpGraph& graph :
           {cuda::conv_graph(shape), cuda::conv_graph(biased), cuda::conv_grad_input_graph(shape),
            cuda::conv_grad_weight_graph(shape)}) {
        for (const std::string_view device : kDescribedDevices) {
          CAPTURE(name);
          CAPTURE(device);
          const std::size_t most = cuda::most_conv_workspace_bytes(graph);
          const Planned planned = planned_on(device, graph, most, 1);
          ++graphs;
          if (planned.passed_over > 0) ++passed_over;
          CHECK_MESSAGE(planned.built == 1, planned.why_not);
          CHECK(planned.workspace >= 0);
        }
      }
    }
    MESSAGE(graphs << " graphs; of " << passed_over << " a proposal before the first that is used "
                   << "has too large a workspace");
  }

  TEST_CASE("cudnn: gradients of scores are kept, so that no sum of dq depends on the run") {
    REQUIRE(load_real_cudnn() == "");
    for (const auto& [name, shape] : attention_workloads()) {
      const AttentionShape part = cuda::attention_grad_part(shape);
      const OpGraph graph = cuda::attention_grad_graph(part);
      for (const std::string_view device : kDescribedDevices) {
        CudnnFailure failure;
        const cuda::GraphDescriptors descriptors =
            cuda::describe_graph(graph, described_device(device), failure);
        const std::vector<cuda::EngineConfig> configs = cuda::engine_configs(descriptors, failure);
        CAPTURE(name);
        CAPTURE(device);
        CHECK(!configs.empty());
        CHECK(failure.text() == "");
        for (const cuda::EngineConfig& config : configs) {
          if (!cuda::why_not_used(config, part.type, kAnyWorkspace).empty()) continue;
          CHECK(config.workspace_bytes >= part.batch * part.heads * part.tokens * part.keys * 2);
        }
      }
    }
  }

  // --- Refusals
  // ------------------------------------------------------------------------------------

  // What the library does not take, by name.
  struct Refused {
    std::string name;
    AttentionShape shape;
    bool backward;
  };
  std::vector<Refused> refused_graphs() {
    const AttentionShape shape = attention_workloads()[0].shape;
    AttentionShape uneven = shape;
    uneven.width = 100;
    AttentionShape wide = shape;
    wide.width = 256;
    AttentionShape wider = shape;
    wider.width = 264;
    AttentionShape by_query = shape;
    by_query.bias = {1, 1, shape.tokens, 1};
    AttentionShape f32 = shape;
    f32.type = CUDNN_DATA_FLOAT;
    return {{"heads of 100", uneven, false},
            {"heads of 100", uneven, true},
            {"heads of 256", wide, true},
            {"heads of 264", wider, false},
            {"heads of 264", wider, true},
            {"a bias of queries", by_query, true},
            {"f32", f32, false},
            {"f32", f32, true}};
  }

  std::string line_of(const Refused& refused, std::string_view device, const std::string& why) {
    return refused.name + (refused.backward ? "\tbackward\t" : "\tforward\t") +
           std::string(device) + "\t" + cuda::cudnn().version_text() + "\t" + why;
  }

  // Whether an own kernel takes the call that the graph is of.
  bool has_own_kernel(const Refused& refused) {
    static const KernelTable table = cuda::own_kernels();
    const AttentionShape& s = refused.shape;
    const DType type = s.type == CUDNN_DATA_FLOAT ? DType::kF32 : DType::kBF16;
    const AttentionParams params{.heads = s.heads,
                                 .kv_heads = s.kv_heads,
                                 .scale = static_cast<double>(s.scale),
                                 .causal = s.causal,
                                 .packed = s.packed,
                                 .dropout = {}};
    const TensorView packed{{type, {s.batch, s.tokens, s.heads + 2 * s.kv_heads, s.width}}};
    const TensorView y{{type, {s.batch, s.tokens, s.heads, s.width}}};
    const TensorView statistics{{DType::kF32, {s.batch, s.heads, s.tokens, 2}}};
    std::vector<TensorView> inputs{packed};
    if (refused.backward) inputs.insert(inputs.begin(), {y, y, statistics});
    const std::vector<TensorView> outputs =
        refused.backward ? std::vector{packed} : std::vector{y, statistics};
    const Params of_call = params;
    const auto kernels = table.find(refused.backward ? "AttentionGrad" : "Attention", type);
    return std::ranges::any_of(kernels, [&](const Kernel* kernel) {
      return static_cast<bool>(
          kernel->supports({.params = of_call, .inputs = inputs, .outputs = outputs}));
    });
  }

  TEST_CASE("cudnn: what it refuses is in refusals.tsv, and an own kernel takes it") {
    REQUIRE(load_real_cudnn() == "");
    std::ifstream file(std::filesystem::path(TRAINSCOPE_SOURCE_DIR) /
                       "tests/cuda/cudnn/refusals.tsv");
    std::vector<std::string> kept;
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with('#')) kept.push_back(line);
    }
    std::vector<std::string> now;
    for (const Refused& refused : refused_graphs()) {
      const OpGraph graph = refused.backward ? cuda::attention_grad_graph(refused.shape)
                                             : cuda::attention_graph(refused.shape);
      for (const std::string_view device : kDescribedDevices) {
        const Planned planned = planned_on(device, graph, kAnyWorkspace, 0);
        if (planned.usable > 0) continue;
        CHECK_MESSAGE(has_own_kernel(refused) == (refused.shape.width <= 256), refused.name);
        now.push_back(line_of(refused, device, planned.why_not));
      }
    }
    const std::string version = "\t" + cuda::cudnn().version_text() + "\t";
    const bool comparable = std::ranges::all_of(
        kept, [&](const std::string& line) { return line.find(version) != std::string::npos; });
    if (!comparable) {
      MESSAGE("refusals.tsv is of another cuDNN than " << cuda::cudnn().version_text()
                                                       << ": not compared");
      return;
    }
    std::string lines;
    for (const std::string& line : now) lines += line + "\n";
    CHECK_MESSAGE(now == kept, "refusals.tsv must hold these lines:\n" << lines);
  }
}

}  // namespace
}  // namespace trainscope::test
