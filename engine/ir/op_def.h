// OpDef: everything the engine knows about one op, in one row; OpTable: the rows by name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/op_class.h"
#include "engine/ir/attributes.h"
#include "engine/ir/class_loss.h"
#include "engine/ir/graph.h"
#include "engine/ir/op_traits.h"
#include "kernels/api/params.h"
#include "kernels/api/tensor_view.h"

namespace trainscope {

class Builder;
inline constexpr std::string_view kOnnxDomain = "";
inline constexpr std::string_view kTrainscopeDomain = "ai.trainscope";

// What is known of a node at compile time; handed to the shape, params, cost and in_place rules.
struct OpArgs {
  const Attributes& attributes;
  std::span<const TensorType> inputs;        // of absent inputs: meaningless
  std::span<const Tensor* const> constants;  // elements of input i when known, else null
  std::span<const bool> present;             // whether optional input i is given
  std::span<const TensorType> outputs;       // empty while the shape rule runs
  int output_count = 1;                      // outputs of the node, absent ones included

  int input_count() const { return static_cast<int>(inputs.size()); }
  bool has(int i) const { return i < input_count() && present[static_cast<std::size_t>(i)]; }
  const TensorType& type(int i) const { return inputs[static_cast<std::size_t>(i)]; }
  const Shape& shape(int i) const { return type(i).shape; }
  int rank(int i) const { return shape(i).rank; }
  // Input i as integers; fails with kBadInput when its elements are not known before the run.
  Ints constant_ints(int i) const;
  // Input i's single element as a number; `absent` when the input is left out.
  double constant_number(int i, double absent) const;
  // Attribute `name` brought into [0, rank); fails with kBadInput when outside [-rank, rank).
  int axis(std::string_view name, std::int64_t absent, int rank) const;
};
// axis in [-rank, rank) -> [0, rank), else kBadInput.
int normalized_axis(std::int64_t axis, int rank);

struct Cost {
  std::int64_t flops = 0;
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
};

// What a gradient rule works with. x and y are the node's inputs and outputs, dy the gradients of
// its outputs (kNoValue: that output does not influence the loss). The result has one entry per
// input (kNoValue: no gradient flows there). Only values that the rule mentions are kept alive.
struct GradArgs {
  Builder& b;
  const Node& node;
  std::span<const ValueId> x;
  std::span<const ValueId> y;
  std::span<const ValueId> dy;

  const TensorType& type(ValueId v) const;
  // Whether anything asks for the gradient of input i: rules may skip the others (kNoValue).
  bool wants(int i) const { return wanted[static_cast<std::size_t>(i)]; }
  std::span<const bool> wanted;
};

struct InPlace {
  int output = 0;
  int input = 0;  // its bytes may become the output's when nothing reads it later
};

// An operand of two that changes nothing: x + 0, 1 * x, x / 1.
struct NeutralOperand {
  int input = 0;        // where all elements of this one are `number`, the result is the other one
  double number = 0.0;  // if that has the type of the result
};

// How a node runs a graph of its own when the step does. The graph's inputs and outputs are those
// of the node, in their order; its inputs keep what they hold from trip to trip, but for those that
// say otherwise here.
struct Trips {
  // After each trip the elements of output `from` go to input `to`; the node's output is what is
  // there after the last one.
  struct Carried {
    int from = 0;
    int to = 0;
  };

  int trips_input = -1;      // of the node: an i64 scalar, how often the graph runs; -1: once
  std::int64_t most = -1;    // trips that there is room for; -1: any number
  bool backwards = false;    // the last trip is the first that runs
  bool is_numbered = false;  // the graph has the number of the trip where the node has trips_input
  std::vector<Carried> carried = {};
  std::vector<int> sliced = {};   // inputs of which a trip has its slice along axis 0 of the node's
  std::vector<int> stacked = {};  // outputs that the node has one behind the other along a new axis
  // The graph's bool scalar, whether another trip follows; the node has there, as an i64 scalar,
  // how many there were. -1: all of them.
  int condition_output = -1;

