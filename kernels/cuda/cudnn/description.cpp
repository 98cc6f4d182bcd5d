// cuDNN for people: its version, and whether attention can be its work here.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include "kernels/cuda/cudnn/attention_graphs.h"
#include "kernels/cuda/cudnn/attention_limits.h"
#include "kernels/cuda/cudnn/cudnn.h"
#include "kernels/cuda/cudnn/plan.h"

namespace trainscope::cuda {
namespace {

constexpr std::size_t kMostReasonBytes = 400;

// Small, and of sizes that each version takes: what refuses it is missing beside the library.
constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kTokens = 128;
constexpr std::int64_t kWidth = 64;

std::string why_no_plan(const OpGraph& graph) {
  constexpr std::size_t kMostWorkspaceBytes = std::size_t{256} << 20;
  const PlannedGraph made = planned(graph, kMostWorkspaceBytes);
  return made.plan == nullptr ? std::string(made.why_not) : std::string();
}

// Why attention of bf16 or its gradient is not the library's; empty: both are.
std::string why_no_attention() {
  const AttentionShape shape{.type = CUDNN_DATA_BFLOAT16,
                             .batch = 1,
                             .heads = kHeads,
                             .kv_heads = kHeads,
                             .tokens = kTokens,
                             .keys = kTokens,
                             .width = kWidth,
                             .packed = true,
                             .causal = true};
  const CudnnPlace place = current_place();
  std::string why_not(why_not_attention(shape, place));
  if (why_not.empty()) why_not = why_no_plan(attention_graph(shape));
  if (!why_not.empty()) return ", attention by own kernels: " + why_not;
  why_not = why_not_attention_grad(shape, place);
  if (why_not.empty()) why_not = why_no_plan(attention_grad_graph(shape));
  return why_not.empty() ? "" : ", gradients of attention by own kernels: " + why_not;
}

}  // namespace

std::string cudnn_description() {
  std::string why_not = load_cudnn();
  if (why_not.empty()) (void)cudnn_handle(&why_not);
  if (!why_not.empty()) return "no cuDNN: " + why_not;
  std::string attention;
  try {
    attention = why_no_attention();
  } catch (const std::exception& error) {
    attention = ", attention fails: " + std::string(error.what());
  }
  return "cuDNN " + cudnn().version_text() + attention.substr(0, kMostReasonBytes);
}

}  // namespace trainscope::cuda
