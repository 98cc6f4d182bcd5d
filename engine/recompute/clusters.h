// Recompute opportunities as ONNX Runtime Training named them: clusters of cheap ops between values
// that are kept anyway, with its levels and its `A+B+:1:-1` requests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/recompute/step_model.h"

namespace trainscope {

enum class ClusterKind : std::uint8_t {
  kRecompute = 1,   // recomputed from values that the backward phase keeps in any case
  kCompromise = 2,  // ... and from others that must be kept for it, which are smaller
};

// One value that the backward phase reads, and the units that recompute it.
struct ClusterUse {
  int unit = 0;
  std::vector<int> recomputed;   // units that run twice, `unit` included
  std::int64_t saved_bytes = 0;  // kept no more, less what is kept instead
  double seconds = 0.0;
};

// All places of a step where the same ops could be recomputed. The id is their op types in order of
// execution, each with a plus: "Add+Gelu+".
struct Cluster {
  std::string id;
  ClusterKind kind = ClusterKind::kRecompute;
  std::vector<ClusterUse> uses;  // in order of execution
};

// Matmuls and convolutions are never recomputed. A search goes back from each kept value until it
// meets others that are kept, at most 50 units, and never past the sum that a normalization reads:
// so no cluster spans two layers. Sorted by bytes saved, largest first.
std::vector<Cluster> find_clusters(const Graph& graph, const StepModel& model);

// "A+B+:KIND:COUNT": of the cluster with this id the first COUNT places, -1 for all; KIND 0 leaves
// it off. Several are separated by commas.
struct ClusterRequest {
  std::string id;
  int kind = 1;
  std::int64_t count = -1;
};
// Fails with kUsage, showing the form.
std::vector<ClusterRequest> parse_cluster_requests(std::string_view text);

// Units to recompute. A request for a cluster that does not exist fails with kUsage and the nearest
// id.
std::vector<bool> requested_units(const StepModel& model, std::span<const Cluster> clusters,
                                  std::span<const ClusterRequest> requests);
// Level 1: every cluster of kind 1. Level 2: those of kind 2 too.
std::vector<bool> level_units(const StepModel& model, std::span<const Cluster> clusters, int level);

}  // namespace trainscope