  int carried_to(int output) const;  // the input; -1: the output is not carried
  bool is_sliced(int input) const;
  bool is_stacked(int output) const;
};

struct OpBody {
  Graph graph;
  Trips trips = {};
};

struct AttributeSpec {
  std::string_view name;
  std::string_view doc;
  std::string_view formerly = {};  // the name that it had in older stage files; empty: none
};

// Of the rows of plugins some of them hold what the plugin said (engine/plugin); our own hold a
// function.
using ShapeRule = std::function<std::vector<TensorType>(const OpArgs&)>;
using ParamsRule = std::function<Params(const OpArgs&)>;
using CostRule = std::function<Cost(const OpArgs&)>;
using InPlaceRule = std::function<std::vector<InPlace>(const OpArgs&)>;
using GradientRule = std::function<std::vector<ValueId>(const GradArgs&)>;
using BodyRule = OpBody (*)(const OpArgs&);
using DecomposeRule = std::function<std::vector<ValueId>(Builder&, const Node&)>;
using KnownRule = Tensor (*)(const OpArgs&);
using TermsRule = std::int64_t (*)(const OpArgs&);
using ClassLossRule = ClassLoss (*)(const OpArgs&);

enum class Determinism : std::uint8_t { kAlways, kRandom };  // kRandom: has a seed, replayable
enum class Differentiable : std::uint8_t { kYes, kNo };

// How an op takes part in mixed precision: what the pass `precision` does with its float inputs and
// outputs where a step stores them in two bytes.
enum class Precision : std::uint8_t {
  kF32,      // runs in f32
  kLow,      // matmuls: always in the low type
  kFollow,   // in the low type where its inputs are in it already; parameters and constants adapt
  kRounded,  // reads f32, its results are stored in the low type: lookups in parameters
};

// Fields keep this order in every row (designated initialisers); all but name, shape, op_class,
// traits and examples may be left out. The op suite (tests/ops) tests every row from its examples.
//
// Example text: "inputs; attributes". Inputs are separated by ", ", each
// `[dtype]shape[constraint]`:
// "[2,3]" is a tensor of the suite's float type with normal random elements; "i64[4]<5" integers in
// [0,5); "bool[2]" coin flips; "[3]>0" positive, "[3]>1" above 1; "[2,8]~" well separated (no ties,
// away from 0); "i64[2]={2,-1}" a constant known at compile time; "-" an optional input left out.
// Attributes are "axis=1 pads={0,0,1,1} mode='edge' alpha=0.5"; the reserved "outputs=3" asks for
// three outputs.
struct OpDef {
  std::string_view name;
  std::string_view doc = {};
  std::string_view domain = kOnnxDomain;
  std::string_view formerly = {};  // the name that it had in older stage files; empty: none
  int min_inputs = 1;
  int max_inputs = 1;  // kVariadic: any number
  int max_outputs = 1;
  std::vector<AttributeSpec> attributes = {};
  ParamsRule params = nullptr;
  ShapeRule shape = nullptr;
  GradientRule gradient = nullptr;    // absent: through `decompose`, else not differentiable
  DecomposeRule decompose = nullptr;  // the op written with simpler ops: its meaning
  BodyRule body = nullptr;            // instead of a kernel: a graph that is planned by itself
  CostRule cost = nullptr;            // absent: 0 FLOPs, bytes of all inputs and outputs
  InPlaceRule in_place = nullptr;     // absent: never
  bool is_view = false;               // output 0 is input 0's bytes under another shape
  bool to_host = false;               // its results lie in host memory, not in the arena
  bool from_host = false;             // reads host memory
  bool is_sum = false;                // the result is the sum of all inputs
  bool accumulates = false;  // the result is input 0, a state, plus input 1: over micro-batches
  int added_input = -1;  // is added to what the op makes of the others (before its Relu); -1: none
  // The op that makes of the other inputs what input `added_input` is added to; none: there is
  // none.
  std::string_view unadded_form = {};
  // Along which the op works unless its attribute `axis` names another; none: it has no such axis.
  std::optional<int> axis = {};
  int index_input = -1;  // its integers name slices of input 0 along the axis; -1: none
  // The op whose results, the gradient of them, this one adds up where its input 1 names them: the
  // gradient of a lookup. To zeros, or to input 2.
  std::string_view scatters = {};
  bool counts_rows =
      false;             // output 0 numbers rows, those that count first; output 1 says how many
  int count_input = -1;  // how many stored rows of input 0 count, the others being 0; -1: all
  bool keeps_integers = false;  // output 0 is the numbers of input 0, perhaps of another type
  bool keeps_elements = false;  // output 0 is input 0 where both have the same type
  // A function of steps, whose gradient is 0 between them: what a straight-through estimator takes
  // for the identity.
  bool piecewise_constant = false;
  // Its gradient is said beside it, whatever it computes, and it stays until gradients are made.
  bool replaces_gradient = false;
  std::vector<NeutralOperand> neutral = {};
  int exponent_input = -1;    // the input that is the exponent of a power; -1: none
  bool sums_squares = false;  // the result follows from the sum of all squares of its inputs
  bool of_scores = false;     // a loss that takes the logarithms of softmax of input 0 itself
  ClassLossRule class_loss = nullptr;  // of a cross entropy over classes; absent: it is none
  int divisor_input = -1;              // what a sum of losses is divided by, a scalar; -1: by none
  bool sample_variance = false;  // the running variance is of the sample: over one element less
  // Of matmuls of inputs 0 and 1: products in the sums that an element of output 0 is made of.
  TermsRule terms = nullptr;
  // Inputs where zeros may make the result, or a gradient, infinite or not a number: divisors.
  std::vector<int> poles = {};
  KnownRule known = nullptr;  // the result, where it follows from the types of the inputs alone
  Determinism determinism = Determinism::kAlways;
  // kNo: integer or shape-like results; gradients stop here without an error.
  Differentiable differentiable = Differentiable::kYes;
  Precision precision = Precision::kF32;
  std::vector<int> f32_inputs = {};  // stay f32 where the op itself runs in the low type
  // The op whose result is the same in f32, not rounded to the low type of the inputs; the op's own
  // name: itself with the attribute upcast=1.
  std::string_view upcast_form = {};
  // What the pass `training_form` makes of an op that does not do the same in training. Of a random
  // op: the one that draws its numbers from the step's counter.
  std::string_view training_form = {};
  // Of a norm by the batch in training, and otherwise by inputs 3 and 4, running statistics that
  // outputs 1 and 2 carry on in training (attribute training_mode): the op that it is outside
  // training, perhaps itself.
  std::string_view inference_form = {};
  // Of an optimizer's step: the op that changes only the rows that a batch names, and back.
  std::string_view rows_form = {};
  std::string_view dense_form = {};
  bool scales_by_norm = false;            // the same: no row's change follows from that row alone
  OpClass op_class = OpClass::kUnstated;  // every row says
  OpTraits traits = {};  // shards, rows, rematerialization, bytes inside bytes: every row says
  std::vector<std::string_view> examples = {};
  double tolerance_f32 = 1e-5;  // relative L2 error against the f64 kernel
};
inline constexpr int kVariadic = 1 << 20;

// Whether a node is of this op. For patterns of nodes; what an op is like is said by its row.
inline bool is_op(const Node& node, std::string_view domain, std::string_view name) {
  return node.op->name == name && node.op->domain == domain;
}

// Null where the op works on whole values only.
inline const Sharding* sharding_of(const OpDef& op) {
  return op.traits.sharding && op.traits.sharding->rule ? &*op.traits.sharding : nullptr;
}

// Rows by (domain, name). Filled once by engine/ops (standard_ops()), then const.
class OpTable {
 public:
  void add(std::vector<OpDef> rows);
  // By its name, or by the one that it had formerly; null: there is none.
  const OpDef* find(std::string_view name, std::string_view domain = kOnnxDomain) const;
  // The row by name in any domain, ONNX's first; our own code asks, so that there is one.
  const OpDef& get(std::string_view name) const;
  std::vector<const OpDef*> rows() const;  // sorted by domain and name

 private:
  std::map<std::pair<std::string, std::string>, OpDef, std::less<>> rows_;
};

// The dtype under which the kernel table holds the node's kernel: bf16 or f16 where an input or
// output has it, else the first float output's, else the first float input's, else the first
// input's (a node without inputs: its output's).
DType kernel_dtype(std::span<const TensorType> inputs, std::span<const TensorType> outputs);

// The rule's answer, or the default for a row without one.
Cost cost_of(const OpDef& op, const OpArgs& args);

// OpArgs of a node, with the storage its spans point to.
class NodeArgs {
 public:
  NodeArgs(const Graph& graph, const Node& node);
  const OpArgs& operator*() const { return args_; }
  const OpArgs* operator->() const { return &args_; }
  NodeArgs(const NodeArgs&) = delete;

 private:
  std::vector<TensorType> inputs_, outputs_;
  std::vector<const Tensor*> constants_;
  std::unique_ptr<bool[]> present_;
  OpArgs args_;
};

}  // namespace trainscope
