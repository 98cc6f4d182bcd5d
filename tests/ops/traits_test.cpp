// What the rows say of their ops beside values and shapes: that every row says it, and that it is
// true of the reference kernels.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <variant>

#include "engine/core/error.h"
#include "engine/ir/builder.h"
#include "engine/ops/standard_ops.h"
#include "tests/ops/shown_by.h"
#include "tests/ops/slices.h"
#include "tests/support/op_case.h"

namespace trainscope::test {
namespace {

bool has(const Example& example, int input) {
  return input >= 0 && input < std::ssize(example.inputs) &&
         example.inputs[static_cast<std::size_t>(input)].present;
}

}  // namespace

TEST_CASE("traits: every row says how it is sharded, what it makes of rows, and so on") {
  const OpTable ops = standard_ops();
  for (const OpDef* row : ops.rows()) {
    const OpTraits& traits = row->traits;
    INFO(row->name);
    CHECK_MESSAGE((traits.rows != RowKind::kUnstated), "nothing said of rows of tokens");
    CHECK((traits.rows == RowKind::kView) == row->is_view);
    // Of a composite op there is nothing to shard, to rematerialize or to place.
    const bool planned = row->decompose == nullptr;
    CHECK_MESSAGE(traits.sharding.has_value() == planned, "sharding, or kNoSharding");
    CHECK_MESSAGE((traits.rematerialize != Rematerialize::kUnstated) == planned, "rematerialize");
    CHECK_MESSAGE(traits.ranges.has_value() == planned, "ranges, or kNoRanges");
  }
}

TEST_CASE("traits: every row says of which class its op is, as the rest of the row has it") {
  const OpTable ops = standard_ops();
  for (const OpDef* row : ops.rows()) {
    INFO(row->name);
    const OpClass op_class = row->op_class;
    CHECK_MESSAGE((op_class != OpClass::kUnstated), "nothing said of the class");
    const auto follows = [op_class](bool known, OpClass expected) {
      return !known || op_class == expected;
    };
    CHECK(follows(row->terms != nullptr || row->traits.rows == RowKind::kMatmul, OpClass::kMatmul));
    CHECK(follows(row->traits.rows == RowKind::kAttention, OpClass::kAttention));
    const bool norm = row->traits.rows == RowKind::kNorm || !row->inference_form.empty() ||
                      row->traits.rematerialize == Rematerialize::kNorm;
    CHECK(follows(norm, OpClass::kNorm));
    CHECK(
        follows(row->traits.rows == RowKind::kLoss || row->class_loss != nullptr, OpClass::kLoss));
    CHECK(follows(row->is_view || row->to_host || row->from_host || !row->scatters.empty(),
                  OpClass::kMovement));
    const bool step = !row->rows_form.empty() || !row->dense_form.empty() || row->scales_by_norm;
    CHECK(follows(step || row->sums_squares, OpClass::kOptimizer));
    CHECK(follows(!row->neutral.empty() || row->is_sum || row->accumulates, OpClass::kPointwise));
  }
}

TEST_CASE("traits: what is told of inputs and attributes fits the row") {
  const OpTable ops = standard_ops();
  for (const OpDef* row : ops.rows()) {
    INFO(row->name);
    const auto has_attribute = [row](std::string_view name) {
      return std::ranges::find(row->attributes, name, &AttributeSpec::name) !=
             row->attributes.end();
    };
    CHECK(row->added_input < row->max_inputs);
    CHECK(row->index_input < row->max_inputs);
    CHECK(row->count_input < row->max_inputs);
    if (!row->unadded_form.empty()) CHECK(row->added_input >= 0);
    if (!row->scatters.empty()) CHECK(ops.get(row->scatters).index_input == 1);
    for (int pole : row->poles) CHECK(pole < row->max_inputs);
    if (!row->rows_form.empty()) CHECK(ops.get(row->rows_form).dense_form == row->name);
    if (!row->dense_form.empty()) CHECK(ops.get(row->dense_form).rows_form == row->name);
    CHECK(row->exponent_input < row->max_inputs);
    for (const NeutralOperand& neutral : row->neutral) {
      CHECK((row->min_inputs == 2 && row->max_inputs == 2 && neutral.input < 2));
    }
    if (!row->training_form.empty()) {
      CHECK(ops.get(row->training_form).determinism == row->determinism);
    }
    if (!row->inference_form.empty()) {
      const OpDef& form = ops.get(row->inference_form);
      CHECK(form.inference_form == form.name);
      CHECK((has_attribute("training_mode") && row->max_outputs == 3 && row->min_inputs == 5));
    }
    const Sharding* sharding = sharding_of(*row);
    if (sharding == nullptr) continue;
    CHECK(sharding->shape_input < row->max_inputs);
    CHECK(sharding->sizes_input < row->max_inputs);
    if (!sharding->shape_attribute.empty()) CHECK(has_attribute(sharding->shape_attribute));
    for (std::string_view heads : sharding->head_attributes) {
      if (!heads.empty()) CHECK(has_attribute(heads));
    }
  }
}

TEST_CASE("traits: heads lie along an axis of input 0, and what permutes axes says how") {
  const OpTable ops = standard_ops();
  int packed = 0;
  int permuted = 0;
  for (const OpDef* row : ops.rows()) {
    const Sharding* sharding = sharding_of(*row);
    if (sharding == nullptr || (sharding->packed_axis == nullptr && !sharding->permutes)) continue;
    for (std::string_view text : row->examples) {
      INFO(row->name, " \"", text, "\"");
      const OpCase op_case(*row, text, DType::kF64);
      const OpArgs args = op_case.args();
      const Shape& result = args.outputs[0].shape;
      if (sharding->packed_axis != nullptr) {
        ++packed;
        const int axis = sharding->packed_axis(args);
        REQUIRE((0 <= axis && axis < args.rank(0)));
        CHECK(result[axis] <= args.shape(0)[axis]);
      }
      if (!sharding->permutes) continue;
      ++permuted;
      const auto order = std::get<PermutationParams>(op_case.params()).permutation;
      for (int axis = 0; axis < args.rank(0); ++axis) {
        CHECK(result[axis] == args.shape(0)[order[static_cast<std::size_t>(axis)]]);
      }
    }
  }
  CHECK(packed > 5);
  CHECK(permuted > 5);
}

TEST_CASE("traits: what runs once is in no decomposition") {
  const OpTable ops = standard_ops();
  for (const OpDef* row : ops.rows()) {
    if (row->decompose == nullptr) continue;
    for (std::string_view text : row->examples) {
      INFO(row->name, " \"", text, "\"");
      const Example example = parse_example(text);
      const std::vector<Tensor> inputs = example_inputs(example, 1);
      Graph graph;
      Builder b(graph, ops);
      b.set_provenance({.sources = {}, .pass = "test"});
      std::vector<ValueId> values;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const bool present = example.inputs[i].present;
        values.push_back(present ? b.constant(inputs[i], "x" + std::to_string(i)) : kNoValue);
      }
      const std::vector<ValueId> made =
          b.multi(row->name, values, example.output_count, example.attributes);
      const Node node = graph.node(graph.value(made[0]).producer);  // a copy: the graph grows
      row->decompose(b, node);
      for (NodeId id : graph.order()) {
        const OpDef& op = *graph.node(id).op;
        CHECK_MESSAGE((op.traits.rematerialize != Rematerialize::kOnce), op.name);
      }
    }
  }
}

