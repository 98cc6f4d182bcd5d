// The sharding rules of the rows: on two shards of its inputs, in every way that a rule accepts, an
// op computes two shards of its results.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "engine/core/error.h"
#include "engine/ir/builder.h"
#include "engine/ops/standard_ops.h"
#include "tests/ops/slices.h"
#include "tests/support/op_case.h"

namespace trainscope::test {
namespace {

constexpr std::int64_t kShards = 2;
constexpr std::size_t kMostWays = 50000;  // of sharding the inputs of an example
constexpr double kBound = 1e-11;

using Shards = std::vector<Shard>;

std::string text_of(const Shards& shards) {
  std::string text;
  for (const Shard& shard : shards) {
    text += shard.is_split() ? fmt::format("split {}, ", shard.axis)
                             : (shard.is_partial() ? "partial, " : "whole, ");
  }
  return text;
}

// An example of a row as a node, which rules ask about.
class ShardedExample {
 public:
  ShardedExample(const OpTable& ops, const OpDef& row, std::string_view text)
      : row_(row), example_(parse_example(text)), inputs_(example_inputs(example_, 3)) {
    Builder b(graph_, ops);
    b.set_provenance({.sources = {}, .pass = "test"});
    std::vector<ValueId> values;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      values.push_back(kNoValue);
      if (!example_.inputs[i].present) continue;
      const std::string name = fmt::format("x{}", i);
      values.back() = is_known(i) ? b.constant(inputs_[i], name) : b.input(name, inputs_[i].type());
    }
    const std::vector<ValueId> made =
        b.multi(row.name, values, example_.output_count, example_.attributes);
    node_ = graph_.value(made[0]).producer;
    results_ = results_of(row, example_, inputs_);
  }

  // Every way to shard the inputs in two; parameters are left to the rule too.
  std::vector<Shards> ways() const {
    std::vector<Shards> ways = {{}};
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      std::vector<Shards> longer;
      for (const Shards& way : ways) {
        for (const Shard& shard : options_of(i)) {
          longer.push_back(way);
          longer.back().push_back(shard);
        }
      }
      if (longer.size() > kMostWays) return {};
      ways = std::move(longer);
    }
    return ways;
  }

  // The shards of the results; what was open in `inputs` is decided. None: the rule refuses.
  std::optional<Shards> results_for(Shards& inputs, const Shards& wanted) const {
    const NodeArgs args(graph_, graph_.node(node_));
    try {
      return row_.traits.sharding->rule({.graph = graph_,
                                         .node = graph_.node(node_),
                                         .op = *args,
                                         .shards = kShards,
                                         .inputs = inputs,
                                         .wanted = wanted});
    } catch (const Error&) {
      return std::nullopt;  // heads that cannot be divided
    }
  }

