// Op row: Loop, which runs a graph of its own as often as the step says. ONNX's Loop, Scan and If
// are read as Loops.
#include "engine/ops/control/loop.h"

#include <algorithm>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/saturating.h"
#include "engine/core/text.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/straight_through.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

const Graph& body_of(const Attributes& attributes) {
  const SharedGraph body = attributes.graph("body");  // the attributes hold it too
  require(body != nullptr, ErrorCode::kBadInput, "there is no graph 'body'");
  return *body;
}

int count_of(const Attributes& attributes, std::string_view name, int most) {
  const std::int64_t count = attributes.integer(name, 0);
  require(count >= 0 && count <= most, ErrorCode::kBadInput, "{} is {}, the body has {} for it",
          name, count, most);
  return static_cast<int>(count);
}

TensorType stack_of(const TensorType& slice, std::int64_t trips) {
  require(slice.shape.rank < kMaxRank, ErrorCode::kBadInput,
          "{} from each trip would have more than {} axes", type_text(slice), kMaxRank);
  Shape shape{trips};
  for (const std::int64_t size : slice.shape.span()) shape.push_back(size);
  return {slice.dtype, checked_shape(shape)};
}

void require_operand(int input, const TensorType& given, const TensorType& expected) {
  require(given == expected, ErrorCode::kBadInput, "input {} is {}, the body takes {}", input,
          type_text(given), type_text(expected));
}

void check_loop_inputs(const OpArgs& args, const LoopForm& form) {
  require(args.input_count() == form.input_count(), ErrorCode::kBadInput,
          "{} inputs given, the body has {}", args.input_count(), form.input_count());
  for (int i = 0; i < args.input_count(); ++i) {
    require(args.has(i), ErrorCode::kBadInput, "input {} is missing", i);
    const bool is_sliced = i >= form.first_sliced() && i < form.first_outer();
    const TensorType& inside = form.input_type(i);
    require_operand(i, args.type(i), is_sliced ? stack_of(inside, form.most) : inside);
  }
}

Types loop_shape(const OpArgs& args) {
  const LoopForm form(args.attributes);
  check_loop_inputs(args, form);
  require(args.output_count == form.output_count(), ErrorCode::kBadInput,
          "{} outputs asked for, the body has {}", args.output_count, form.output_count());
  Types types;
  for (int i = 0; i < form.carried; ++i) {
    const TensorType& type = form.output_type(i);
    require(
        type == args.type(1 + i), ErrorCode::kBadInput,
        "'{}' is carried from trip to trip: {} goes in, {} comes out, and both must be the same",
        printable(form.body.value(form.body.inputs[static_cast<std::size_t>(1 + i)]).name),
        type_text(args.type(1 + i)), type_text(type));
    types.push_back(type);
  }
  for (int i = 0; i < form.stacked; ++i) {
    types.push_back(stack_of(form.output_type(form.carried + i), form.most));
  }
  if (form.has_condition) types.push_back({DType::kI64, {}});
  return types;
}

OpBody loop_body(const OpArgs& args) {
  const LoopForm form(args.attributes);
  return {.graph = form.body, .trips = form.trips()};
}

// Of all the trips that there is room for.
Cost loop_cost(const OpArgs& args) {
  const LoopForm form(args.attributes);
  Cost trip;
  for (const NodeId id : form.body.order()) {
    const Node& node = form.body.node(id);
    const Cost cost = cost_of(*node.op, *NodeArgs(form.body, node));
    add_saturating(trip.flops, cost.flops);
    add_saturating(trip.bytes_read, cost.bytes_read);
    add_saturating(trip.bytes_written, cost.bytes_written);
  }
  Cost all = with_flops(args, saturating_multiply(trip.flops, form.most));
  add_saturating(all.bytes_read, saturating_multiply(trip.bytes_read, form.most));
  add_saturating(all.bytes_written, saturating_multiply(trip.bytes_written, form.most));
  return all;
}

}  // namespace

LoopForm::LoopForm(const Attributes& attributes)
    : body(body_of(attributes)),
      carried(count_of(attributes, "carried", std::min(input_count() - 1, output_count()))),
      sliced(count_of(attributes, "sliced", input_count() - 1 - carried)),
      has_condition(attributes.integer("condition", 0) != 0),
      backwards(attributes.integer("reverse", 0) != 0),
      most(attributes.integer("max_trips", 0)) {
  const TensorType number{DType::kI64, {}};
  require(input_count() > 0 && input_type(0) == number, ErrorCode::kBadInput,
          "the body's first input is not the number of the trip");
  require(most >= 0, ErrorCode::kBadInput, "max_trips is {}", most);
  stacked = output_count() - carried - (has_condition ? 1 : 0);
  require(stacked >= 0, ErrorCode::kBadInput, "the body has no output for the condition");
  if (!has_condition) return;
  require(output_type(output_count() - 1) == TensorType{DType::kBool, {}}, ErrorCode::kBadInput,
          "the condition is {}, not one bool", type_text(output_type(output_count() - 1)));
  require(!backwards, ErrorCode::kBadInput, "a loop with a condition cannot run backwards");
}

const TensorType& LoopForm::input_type(int i) const {
  return body.value(body.inputs[static_cast<std::size_t>(i)]).type;
}

const TensorType& LoopForm::output_type(int i) const {
  return body.value(body.outputs[static_cast<std::size_t>(i)]).type;
}

Trips LoopForm::trips() const {
  Trips trips{.trips_input = 0, .most = most, .backwards = backwards, .is_numbered = true};
  for (int i = 0; i < carried; ++i) trips.carried.push_back({.from = i, .to = 1 + i});
  for (int i = 0; i < sliced; ++i) trips.sliced.push_back(first_sliced() + i);
  for (int i = 0; i < stacked; ++i) trips.stacked.push_back(carried + i);
  if (has_condition) trips.condition_output = output_count() - 1;
  return trips;
}

std::vector<OpDef> loop_ops() {
  return {
      {.name = "Loop",
       .doc =
           "Runs the graph `body` trip after trip: the number of trips, an i64 scalar, which may "
           "be known only when the step runs; inputs that trips carry on to the next one; "
           "inputs [max_trips, ...] of which each trip has a slice; inputs that are the same in "
           "all trips -> what was carried last, and what all trips made [max_trips, ...], 0 "
           "behind the last one. The body's inputs are the number of the trip and one for each "
           "input, its outputs what is carried, what is stacked and, with a condition, whether "
           "another trip follows; then the last output is how many there were.",
       .domain = kTrainscopeDomain,
       .min_inputs = 1,
       .max_inputs = kVariadic,
       .max_outputs = kVariadic,
       .attributes = {{"body", "the graph"},
                      {"carried", "how many inputs are carried; 0"},
                      {"sliced", "how many inputs are sliced; 0"},
                      {"max_trips", "for how many trips there is room"},
                      {"condition",
                       "1: the body's last output says whether another one follows; 0"},
                      {"reverse", "1: the last trip runs first; 0"},
                      {kStraightThrough,
                       "1: Round, Floor, Ceil and Sign of the body pass gradients on; 0"}},
       .shape = loop_shape,
       .gradient = loop_gradient,
       .body = loop_body,
       .cost = loop_cost,
       .op_class = OpClass::kOther,
       .traits = kWholeValues},
  };
}

}  // namespace trainscope
