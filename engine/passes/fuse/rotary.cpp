// fuse_rotary: rotary positions, x * cos + rotated(x) * sin, as one node.
#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/passes/fuse/lanes.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"
#include "engine/passes/plain_view.h"

namespace trainscope {
namespace {

// Elements begin, begin + step, ... of the last axis of a value.
struct Table {
  ValueId of = kNoValue;
  std::int64_t begin = 0;
  std::int64_t step = 1;
  auto operator<=>(const Table&) const = default;
};

struct RotaryMatch {
  ValueId x = kNoValue;
  Table cos;
  Table sin;
  std::int64_t pairs = 0;
  bool interleaved = false;
  bool inverse = false;
  NodeId last = kNoNode;
  std::vector<NodeId> nodes;
};

class RotarySearch {
 public:
  explicit RotarySearch(const Matcher& match) : match_(match) {}

  std::optional<RotaryMatch> find(ValueId y) {
    if (match_.value(y).type.shape.rank == 0) return std::nullopt;
    for (ValueId x : LaneReader::candidates(match_, y)) {
      LaneReader reader(match_, x);
      const std::optional<Lanes> lanes = reader.read(y);
      if (!lanes || lanes->shape.rank != 1 || !rotates(lanes->lanes)) continue;
      found_.x = x;
      found_.last = match_.value(y).producer;
      found_.nodes = reader.nodes();
      const ValueId kept = match_.kept_inside(found_.nodes, found_.last);
      if (kept != kNoValue) {
        why_not_ = match_.why_kept(kept);
        return std::nullopt;
      }
      if (!has_tables(lanes->lanes) || !has_f32_tables()) return std::nullopt;
      return found_;
    }
    return std::nullopt;
  }

  // Not empty: the elements are rotated in pairs, but for this.
  const std::string& why_not() const { return why_not_; }
  const std::vector<NodeId>& matched() const { return found_.nodes; }

 private:
  std::size_t first_of(std::int64_t pair) const {
    return static_cast<std::size_t>(found_.interleaved ? 2 * pair : pair);
  }
  std::size_t second_of(std::int64_t pair) const {
    return static_cast<std::size_t>(found_.interleaved ? 2 * pair + 1 : pair + found_.pairs);
  }

  // The term of element `lane` itself, and that of its partner.
  static const LaneTerm& own(const Lane& lane, std::size_t i) {
    return lane.terms[lane.terms[0].lane == static_cast<std::int64_t>(i) ? 0 : 1];
  }
  static const LaneTerm& other(const Lane& lane, std::size_t i) {
    return lane.terms[lane.terms[0].lane == static_cast<std::int64_t>(i) ? 1 : 0];
  }

  // Whether pairs of elements are rotated, by whatever angles, and the elements after them stay.
  bool rotates(const std::vector<Lane>& lanes) {
    std::size_t rotated = 0;
    while (rotated < lanes.size() && lanes[rotated].count == 2) ++rotated;
    if (rotated == 0 || rotated % 2 != 0) return false;
    for (std::size_t i = rotated; i < lanes.size(); ++i) {
      const LaneTerm& term = lanes[i].terms[0];
      const bool stays = lanes[i].count == 1 && term.lane == static_cast<std::int64_t>(i) &&
                         term.table == kNoValue && term.factor == 1.0;
      if (!stays) return false;
    }
    found_.pairs = static_cast<std::int64_t>(rotated / 2);
    found_.interleaved = other(lanes[0], 0).lane == 1 && found_.pairs > 1;
    found_.inverse = other(lanes[0], 0).factor > 0.0;
    found_.cos.of = own(lanes[0], 0).table;
    found_.sin.of = other(lanes[0], 0).table;
    if (found_.cos.of == kNoValue || found_.sin.of == kNoValue) return false;
    const double sign = found_.inverse ? -1.0 : 1.0;
    for (std::int64_t pair = 0; pair < found_.pairs; ++pair) {
      const std::size_t a = first_of(pair);
      const std::size_t b = second_of(pair);
      if (!is_rotated(lanes[a], {a, b}, -sign) || !is_rotated(lanes[b], {b, a}, sign)) return false;
    }
    return true;
  }

  bool is_rotated(const Lane& lane, std::pair<std::size_t, std::size_t> elements,
                  double factor) const {
    const LaneTerm& self = own(lane, elements.first);
    const LaneTerm& partner = other(lane, elements.first);
    return self.lane == static_cast<std::int64_t>(elements.first) &&
           partner.lane == static_cast<std::int64_t>(elements.second) && self.factor == 1.0 &&
           partner.factor == factor && self.table == found_.cos.of &&
           partner.table == found_.sin.of;
  }