  void check(const Shards& inputs, const Shards& outputs) const {
    INFO(text_of(inputs), "-> ", text_of(outputs));
    std::vector<std::vector<Tensor>> results;
    for (std::int64_t shard = 0; shard < kShards; ++shard) {
      results.push_back(results_on(shard, inputs, outputs));
    }
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      INFO("output ", k);
      if (outputs[k].is_partial()) {
        const Tensor sum = added(results[0][k], results[1][k]);
        CHECK(relative_error(added(sum, counted_twice(inputs)[k], -1.0), results_[k]) < kBound);
        continue;
      }
      for (std::int64_t shard = 0; shard < kShards; ++shard) {
        const Tensor want = outputs[k].is_split() ? shard_of(results_[k], outputs[k].axis, shard,
                                                             output_pieces(outputs[k]))
                                                  : results_[k];
        CHECK(relative_error(results[static_cast<std::size_t>(shard)][k], want) < kBound);
      }
    }
  }

  bool divides(const Shards& inputs) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool uneven = inputs[i].is_split() && inputs_[i].shape()[inputs[i].axis] % kShards != 0;
      if (uneven) return false;
    }
    return true;
  }
  std::size_t output_count() const { return results_.size(); }

 private:
  bool is_known(std::size_t i) const { return example_.inputs[i].fill == Fill::kGiven; }

  Shards options_of(std::size_t i) const {
    Shards options = {{}};
    if (!example_.inputs[i].present || is_known(i)) return options;
    const TensorType& type = inputs_[i].type();
    for (int axis = 0; axis < type.shape.rank; ++axis) {
      const bool divides = type.shape[axis] > 0 && type.shape[axis] % kShards == 0;
      if (divides) options.push_back(Shard::split(axis));
    }
    if (type.dtype == DType::kF64) {
      options.push_back({.kind = Shard::Kind::kOpen});
      if (row_.traits.sharding->linear) options.push_back(Shard::partial());
    }
    return options;
  }

  // Where several tensors lie side by side along an axis, a device has a slice of each.
  using Pieces = std::vector<std::int64_t>;
  Tensor shard_of(const Tensor& whole, int axis, std::int64_t shard, const Pieces& sizes) const {
    std::vector<Tensor> slices;
    std::int64_t begin = 0;
    for (std::int64_t size : sizes.empty() ? Pieces{whole.shape()[axis]} : sizes) {
      const std::int64_t own = size / kShards;
      slices.push_back(slice_of(whole, axis, begin + shard * own, own));
      begin += size;
    }
    return joined(slices, axis);
  }
  // Of Split's input and of Concat's result, along their own axis; of heads side by side.
  Pieces input_pieces(std::size_t i, const Shard& shard) const {
    if (i == packed_heads() && shard.axis == 2) return heads();
    Pieces sizes;
    if (row_.name != "Split" || shard.axis != own_axis()) return sizes;
    for (const Tensor& result : results_) sizes.push_back(result.shape()[shard.axis]);
    return sizes;
  }
  Pieces output_pieces(const Shard& shard) const {
    if (row_.name == "AttentionGrad" && packed_heads() < inputs_.size()) return heads();
    Pieces sizes;
    if (row_.name != "Concat" || shard.axis != own_axis()) return sizes;
    for (const Tensor& input : inputs_) sizes.push_back(input.shape()[shard.axis]);
    return sizes;
  }
  // The input of an attention that holds the heads of queries, keys and values; else none.
  std::size_t packed_heads() const {
    if (!example_.attributes.has("q_heads")) return inputs_.size();
    return row_.name == "AttentionGrad" ? 3 : 0;
  }
  Pieces heads() const {
    const std::int64_t own = example_.attributes.integer("q_heads", 0);
    const std::int64_t shared = example_.attributes.integer("kv_heads", own);
    return {own, shared, shared};
  }
  int own_axis() const {
    return normalized_axis(example_.attributes.integer("axis", 0), inputs_[0].shape().rank);
  }

  Tensor input_on(std::int64_t shard, std::size_t i, const Shard& of) const {
    const Tensor& whole = inputs_[i];
    if (of.is_split()) return shard_of(whole, of.axis, shard, input_pieces(i, of));
    if (!of.is_partial()) return whole;
    const Tensor part = random_tensor(whole.type(), 17, i);
    return shard == 0 ? part : added(whole, part, -1.0);
  }

  // The node on one device: its shards, and the sizes that it is told.
  std::vector<Tensor> results_on(std::int64_t shard, const Shards& of_inputs,
                                 const Shards& of_outputs) const {
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs.push_back(input_on(shard, i, of_inputs[i]));
    }
    return results_of(row_, example_, told(std::move(inputs), of_outputs),
                      told_attributes(of_outputs));
  }

  std::vector<Tensor> told(std::vector<Tensor> inputs, const Shards& of_outputs) const {
    const Sharding& sharding = *row_.traits.sharding;
    Shape shape = results_[0].shape();
    if (of_outputs[0].is_split()) shape[of_outputs[0].axis] /= kShards;
    if (sharding.shape_input >= 0) {
      inputs[static_cast<std::size_t>(sharding.shape_input)] = Tensor::ints(shape.span());
    }
    const auto sizes_input = static_cast<std::size_t>(std::max(0, sharding.sizes_input));
    const bool sizes = sharding.sizes_input >= 0 && sizes_input < inputs.size() &&
                       of_outputs[0].is_split() && of_outputs[0].axis == own_axis();
    if (!sizes) return inputs;
    Ints own;
    for (const Tensor& result : results_) own.push_back(result.shape()[own_axis()] / kShards);
    inputs[sizes_input] = Tensor::ints(own);
    return inputs;
  }

  Attributes told_attributes(const Shards& of_outputs) const {
    const Sharding& sharding = *row_.traits.sharding;
    Attributes attributes = example_.attributes;
    if (!of_outputs[0].is_split()) return attributes;
    Shape shape = results_[0].shape();
    shape[of_outputs[0].axis] /= kShards;
    if (!sharding.shape_attribute.empty()) {
      attributes.set(std::string(sharding.shape_attribute),
                     Ints(shape.span().begin(), shape.span().end()));
    }
    for (std::string_view heads : sharding.head_attributes) {
      if (heads.empty() || !attributes.has(heads)) continue;
      attributes.set(std::string(heads), attributes.integer(heads, 0) / kShards);
    }
    return attributes;
  }

  // What whole inputs alone make of the result: a bias, say, which one device adds.
  std::vector<Tensor> counted_twice(const Shards& of_inputs) const {
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs.push_back(of_inputs[i].is_whole() ? inputs_[i] : zeros_like(inputs_[i]));
    }
    return results_of(row_, example_, inputs);
  }

  const OpDef& row_;
  Example example_;
  Graph graph_;
  NodeId node_ = kNoNode;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> results_;
};

