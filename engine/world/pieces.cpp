// Forward is cut where one value is alive, backward follows the nodes that it comes from.
#include "engine/world/pieces.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/world/collective_ops.h"
#include "engine/world/zero.h"

namespace trainscope {
namespace {

std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }
std::size_t index(NodeId v) { return static_cast<std::size_t>(v); }

class PieceFinder {
 public:
  explicit PieceFinder(const Graph& graph)
      : graph_(graph),
        order_(graph.order()),
        bound_(graph.value_capacity(), false),
        root_(graph.value_capacity(), kNoValue) {
    pieces_.of.assign(graph.node_capacity(), kNoPiece);
    for (const OptimizerNode& step : optimizer_nodes(graph)) optimizers_.insert(step.node);
  }

  Pieces find() {
    find_bound();
    for (NodeId id : order_) {
      if (runs_forward(id)) forward_.push_back(id);
    }
    find_roots();
    cut_forward();
    follow_backward();
    return std::move(pieces_);
  }

 private:
  // Position in forward_ of the node that makes a value, and of its last reader there.
  struct Lifetime {
    ValueId value = kNoValue;
    std::size_t made = 0;
    std::size_t last = 0;
  };

  bool is_bound(ValueId v) const { return v != kNoValue && bound_[index(v)]; }

  // Parameters, and what is made of them.
  void find_bound() {
    for (ValueId v : graph_.values_of(ValueKind::kParameter)) bound_[index(v)] = true;
    for (NodeId id : order_) {
      const Node& node = graph_.node(id);
      const auto any = [this](ValueId v) { return is_bound(v); };
      if (!std::ranges::any_of(node.inputs, any)) continue;
      for (ValueId v : node.outputs) {
        if (v != kNoValue) bound_[index(v)] = true;
      }
    }
  }

  bool runs_forward(NodeId id) const {
    const Node& node = graph_.node(id);
    return node.phase == Phase::kForward &&
           std::ranges::any_of(node.inputs, [this](ValueId v) { return is_bound(v); });
  }

  // Bytes that a view shows count once; views of parameters are parameters, which have no root.
  void find_roots() {
    for (NodeId id : forward_) {
      const Node& node = graph_.node(id);
      const ValueId from = node.op->is_view ? node.inputs[0] : kNoValue;
      if (is_parameter(from)) continue;
      for (ValueId v : node.outputs) {
        if (v != kNoValue) root_[index(v)] = from == kNoValue ? v : root_[index(from)];
      }
    }
  }

  bool is_parameter(ValueId v) const { return is_bound(v) && root_[index(v)] == kNoValue; }

  // Of the roots that somebody reads, by made.
  std::vector<Lifetime> lifetimes() const {
    std::vector<Lifetime> found;
    std::vector<std::size_t> lifetime_of(graph_.value_capacity());
    for (std::size_t i = 0; i < forward_.size(); ++i) {
      const Node& node = graph_.node(forward_[i]);
      for (ValueId v : node.inputs) {
        const ValueId root = is_bound(v) ? root_[index(v)] : kNoValue;
        if (root != kNoValue) found[lifetime_of[index(root)]].last = i;
      }
      for (ValueId v : node.outputs) {
        if (v == kNoValue || root_[index(v)] != v) continue;
        lifetime_of[index(v)] = found.size();
        found.push_back({.value = v, .made = i, .last = i});
      }
    }
    std::erase_if(found, [](const Lifetime& each) { return each.last == each.made; });
    return found;
  }

  void cut_forward() {
    const std::vector<Lifetime> all = lifetimes();
    std::vector<std::vector<ValueId>> ends(forward_.size());
    for (const Lifetime& each : all) ends[each.last].push_back(each.value);
    std::unordered_set<ValueId> alive;
    std::size_t next = 0;  // of all
    for (std::size_t i = 0; i < forward_.size(); ++i) {
      const Node& node = graph_.node(forward_[i]);
      if (pieces_.with_parameters.empty()) pieces_.with_parameters.push_back(false);
      pieces_.of[index(forward_[i])] = pieces_.count() - 1;
      if (std::ranges::any_of(node.inputs, [this](ValueId v) { return is_parameter(v); })) {
        pieces_.with_parameters.back() = true;
      }
      for (; next < all.size() && all[next].made == i; ++next) alive.insert(all[next].value);
      for (ValueId v : ends[i]) alive.erase(v);
      if (alive.size() != 1 || !may_begin(i + 1)) continue;
      pieces_.passing.push_back(*alive.begin());
      pieces_.with_parameters.push_back(false);
    }
  }

  // A view stays with what it shows, an all-reduce with the node that makes its input.
  bool may_begin(std::size_t i) const {
    if (i >= forward_.size()) return false;
    const OpDef* op = graph_.node(forward_[i]).op;
    return !op->is_view && op != &all_reduce_op();
  }

  void follow_backward() {
    std::unordered_map<std::string_view, int> piece_of;  // by source
    for (NodeId id : forward_) {
      const int own = pieces_.of[index(id)];
      for (const std::string& source : graph_.node(id).provenance.sources) {
        int& piece = piece_of.emplace(source, own).first->second;
        piece = std::max(piece, own);
      }
    }
    for (NodeId id : order_) {
      const Node& node = graph_.node(id);
      if (node.phase == Phase::kForward || optimizers_.contains(id)) continue;
      if (node.phase == Phase::kUpdate) continue;
      pieces_.of[index(id)] = backward_piece(node, piece_of);
    }
  }

  int backward_piece(const Node& node,
                     const std::unordered_map<std::string_view, int>& piece_of) const {
    int least = std::numeric_limits<int>::max();  // gradients come from later pieces
    int gradients = 0;
    bool reads_forward = false;
    bool bound = false;
    for (ValueId v : node.inputs) {
      if (!is_bound(v)) continue;
      bound = true;
      const NodeId producer = graph_.value(v).producer;
      if (producer == kNoNode || graph_.node(producer).phase == Phase::kForward) {
        reads_forward = true;
        continue;
      }
      ++gradients;
      const int piece = pieces_.of[index(producer)];
      if (piece != kNoPiece) least = std::min(least, piece);
    }
    if (!bound) return kNoPiece;
    int own = kNoPiece;
    for (const std::string& source : node.provenance.sources) {
      const auto found = piece_of.find(source);
      if (found != piece_of.end()) own = std::max(own, found->second);
    }
    const bool joins = gradients > 1 && !reads_forward;  // where the last of them is made
    if (own == kNoPiece || joins) own = least;
    return std::min({own, least, pieces_.count() - 1});
  }

  const Graph& graph_;
  std::vector<NodeId> order_;
  std::vector<NodeId> forward_;  // nodes that need parameters
  std::vector<bool> bound_;      // by ValueId
  std::vector<ValueId> root_;    // by ValueId: whose bytes a value shows
  std::unordered_set<NodeId> optimizers_;
  Pieces pieces_;
};

}  // namespace

Pieces find_pieces(const Graph& graph) { return PieceFinder(graph).find(); }

}  // namespace trainscope
