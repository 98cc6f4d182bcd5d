// Which elements of another value, and of tables, each element of a last axis is made of: however
// it is cut, negated, multiplied and put together.
#pragma once

#include <array>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/passes/match.h"

namespace trainscope {

// factor * x[..., lane], perhaps times table[..., table_lane].
struct LaneTerm {
  double factor = 1.0;
  std::int64_t lane = 0;
  ValueId table = kNoValue;
  std::int64_t table_lane = 0;
};
// A sum of one or two terms.
struct Lane {
  std::array<LaneTerm, 2> terms{};
  int count = 0;
};
// What the axes of a value after those that it shares with x, x's but the last, consist of.
struct Lanes {
  Shape shape;
  std::vector<Lane> lanes;  // row by row
};

class LaneReader {
 public:
  LaneReader(const Matcher& match, ValueId x);

  // Nothing: y is something else than such a sum of elements of x.
  std::optional<Lanes> read(ValueId y);
  // The nodes between x and y that the answer went through.
  const std::vector<NodeId>& nodes() const { return nodes_; }

  // Values of y's type behind y that it may be made of in this way, the nearest first.
  static std::vector<ValueId> candidates(const Matcher& match, ValueId y);

 private:
  using Answer = std::optional<Lanes>;
  const Answer& done(NodeId id, std::size_t input) const;
  Answer itself() const;
  std::optional<Shape> own_axes(ValueId v) const;
  Answer computed(NodeId id, ValueId v) const;
  Answer sum(NodeId id, double sign) const;
  Answer product(NodeId id) const;
  Answer reshaped(NodeId id, ValueId v) const;
  Answer cut(NodeId id, ValueId v) const;
  Answer put_together(NodeId id) const;

  const Matcher& match_;
  ValueId x_;
  int lead_;  // axes before the last
  std::unordered_map<ValueId, Answer> done_;
  std::vector<NodeId> nodes_;
};

}  // namespace trainscope
