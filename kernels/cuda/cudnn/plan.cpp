// The first configuration that may be used and that the library can build.
#include "kernels/cuda/cudnn/plan.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "kernels/cuda/cudnn/cudnn.h"
#include "kernels/cuda/support/stream_name.h"

namespace trainscope::cuda {
namespace {

constexpr std::uintptr_t kAlignment = 16;

// Texts that differ, in their order.
void add_reason(std::string& reasons, const std::string& reason) {
  if (reasons.find(reason) != std::string::npos) return;
  reasons += (reasons.empty() ? "" : "; ") + reason;
}

// Nobody computes otherwise because of what is broken without being told.
[[noreturn]] void throw_broken(const std::string& text) {
  throw std::runtime_error(text + "; with TRAINSCOPE_CUDNN=off cuDNN is not used");
}
void throw_fault(const CudnnFailure& failure) {
  if (failure.is_fault()) throw_broken(failure.text());
}

// A plan, or why there is none. Texts and plans stay where they are.
struct KeptPlan {
  std::shared_ptr<const CudnnPlan> plan;
  std::string why_not;
};
using KeptPlans = std::map<std::string, KeptPlan>;

// A search for the largest batch plans more graphs than one step has. Refusals stay: whoever asked
// has their texts.
void forget_unused(KeptPlans& plans) {
  constexpr std::ptrdiff_t kMany = 512;
  const auto is_unused = [](const auto& each) { return each.second.plan.use_count() == 1; };
  if (std::ranges::count_if(plans, is_unused) < kMany) return;
  std::erase_if(plans, is_unused);
}

}  // namespace

bool lie_aligned(std::span<void* const> operands) {
  return std::ranges::all_of(operands, [](const void* operand) {
    return reinterpret_cast<std::uintptr_t>(operand) % kAlignment == 0;
  });
}

CudnnPlan::CudnnPlan(const OpGraph& graph) : summary_(graph.summary()) {
  for (const TensorId id : graph.operands()) uids_.push_back(uid_of(id));
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const GraphTensor& tensor = graph.tensors()[i];
    if (tensor.place != TensorPlace::kValue) continue;
    uids_.push_back(uid_of(TensorId{static_cast<std::int32_t>(i)}));
    values_.push_back(tensor.value);
  }
}

std::unique_ptr<CudnnPlan> CudnnPlan::make(const OpGraph& graph, std::size_t most_workspace_bytes,
                                           std::string* why_not) {
  std::unique_ptr<CudnnPlan> plan(new CudnnPlan(graph));
  std::string why_no_handle;
  plan->target_.handle = cudnn_handle(&why_no_handle);
  if (plan->target_.handle == nullptr) throw_broken(why_no_handle);
  if (!plan->choose(most_workspace_bytes, graph, why_not)) plan.reset();
  return plan;
}

bool CudnnPlan::choose(std::size_t most_workspace_bytes, const OpGraph& graph,
                       std::string* why_not) {
  const cudnnDataType_t type = graph.tensor(graph.operands()[0]).type;
  CudnnFailure failure;
  graph_ = describe_graph(graph, target_, failure);
  std::vector<EngineConfig> configs = engine_configs(graph_, failure);
  throw_fault(failure);
  std::string reasons;
  for (EngineConfig& config : configs) {
    std::string reason = why_not_used(config, type, most_workspace_bytes);
    if (reason.empty()) reason = take(std::move(config), type, most_workspace_bytes);
    if (reason.empty()) return true;
    add_reason(reasons, reason);
  }
  *why_not = failure.none() ? reasons : failure.text();
  return false;
}

std::string CudnnPlan::take(EngineConfig config, cudnnDataType_t type,
                            std::size_t most_workspace_bytes) {
  CudnnFailure failure;
  CudnnDescriptor plan = plan_descriptor(config, graph_, target_, failure);
  config.workspace_bytes = plan_workspace_bytes(plan, failure);
  throw_fault(failure);
  if (!failure.none()) return failure.text();
  std::string why_not = why_not_used(config, type, most_workspace_bytes);
  if (!why_not.empty()) return why_not;
  config_ = std::move(config);
  plan_ = std::move(plan);
  return {};
}

void CudnnPlan::run(std::span<void* const> operands, void* workspace,
                    const CallContext& call) const {
  std::vector<void*> pointers(operands.begin(), operands.end());
  for (const float& value : values_) pointers.push_back(const_cast<float*>(&value));
  CudnnFailure failure;
  CudnnDescriptor pack(failure, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
  pack.set_all(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(uids_))
      .set_all(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(pointers))
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace)
      .finalize();
  failure.check(cudnn().set_stream(target_.handle, static_cast<cudaStream_t>(call.native_stream)),
                "cudnnSetStream");
  if (failure.none()) {
    failure.check(cudnn().execute(target_.handle, plan_.get(), pack.get()), "cudnnBackendExecute");
  }
  if (failure.none()) return;
  call.fail(DeviceStatus::Code::kFailed, failure.text() + " (" + summary_ + ", on " +
                                             std::string(stream_name(call.stream)) + ")");
}

// The table is never given back: when a process ends, the library may be gone before. It has all
// plans that somebody uses, so that none of them ends then.
PlannedGraph planned(const OpGraph& graph, std::size_t most_workspace_bytes) {
  static auto& plans = *std::make_unique<KeptPlans>().release();
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  int device = 0;
  (void)cudaGetDevice(&device);
  const std::string key =
      std::to_string(device) + " " + std::to_string(most_workspace_bytes) + " " + graph.text();
  auto found = plans.find(key);
  if (found == plans.end()) {
    forget_unused(plans);
    KeptPlan made;
    made.plan = CudnnPlan::make(graph, most_workspace_bytes, &made.why_not);
    found = plans.emplace(key, std::move(made)).first;
  }
  return {.plan = found->second.plan, .why_not = found->second.why_not};
}

}  // namespace trainscope::cuda