// Devices draw their own numbers: the results are no shards of one device's.
bool is_random(const OpDef& row, const Example& example) {
  return row.determinism == Determinism::kRandom || example.attributes.number("ratio", 0.0) > 0.0;
}

std::int64_t elements_of(const Example& example) {
  std::int64_t elements = 0;
  for (const ExampleInput& input : example.inputs) elements += input.type.elements();
  return elements;
}

// Ways of an example that the rule accepted, each checked.
int check_example(const OpTable& ops, const OpDef& row, std::string_view text) {
  const ShardedExample sharded(ops, row, text);
  std::set<std::string> seen;
  for (Shards inputs : sharded.ways()) {
    const Shards nothing(sharded.output_count());
    const std::optional<Shards> outputs = sharded.results_for(inputs, nothing);
    for (Shard& shard : inputs) {
      if (shard.is_open()) shard = {};  // not chosen
    }
    if (!outputs || std::ranges::all_of(inputs, &Shard::is_whole)) continue;
    if (!sharded.divides(inputs)) continue;  // the last shard would be padded
    REQUIRE(outputs->size() == sharded.output_count());
    if (seen.insert(text_of(inputs)).second) sharded.check(inputs, *outputs);
  }
  return static_cast<int>(seen.size());
}

}  // namespace

TEST_CASE("sharding: on shards of its inputs an op computes shards of its results") {
  const OpTable ops = standard_ops();
  int ways = 0;
  for (const OpDef* row : ops.rows()) {
    if (sharding_of(*row) == nullptr || row->traits.sharding->exchanges) continue;
    if (row->determinism == Determinism::kRandom) continue;
    int of_row = 0;
    for (std::string_view text : row->examples) {
      const Example example = parse_example(text);
      if (is_random(*row, example) || elements_of(example) > 100000) continue;
      INFO(row->name, " \"", text, "\"");
      try {
        of_row += check_example(ops, *row, text);
      } catch (const Error& error) {
        FAIL_CHECK(error.message());
      }
    }
    CHECK_MESSAGE(of_row > 0, row->name, ": no example is sharded in any way");
    ways += of_row;
  }
  MESSAGE(ways << " ways");
  CHECK(ways > 300);
}

TEST_CASE("sharding: whose shards exchange bytes is known, and why") {
  const std::map<std::string, std::string> why = {
      {"CrossEntropy", "sums over classes"},
      {"CrossEntropyGrad", "labels of classes that others have"},
      {"Gather", "rows that others have"},
      {"GatherGrad", "rows that others have"},
      {"GlobalNorm", "sums of squares"},
  };
  const OpTable ops = standard_ops();
  for (const OpDef* row : ops.rows()) {
    const Sharding* sharding = sharding_of(*row);
    const bool exchanges = sharding != nullptr && sharding->exchanges;
    CHECK_MESSAGE(exchanges == why.contains(std::string(row->name)), row->name);
  }
}

// A device finds zeros where it has no row: the sums of what all find are the rows.
TEST_CASE("sharding: each device looks up the rows that it has") {
  const OpTable ops = standard_ops();
  const OpDef& gather = ops.get("Gather");
  const Example example = parse_example("[8,3], i64[2,5]<8");
  const std::vector<Tensor> inputs = example_inputs(example, 5);
  const auto half = [&](std::int64_t first, std::int64_t zeros_first) {
    const Tensor own = slice_of(inputs[0], 0, first, 4);
    const Tensor none = zeros_like(own);
    const Tensor rows = joined(zeros_first ? std::vector{none, own} : std::vector{own, none}, 0);
    return results_of(gather, example, {rows, inputs[1]})[0];
  };
  const Tensor whole = results_of(gather, example, inputs)[0];
  CHECK(relative_error(added(half(0, 0), half(4, 1)), whole) < kBound);
}

TEST_CASE("sharding: squares of the shards' norms add up") {
  const OpTable ops = standard_ops();
  const OpDef& norm = ops.get("GlobalNorm");
  const Example example = parse_example("[4,3], [6]");
  const std::vector<Tensor> inputs = example_inputs(example, 7);
  double squares = 0.0;
  for (std::int64_t shard = 0; shard < kShards; ++shard) {
    const double own =
        results_of(norm, example,
                   {slice_of(inputs[0], 0, 2 * shard, 2), slice_of(inputs[1], 0, 3 * shard, 3)})[0]
            .values<double>()[0];
    squares += own * own;
  }
  const double whole = results_of(norm, example, inputs)[0].values<double>()[0];
  CHECK(squares == doctest::Approx(whole * whole).epsilon(1e-12));
}

}  // namespace trainscope::test
