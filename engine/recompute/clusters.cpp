// The bottom-up search of ONNX Runtime's memory optimizer, on the units of a step.
#include "engine/recompute/clusters.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

constexpr std::size_t kMostUnits = 50;
constexpr std::string_view kForm = "OPS:KIND:COUNT, for example Add+Gelu+:1:-1";

bool is_heavy(const Node& node) { return node.op->traits.rematerialize == Rematerialize::kHeavy; }

// A fused norm that is given a sum's other term makes the sum itself: it reads none.
bool normalizes_sum(const Node& node) {
  const int added = node.op->added_input;
  const bool adds = added >= 0 && added < std::ssize(node.inputs);
  return node.op->traits.rematerialize == Rematerialize::kNorm && !adds;
}

class Search {
 public:
  Search(const Graph& graph, const StepModel& model)
      : graph_(graph),
        model_(model),
        kept_(model.units.size(), false),
        barred_(model.units.size(), false) {
    for (const StepUnit& unit : model.units) {
      if (unit.forward) continue;
      for (int input : unit.inputs) kept_[index(input)] = true;
    }
    for (std::size_t i = 0; i < model.units.size(); ++i) bar(i);
  }

  std::vector<Cluster> run() {
    for (std::size_t i = 0; i < model_.units.size(); ++i) {
      if (!model_.units[i].forward || !kept_[i] || barred_[i]) continue;
      if (std::optional<Found> found = look_back(static_cast<int>(i))) add(std::move(*found));
    }
    std::vector<std::pair<std::int64_t, Cluster>> sorted;
    for (auto& [key, cluster] : clusters_) {
      std::int64_t saved = 0;
      for (const ClusterUse& use : cluster.uses) saved += use.saved_bytes;
      sorted.emplace_back(saved, std::move(cluster));
    }
    std::ranges::stable_sort(sorted, std::greater<>{}, &std::pair<std::int64_t, Cluster>::first);
    std::vector<Cluster> result;
    for (auto& [saved, cluster] : sorted) result.push_back(std::move(cluster));
    return result;
  }

 private:
  struct Found {
    ClusterKind kind = ClusterKind::kRecompute;
    ClusterUse use;
  };

  static std::size_t index(int unit) { return static_cast<std::size_t>(unit); }
  const StepUnit& unit(int i) const { return model_.units[index(i)]; }

  // Matmuls, convolutions, and the sums between layers: what a normalization reads besides somebody
  // else.
  void bar(std::size_t i) {
    const StepUnit& unit = model_.units[i];
    bool normalizes = false;
    for (NodeId id : unit.nodes) {
      barred_[i] = barred_[i] || is_heavy(graph_.node(id));
      normalizes = normalizes || normalizes_sum(graph_.node(id));
    }
    if (!normalizes || !unit.forward) return;
    for (int input : unit.inputs)
      barred_[index(input)] = barred_[index(input)] || kept_[index(input)];
  }

  std::optional<Found> look_back(int from) const {
    std::set<int> recomputed = {from};
    std::set<int> extra;  // kept for this cluster alone
    std::vector<int> open = {from};
    while (!open.empty()) {
      const int i = open.back();
      open.pop_back();
      for (int input : unit(i).inputs) {
        if (kept_[index(input)] || recomputed.contains(input)) continue;
        if (barred_[index(input)]) {
          extra.insert(input);
          continue;
        }
        recomputed.insert(input);
        open.push_back(input);
      }
      if (recomputed.size() > kMostUnits) return std::nullopt;
    }
    Found found{.kind = extra.empty() ? ClusterKind::kRecompute : ClusterKind::kCompromise,
                .use = {.unit = from,
                        .recomputed = {recomputed.begin(), recomputed.end()},
                        .saved_bytes = unit(from).bytes}};
    for (int i : recomputed) found.use.seconds += unit(i).seconds;
    for (int i : extra) found.use.saved_bytes -= unit(i).bytes;
    if (found.use.saved_bytes <= 0) return std::nullopt;
    return found;
  }

  void add(Found found) {
    std::string id;
    for (int i : found.use.recomputed) {
      for (NodeId node : unit(i).nodes) {
        if (graph_.node(node).phase != Phase::kForward) continue;
        id += fmt::format("{}+", graph_.node(node).op->name);
      }
    }
    Cluster& cluster = clusters_[{id, found.kind}];
    cluster.id = std::move(id);
    cluster.kind = found.kind;
    cluster.uses.push_back(std::move(found.use));
  }

  const Graph& graph_;
  const StepModel& model_;
  std::vector<bool> kept_;    // by unit: the backward phase reads it
  std::vector<bool> barred_;  // by unit: never recomputed
  std::map<std::pair<std::string, ClusterKind>, Cluster> clusters_;
};

ClusterRequest parse_request(std::string_view text) {
  const std::vector<std::string_view> fields = split(text, ':');
  const auto bad = [text] {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' is no recompute request", printable(text)))
        .hint(fmt::format("the form is {}", kForm));
  };
  if (fields.size() != 3 || fields[0].empty()) bad();
  const std::optional<std::int64_t> kind = parse_int(fields[1]);
  const std::optional<std::int64_t> count = parse_int(fields[2]);
  if (!kind || *kind < 0 || *kind > 2 || !count || *count < -1) bad();
  return {.id = std::string(fields[0]), .kind = static_cast<int>(*kind), .count = *count};
}

void mark(const Cluster& cluster, std::int64_t count, std::vector<bool>& recomputed) {
  for (const ClusterUse& use : cluster.uses) {
    if (count >= 0 && count-- == 0) return;
    for (int unit : use.recomputed) recomputed[static_cast<std::size_t>(unit)] = true;
  }
}

}  // namespace

std::vector<Cluster> find_clusters(const Graph& graph, const StepModel& model) {
  return Search(graph, model).run();
}

std::vector<ClusterRequest> parse_cluster_requests(std::string_view text) {
  std::vector<ClusterRequest> requests;
  for (std::string_view each : split(text, ',')) requests.push_back(parse_request(trim(each)));
  return requests;
}

std::vector<bool> requested_units(const StepModel& model, std::span<const Cluster> clusters,
                                  std::span<const ClusterRequest> requests) {
  std::vector<bool> recomputed(model.units.size(), false);
  for (const ClusterRequest& request : requests) {
    if (request.kind == 0) continue;
    bool found = false;
    for (const Cluster& cluster : clusters) {
      if (cluster.id != request.id || static_cast<int>(cluster.kind) > request.kind) continue;
      found = true;
      mark(cluster, request.count, recomputed);
    }
    if (found) continue;
    std::vector<std::string_view> ids;
    for (const Cluster& cluster : clusters) ids.push_back(cluster.id);
    throw Error(ErrorCode::kUsage, fmt::format("there is no recompute cluster '{}' of kind {}",
                                               printable(request.id), request.kind))
        .hint(nearest_hint(request.id, ids))
        .hint("`trainscope plan --opportunities` lists them");
  }
  return recomputed;
}

std::vector<bool> level_units(const StepModel& model, std::span<const Cluster> clusters,
                              int level) {
  std::vector<bool> recomputed(model.units.size(), false);
  for (const Cluster& cluster : clusters) {
    if (static_cast<int>(cluster.kind) <= level) mark(cluster, -1, recomputed);
  }
  return recomputed;
}

}  // namespace trainscope