  // The op rotates numbers of two bytes by tables in f32.
  bool has_f32_tables() {
    const DType expected = computed(match_.value(found_.x).type.dtype);
    for (ValueId table : {found_.cos.of, found_.sin.of}) {
      const Value& value = match_.value(table);
      if (value.type.dtype == expected) continue;
      return refuse(fmt::format("'{}' is {}, {} is expected", printable(value.name),
                                type_text(value.type), name_of(expected)));
    }
    return true;
  }

  bool has_tables(const std::vector<Lane>& lanes) {
    return has_table(lanes, found_.cos, own) && has_table(lanes, found_.sin, other);
  }

  // Whether the two elements of each pair read equal elements of the table, at even distances.
  bool has_table(const std::vector<Lane>& lanes, Table& table,
                 const LaneTerm& (*term)(const Lane&, std::size_t)) {
    std::vector<std::int64_t> firsts;
    std::vector<std::int64_t> seconds;
    for (std::int64_t pair = 0; pair < found_.pairs; ++pair) {
      firsts.push_back(term(lanes[first_of(pair)], first_of(pair)).table_lane);
      seconds.push_back(term(lanes[second_of(pair)], second_of(pair)).table_lane);
    }
    table.begin = firsts[0];
    table.step = firsts.size() > 1 ? firsts[1] - firsts[0] : 1;
    if (table.step <= 0) return false;  // read backwards
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      if (firsts[i] != table.begin + static_cast<std::int64_t>(i) * table.step) return false;
    }
    const std::int64_t apart = seconds[0] - firsts[0];
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      if (seconds[i] - firsts[i] != apart) return false;
    }
    return apart == 0 || repeats(table, apart);
  }

  // Whether elements of the table that are `apart` are equal.
  bool repeats(const Table& table, std::int64_t apart) {
    const Value& value = match_.value(table.of);
    if (value.kind == ValueKind::kParameter) {
      return refuse(fmt::format("'{}' is trained, a constant is expected: freeze it (--freeze)",
                                printable(value.name)));
    }
    const bool same =
        value.data ? known_to_repeat(value, table, apart) : put_together_twice(table.of, apart);
    return same ||
           refuse(fmt::format("the two elements of a pair are rotated by different angles: '{}'",
                              printable(value.name)));
  }

  bool known_to_repeat(const Value& value, const Table& table, std::int64_t apart) const {
    const Tensor elements = convert(*value.data, DType::kF64);
    const std::span<const double> numbers = elements.values<double>();
    const Shape& shape = value.type.shape;
    const auto width = static_cast<std::size_t>(shape[shape.rank - 1]);
    for (std::size_t row = 0; row < numbers.size(); row += width) {
      for (std::int64_t pair = 0; pair < found_.pairs; ++pair) {
        const std::size_t i = row + static_cast<std::size_t>(table.begin + pair * table.step);
        if (numbers[i] != numbers[i + static_cast<std::size_t>(apart)]) return false;
      }
    }
    return true;
  }

  // Functions of each element of one value that stands twice in a Concat, half the axis apart.
  bool put_together_twice(ValueId v, std::int64_t apart) const {
    constexpr int kMostSteps = 8;
    const Shape& shape = match_.value(v).type.shape;
    const std::int64_t width = shape[shape.rank - 1];
    if (2 * apart != width) return false;
    for (int step = 0; step < kMostSteps; ++step) {
      const NodeId id = match_.value(v).producer;
      if (id == kNoNode || match_.is_gradient_wanted(v)) return false;
      if (match_.is_op(id, "Concat")) {
        const std::vector<ValueId>& pieces = match_.graph().node(id).inputs;
        const int rank = match_.value(v).type.shape.rank;
        const std::int64_t axis = match_.graph().node(id).attributes.integer("axis", 0);
        return normalized_axis(axis, rank) == rank - 1 && pieces.size() == 2 &&
               pieces[0] == pieces[1];
      }
      v = before_function(id);
      if (v == kNoValue) return false;
      const Shape& inner = match_.value(v).type.shape;
      if (inner.rank == 0 || inner[inner.rank - 1] != width) return false;
    }
    return false;
  }

  // The operand of a node that changes each element by itself, or adds axes before the last.
  ValueId before_function(NodeId id) const {
    const bool plain = match_.is_op(id, "Cos") || match_.is_op(id, "Sin") ||
                       is_plain_view(*match_.graph().node(id).op);
    if (plain) return match_.input(id, 0);
    const bool scaled = match_.is_op(id, "Mul") && match_.number(match_.input(id, 1));
    return scaled ? match_.input(id, 0) : kNoValue;
  }

  bool refuse(std::string why) {
    why_not_ = std::move(why);
    return false;
  }

  const Matcher& match_;
  RotaryMatch found_;
  std::string why_not_;
};

class RotaryFusion {
 public:
  RotaryFusion(Graph& graph, PassContext& context)
      : context_(context),
        rewriter_(graph, context.ops, context.pass, context.evaluate),
        match_(graph, context.options) {}

