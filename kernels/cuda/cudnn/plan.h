// A graph that cuDNN has a plan for: planned once, run many times.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/api/kernel.h"
#include "kernels/cuda/cudnn/graph_descriptors.h"

namespace trainscope::cuda {

// Whether operands may be given to a plan: all lie at multiples of 16 bytes.
bool lie_aligned(std::span<void* const> operands);

// On the device that was the thread's current one when it was made.
class CudnnPlan {
 public:
  // Null, with the reason, where the library has no way to compute the graph deterministically and
  // without rounding products or sums to less than f32 (why_not_used), with a workspace of at most
  // so many bytes. Throws std::runtime_error where something is broken (CudnnFailure::is_fault).
  static std::unique_ptr<CudnnPlan> make(const OpGraph& graph, std::size_t most_workspace_bytes,
                                         std::string* why_not);

  std::size_t workspace_bytes() const { return static_cast<std::size_t>(config_.workspace_bytes); }
  // Operands in the graph's order, aligned. Says through `call` what the library refuses.
  void run(std::span<void* const> operands, void* workspace, const CallContext& call) const;

 private:
  explicit CudnnPlan(const OpGraph& graph);

  bool choose(std::size_t most_workspace_bytes, const OpGraph& graph, std::string* why_not);
  // Why this configuration, which may be used, does not become the plan; empty: it did.
  std::string take(EngineConfig config, cudnnDataType_t type, std::size_t most_workspace_bytes);

  CudnnTarget target_;
  std::string summary_;
  std::vector<std::int64_t> uids_;  // of operands, then of values
  std::vector<float> values_;
  GraphDescriptors graph_;
  EngineConfig config_;
  CudnnDescriptor plan_;
};

// A plan, or why there is none, in storage that stays.
struct PlannedGraph {
  std::shared_ptr<const CudnnPlan> plan;
  std::string_view why_not;
};
// For the thread's current device, planned when it is first asked for: layers of one size have one
// plan. Refusals are kept as long as the process, plans until there are many that nobody has. What
// CudnnPlan::make() throws is not kept: the next call tries again.
PlannedGraph planned(const OpGraph& graph, std::size_t most_workspace_bytes);

}  // namespace trainscope::cuda