TEST_CASE("traits: matmuls and convolutions are linear in their first input") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.traits.rematerialize == Rematerialize::kHeavy; },
      [](const OpDef& row, std::string_view, const Example& example) {
        const std::vector<Tensor> inputs = example_inputs(example, 2);
        const auto with_x = [&](const Tensor& x) {
          std::vector<Tensor> changed = inputs;
          changed[0] = x;
          return results_of(row, example, changed)[0];
        };
        const Tensor none = with_x(zeros_like(inputs[0]));
        const Tensor once = added(with_x(inputs[0]), none, -1.0);
        const Tensor twice = added(with_x(added(inputs[0], inputs[0])), none, -1.0);
        CHECK(relative_error(twice, added(once, once)) < 1e-12);
        return once.elements() > 0;
      });
}

TEST_CASE("traits: a norm does not tell how large its input is") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.traits.rematerialize == Rematerialize::kNorm; },
      [](const OpDef& row, std::string_view, const Example& example) {
        Attributes attributes = example.attributes;
        const bool given = attributes.has("training_mode") ||
                           std::ranges::none_of(row.attributes, [](const AttributeSpec& spec) {
                             return spec.name == "training_mode";
                           });
        if (!given || example.inputs[0].type.elements() == 0) return false;
        attributes.set("epsilon", 1e-300);
        std::vector<Tensor> inputs = example_inputs(example, 2);
        const Tensor small = results_of(row, example, inputs, attributes)[0];
        inputs[0] = added(inputs[0], inputs[0], 7.0);
        const Tensor large = results_of(row, example, inputs, attributes)[0];
        CHECK(relative_error(large, small) < 1e-9);
        return true;
      });
}