  // Whether it fused.
  bool try_at(ValueId y) {
    RotarySearch search(match_);
    const std::optional<RotaryMatch> found = search.find(y);
    if (found) {
      replace_region(rewriter_, found->nodes, found->last,
                     [&](Builder& b) { return rotated(b, *found); });
      context_.count("fused");
    } else if (!search.why_not().empty()) {
      context_.near_miss(match_.graph(), match_.value(y).producer, search.matched(),
                         search.why_not());
    }
    return found.has_value();
  }

  const Matcher& match() const { return match_; }
  bool changed() const { return rewriter_.changed(); }

 private:
  ValueId rotated(Builder& b, const RotaryMatch& found) {
    Attributes attributes;
    if (found.interleaved) attributes.set("interleaved", std::int64_t{1});
    const ValueId cos = table(b, found.cos, found.pairs);
    const ValueId sin = table(b, found.sin, found.pairs);
    const Shape both = broadcast_shapes(b.shape(cos), b.shape(sin));
    return b(found.inverse ? "RotaryEmbeddingGrad" : "RotaryEmbedding",
             {found.x, expanded(b, cos, both), expanded(b, sin, both)}, std::move(attributes));
  }

  static ValueId expanded(Builder& b, ValueId table, const Shape& shape) {
    if (b.shape(table) == shape) return table;
    return b("Expand", {table, b.ints(Ints(shape.span().begin(), shape.span().end()))});
  }

  // The elements of a table that are read: of a known one a constant, one for all layers.
  ValueId table(Builder& b, const Table& table, std::int64_t pairs) {
    const Shape shape = b.shape(table.of);  // a copy: the graph grows
    if (table.begin == 0 && table.step == 1 && shape[shape.rank - 1] == pairs) return table.of;
    const Value& value = match_.value(table.of);
    if (!value.data || value.kind == ValueKind::kParameter) {
      const std::int64_t end = table.begin + (pairs - 1) * table.step + 1;
      return b("Slice", {table.of, b.ints({table.begin}), b.ints({end}), b.ints({-1}),
                         b.ints({table.step})});
    }
    const auto known = tables_.find(table);
    if (known != tables_.end()) return known->second;
    const ValueId slice = b.constant(slice_of(*value.data, table, pairs), "rotary_table");
    tables_.emplace(table, slice);
    return slice;
  }

  static Tensor slice_of(const Tensor& whole, const Table& table, std::int64_t pairs) {
    const Tensor elements = convert(whole, DType::kF64);
    const std::span<const double> numbers = elements.values<double>();
    Shape shape = whole.type().shape;
    const auto width = static_cast<std::size_t>(shape[shape.rank - 1]);
    shape[shape.rank - 1] = pairs;
    std::vector<double> slice;
    for (std::size_t row = 0; row < numbers.size(); row += width) {
      for (std::int64_t pair = 0; pair < pairs; ++pair) {
        slice.push_back(numbers[row + static_cast<std::size_t>(table.begin + pair * table.step)]);
      }
    }
    return convert(Tensor::of<double>(shape, slice), whole.type().dtype);
  }

  PassContext& context_;
  Rewriter rewriter_;
  Matcher match_;
  std::map<Table, ValueId> tables_;
};

// Halves, or neighbours that a Reshape brings back beside each other.
bool try_concat(RotaryFusion& fusion, NodeId id) {
  const Matcher& match = fusion.match();
  const ValueId y = match.output(id);
  const NodeId reader = match.only_reader(y);
  const bool is_view = reader != kNoNode && is_plain_view(*match.graph().node(reader).op);
  if (is_view && fusion.try_at(match.output(reader))) return true;
  return fusion.try_at(y);
}

bool adds_products(const Matcher& match, NodeId id) {
  if (!match.is_op(id, "Add") && !match.is_op(id, "Sub")) return false;
  return match.made_by(match.input(id, 0), "Mul") != kNoNode &&
         match.made_by(match.input(id, 1), "Mul") != kNoNode;
}

// Concats first: elements that stay may lie beside those that are rotated.
bool fuse_rotary(Graph& graph, PassContext& context) {
  RotaryFusion fusion(graph, context);
  for (NodeId id : graph.order()) {
    if (!graph.node(id).erased && fusion.match().is_op(id, "Concat")) try_concat(fusion, id);
  }
  for (NodeId id : graph.order()) {
    if (graph.node(id).erased || !adds_products(fusion.match(), id)) continue;
    fusion.try_at(fusion.match().output(id));
  }
  return fusion.changed();
}

}  // namespace

Pass fuse_rotary_pass() {
  return {.name = "fuse_rotary",
          .doc =
              "Rotate pairs of elements by rotary positions in one node where a model spells it "
              "out.",
          .run = fuse_rotary};
}

}  // namespace trainscope
