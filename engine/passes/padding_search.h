// Which nodes of a network need to compute real tokens only: what `skip_padding` rewrites.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/passes/match.h"
#include "engine/passes/token_rows.h"

namespace trainscope {

class PaddingSearch {
 public:
  PaddingSearch(const Matcher& match, ValueId mask, const TrainingOptions& options);

  // The nodes that need real tokens only, in order, matmuls among them; empty: none.
  std::vector<NodeId> find();
  // Inputs of a node of find() that are rows of tokens.
  bool is_rows(const Node& node, std::size_t input) const;
  const TokenRows& tokens() const { return tokens_; }
  const std::vector<std::pair<NodeId, std::string>>& near_misses() const { return near_misses_; }

 private:
  const Graph& graph() const { return match_.graph(); }
  const Shape& shape(ValueId v) const { return match_.value(v).type.shape; }
  static std::size_t at(ValueId v) { return static_cast<std::size_t>(v); }
  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

  void find_influence();
  void find_masked();
  void find_in_place();
  void find_unread();
  bool attentions_are_masked();
  std::string why_not_masked(const Node& attention) const;
  bool is_moved_row(const Node& node, std::size_t input) const;
  bool is_rows_of_matmul(const Node& node) const;
  std::string why_read(NodeId id, std::size_t input) const;
  std::string why_attended(const Node& node, std::size_t input) const;
  bool is_head_of_compacted(const Node& node, std::size_t input) const;
  bool is_packable(NodeId id) const;
  bool may_leave_axes(const Node& node) const;
  bool leads_in(NodeId id) const;
  void drop_leading();
  void keep_beside_matmuls();
  void leave_head_whole();
  void note_other_matmuls();

  const Matcher& match_;
  ValueId mask_;
  const TrainingOptions& options_;
  TokenRows tokens_;
  std::vector<bool> matters_;          // by node: the loss or a next state depends on it
  std::vector<bool> masked_;           // by value: made of the mask
  std::vector<bool> in_place_;         // by value: rows of the tokens that the mask is about
  std::vector<std::string> why_read_;  // by value: why its rows of padding are read; empty: not
  std::vector<bool> chosen_;           // by node
  std::vector<std::pair<NodeId, std::string>> near_misses_;
};

}  // namespace trainscope