TEST_CASE("traits: ranges hold the bytes of the slices") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.traits.ranges && *row.traits.ranges != kNoRanges; },
      [](const OpDef& row, std::string_view text, const Example& example) {
        const OpCase op_case(row, text, DType::kF64);
        const ByteRanges ranges = op_case.ranges();
        const std::vector<Tensor> results = results_of(row, example, op_case.inputs());
        const Tensor& whole = ranges.in_output ? results[0] : op_case.inputs()[0];
        bool shown = false;
        for (std::size_t i = 0; i < ranges.offsets.size(); ++i) {
          const Tensor& slice = ranges.in_output ? op_case.inputs()[i] : results[i];
          REQUIRE(ranges.offsets[i] >= 0);
          const auto offset = static_cast<std::size_t>(ranges.offsets[i]);
          REQUIRE(offset + slice.bytes() <= whole.bytes());
          if (slice.bytes() == 0) continue;
          CHECK(std::memcmp(whole.data() + offset, slice.data(), slice.bytes()) == 0);
          shown = true;
        }
        return shown;
      });
}

TEST_CASE("traits: what is known by types is what the op computes") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.known != nullptr; },
      [](const OpDef& row, std::string_view text, const Example& example) {
        const OpCase op_case(row, text, DType::kF64);
        CHECK(same_bytes(row.known(op_case.args()), results_of(row, example, op_case.inputs())[0]));
        return true;
      });
}

TEST_CASE("traits: without its attribute the axis is the one of the row") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.axis.has_value(); },
      [](const OpDef& row, std::string_view, const Example& example) {
        const bool told_axis = example.attributes.has("axis");
        if (told_axis || example.inputs[0].type.shape.rank == 0) return false;
        Attributes told = example.attributes;
        told.set("axis", std::int64_t{*row.axis});
        const std::vector<Tensor> inputs = example_inputs(example, 4);
        CHECK(same_bytes(results_of(row, example, inputs), results_of(row, example, inputs, told)));
        return true;
      });
}

TEST_CASE("traits: sums are sums, and what is added is added") {
  const OpTable ops = standard_ops();
  // Of the op's inputs only those that `keep` takes, zeros for the others.
  const auto with = [](const OpDef& row, const Example& example, auto keep) {
    std::vector<Tensor> inputs = example_inputs(example, 6);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!keep(static_cast<int>(i))) inputs[i] = zeros_like(inputs[i]);
    }
    return results_of(row, example, inputs)[0];
  };
  const auto all = [](int) { return true; };
  for_each_shown(
      ops, [](const OpDef& row) { return row.is_sum; },
      [&](const OpDef& row, std::string_view, const Example& example) {
        Tensor sum = with(row, example, [](int) { return false; });
        for (int i = 0; i < std::ssize(example.inputs); ++i) {
          sum = added(sum, with(row, example, [i](int k) { return k == i; }));
        }
        CHECK(relative_error(sum, with(row, example, all)) < 1e-12);
        return sum.elements() > 0;
      });
  for_each_shown(
      ops, [](const OpDef& row) { return row.accumulates; },
      [&](const OpDef& row, std::string_view, const Example& example) {
        const std::vector<Tensor> inputs = example_inputs(example, 6);
        const bool first = as_ints(inputs[2])[0] == 0;
        const Tensor want = first ? inputs[1] : added(inputs[0], inputs[1]);
        CHECK(relative_error(results_of(row, example, inputs)[0], want) < 1e-15);
        return !first && want.elements() > 0;
      });
  for_each_shown(
      ops, [](const OpDef& row) { return row.added_input >= 0; },
      [&](const OpDef& row, std::string_view, const Example& example) {
        if (!has(example, row.added_input)) return false;
        const int input = row.added_input;
        const Tensor without = with(row, example, [input](int k) { return k != input; });
        const Tensor given = with(row, example, all);
        const Tensor addend = example_inputs(example, 6)[static_cast<std::size_t>(input)];
        bool shown = false;
        for (std::size_t i = 0; i < given.values<double>().size(); ++i) {
          const double before = without.values<double>()[i];
          const double now = given.values<double>()[i];
          if (before <= 0.0 || now <= 0.0) continue;  // behind a Relu nothing could be seen
          CHECK(now - before == doctest::Approx(addend.values<double>()[i]).epsilon(1e-9));
          shown = true;
        }
        return shown;
      });
}

TEST_CASE("traits: copies to and from host memory change nothing") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.to_host || row.from_host; },
      [](const OpDef& row, std::string_view, const Example& example) {
        const std::vector<Tensor> inputs = example_inputs(example, 8);
        CHECK(same_bytes(results_of(row, example, inputs)[0], inputs[0]));
        return inputs[0].elements() > 0;
      });
}

}  // namespace trainscope::test
