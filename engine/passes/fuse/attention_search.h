// Finds softmax(scale * q k' + bias) v, perhaps with dropout of the weights, in a graph, however
// its heads were moved into place.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/passes/fuse/causal_mask.h"
#include "engine/passes/match.h"

namespace trainscope {

// The value `source` with its axes permuted, rotated by rotary positions, and multiplied by a
// number.
struct Strand {
  ValueId source = kNoValue;
  Ints permutation;  // axis a is axis permutation[a] of the source
  double scale = 1.0;
  NodeId rotary = kNoNode;       // the RotaryEmbedding that rotated it, kNoNode: none did
  Ints rotary_permutation = {};  // axis a is axis rotary_permutation[a] of what that one reads

  bool is_in_order() const;
};

struct AttentionMatch {
  // [batch, tokens, heads, width] each; k and v of fewer heads may be shared by several of q.
  Strand q;
  Strand k;
  Strand v;
  // Set: q, k and v lie side by side in this value [batch, tokens, heads, width], which may have to
  // be reshaped from [batch, tokens, heads * width].
  ValueId packed = kNoValue;
  double scale = 1.0;
  bool causal = false;
  std::vector<ValueId> biases;
  NodeId dropout = kNoNode;   // of the weights
  NodeId last = kNoNode;      // what computes the result
  bool by_token = false;      // the result is [batch, tokens, heads, width], else by head
  std::vector<NodeId> nodes;  // that nobody else may need any more
};

class AttentionSearch {
 public:
  AttentionSearch(const Matcher& match, CausalMasks& masks) : match_(match), masks_(masks) {}

  // From a Softmax node on. Nothing: why_not() says what was found, if it looks like attention.
  std::optional<AttentionMatch> find(NodeId softmax);
  const std::string& why_not() const { return why_not_; }
  const std::vector<NodeId>& matched() const { return found_.nodes; }

 private:
  struct Matmul {
    NodeId node = kNoNode;
    ValueId a = kNoValue;
    ValueId b = kNoValue;
    bool transpose_b = false;
    double alpha = 1.0;
  };
  struct CausalMask {
    double fill = 0.0;        // of later tokens
    double scale = 1.0;       // of what it masks
    ValueId bias = kNoValue;  // that adds it; kNoValue: it takes the place of scores
  };

  const Shape& shape(ValueId v) const { return match_.value(v).type.shape; }
  std::optional<Matmul> matmul(NodeId id) const;
  ValueId after_dropout(ValueId weights);
  std::optional<Matmul> matmul_of_weights(ValueId weights);
  std::optional<Matmul> matmul_of_scores(ValueId scores);
  std::string why_not_passed(NodeId id) const;
  bool take_scale(NodeId id, ValueId& v);
  std::optional<double> factor_of(NodeId id, ValueId& v) const;
  Strand follow(ValueId v, Ints permutation, bool shared_heads);
  ValueId before_sharing(ValueId v) const;
  bool passes_rotary(const Strand& strand, NodeId id) const;
  void find_packed();
  void find_end(const Matmul& mixed);
  std::optional<AttentionMatch> give_up(std::string why);

  // attention_masks.cpp
  ValueId without_bias(NodeId add);
  bool comes_from_matmul(ValueId v, const Shape& whole) const;
  ValueId without_mask(NodeId where);
  bool leaves_no_weight(double fill) const;
  void add_causal(const CausalMask& mask);
  bool settle_masks();
  std::string why_gradient(ValueId of, std::string_view what) const;

  const Matcher& match_;
  CausalMasks& masks_;
  AttentionMatch found_;
  std::vector<CausalMask> finite_masks_;
  std::string why_not_;
};

}  // namespace trainscope
