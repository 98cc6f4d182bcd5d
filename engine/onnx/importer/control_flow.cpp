// ONNX's Loop, Scan and If as Loops: a body is a graph of its own, and no trip is written out.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/composites/composites.h"
#include "engine/onnx/importer/importer.h"
#include "engine/onnx/node_names.h"
#include "engine/onnx/validate.h"

namespace trainscope {
namespace {

constexpr TensorType kNumber{DType::kI64, {}};
constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

const pb::GraphProto& body_of(const Composition& c, std::string_view name) {
  const pb::NodeProto* proto = c.node().proto;
  c.require_supported(proto != nullptr, "it is in a function's body, where graphs are not read");
  for (const pb::AttributeProto& a : proto->attribute()) {
    if (a.name() == name && a.has_g()) return a.g();
  }
  fail(ErrorCode::kBadInput, "{}: there is no graph '{}'", c.label(), name);
}

// A known bool or integer; `absent` where it is not known or left out.
std::int64_t known_number(const Composition& c, std::size_t input, std::int64_t absent) {
  const Tensor* known = c.has(input) ? c.known(input) : nullptr;
  if (known == nullptr) return absent;
  c.require(known->elements() == 1, "input {} is {}, not one element", input,
            type_text(known->type()));
  return convert(*known, DType::kI64).values<std::int64_t>()[0];
}

bool is_known(const Composition& c, std::size_t input) {
  return !c.has(input) || c.known(input) != nullptr;
}

ValueId as_scalar(Composition& c, ValueId v) {
  c.require(c.type(v).elements() == 1, "{} is not one element", type_text(c.type(v)));
  return c.reshape(v, {});
}

// What goes from trip to trip has one type in all of them.
void check_carried(const Composition& c, const Graph& body, ValueId in, ValueId out) {
  const TensorType& before = body.value(in).type;
  const TensorType& after = body.value(out).type;
  c.require(before.dtype == after.dtype, "'{}' goes into a trip as {} and comes out as {}",
            printable(body.value(in).name), type_text(before), type_text(after));
  c.require_supported(before == after,
                      "the shape of '{}' changes from trip to trip ({} goes in, {} comes out), and "
                      "all shapes must be known before the run",
                      printable(body.value(in).name), type_text(before), type_text(after));
}

ValueId reversed(Composition& c, ValueId v, int axis) {
  return c("Slice", {v, c.ints({-1}), c.ints({-kUnlimited}), c.ints({axis}), c.ints({-1})});
}

// `axis` becomes the first one, or the first one becomes `axis`.
enum class Move : std::uint8_t { kToFront, kFromFront };
ValueId moved(Composition& c, ValueId v, int axis, Move move) {
  if (axis == 0) return v;
  Ints permutation;
  for (int a = 0; a < c.shape(v).rank; ++a) permutation.push_back(a);
  if (move == Move::kToFront) {
    std::rotate(permutation.begin(), permutation.begin() + axis, permutation.begin() + axis + 1);
  } else {
    std::rotate(permutation.begin(), permutation.begin() + 1, permutation.begin() + axis + 1);
  }
  return c.transpose(v, std::move(permutation));
}

std::int64_t entry(const Composition& c, std::string_view list, std::size_t i) {
  const Ints entries = c.attributes().integers(list);
  return i < entries.size() ? entries[i] : 0;
}

// Under names that no later node of the model has.
ValueId zeros_of(Composition& c, const TensorType& type) {
  const ValueId zero = c.constant(Tensor(TensorType{.dtype = type.dtype, .shape = {}}));
  const std::span<const std::int64_t> dims = type.shape.span();
  return c("Expand", {zero, c.ints(Ints(dims.begin(), dims.end()))});
}

}  // namespace

bool Importer::add_control_flow(const SourceNode& node) {
  if (is_stage_ || !node.domain.empty() || !is_control_flow(node.op)) return false;
  if (is_scan_of_batch(node)) {
    add_scan_of_batch(node);
    return true;
  }
  builder_.set_provenance(provenance_);
  Composition c({.graph = graph_,
                 .builder = builder_,
                 .scope = scope_,
                 .provenance = provenance_,
                 .shared = shared_constants_},
                node);
  if (node.op == "If") {
    add_if(c);
  } else if (node.op == "Loop") {
    add_loop(c);
  } else {
    add_scan(c);
  }
  return true;
}

// The Loop's outputs: what is carried, what is stacked, and behind them what its gradient asks for:
// what each trip had of the carried values that it reads.
std::vector<ValueId> Importer::build_loop(Composition& c, Importer& body, const LoopParts& parts) {
  std::vector<ValueId> inside{parts.number_inside};
  std::vector<ValueId> around{parts.trips};
  const auto append = [](std::vector<ValueId>& list, const std::vector<ValueId>& more) {
    list.insert(list.end(), more.begin(), more.end());
  };
  append(inside, parts.carried_inside);
  append(inside, parts.sliced_inside);
  append(around, parts.carried);
  append(around, parts.sliced);
  for (const auto& [captured, value] : body.captured_) around.push_back(value);
  std::vector<ValueId> results = parts.carried_on;
  append(results, parts.stacked);
  for (const ValueId v : parts.carried_inside) {
    if (!body.graph_.value(v).uses.empty()) results.push_back(v);
  }
  if (parts.condition != kNoValue) results.push_back(parts.condition);
  const std::size_t outputs = results.size();
  return c.multi("Loop", std::move(around), outputs,
                 {{"body", body.finished_body(std::move(inside), std::move(results))},
                  {"carried", static_cast<std::int64_t>(parts.carried.size())},
                  {"sliced", static_cast<std::int64_t>(parts.sliced.size())},
                  {"max_trips", parts.most},
                  {"condition", std::int64_t{parts.condition != kNoValue}}});
}

// --- Loop ----------------------------------------------------------------------------------------

// The number of trips and the room for them; false where they are not known before the run.
bool Importer::plan_trips(Composition& c, bool all_run, LoopParts& parts) const {
  const bool are_known = is_known(c, 0) && is_known(c, 1);
  std::int64_t bound = std::max<std::int64_t>(0, known_number(c, 0, kUnlimited));
  if (known_number(c, 1, 1) == 0) bound = 0;
  const bool is_exact = are_known && bound < kUnlimited && (all_run || bound == 0);
  if (is_exact) {
    parts.trips = c.constant(Tensor::scalar(bound));
    parts.most = bound;
    return true;
  }
  parts.trips = c.has(0) ? as_scalar(c, c.cast(c.input(0), DType::kI64))
                         : c.constant(Tensor::scalar(kUnlimited));
  if (c.has(1)) {
    const ValueId first = as_scalar(c, c.input(1));
    parts.trips = c("Where", {first, parts.trips, c.constant(Tensor::scalar(std::int64_t{0}))});
  }
  parts.most = std::min(bound, options_.max_trips.value_or(kUnlimited));
  if (parts.most <= kMostTripsUnasked || options_.max_trips) return false;
  try {
    fail_unsupported("{}: how many trips there are is known only when the step runs", c.label());
  } catch (Error& error) {
    error.hint("say for how many there is to be room: --max-trips N");
    throw;
  }
}

void Importer::add_loop(Composition& c) {
  const SourceNode& node = c.node();
  const pb::GraphProto& body = body_of(c, "body");
  const std::size_t carried = node.inputs.size() - std::min<std::size_t>(2, node.inputs.size());
  const auto outputs = static_cast<std::size_t>(body.output_size());
  c.require(static_cast<std::size_t>(body.input_size()) == 2 + carried,
            "its graph has {} inputs, {} are expected", body.input_size(), 2 + carried);
  c.require(outputs >= 1 + carried && node.outputs.size() < outputs,
            "its graph has {} outputs for {} carried values and {} outputs", outputs, carried,
            node.outputs.size());
  Importer inner(*this, body, node);
  LoopParts parts;
  parts.number_inside = inner.add_body_input(body.input(0).name(), kNumber);
  inner.add_body_constant(body.input(1).name(), Tensor::scalar(true));
  for (std::size_t i = 0; i < carried; ++i) {
    parts.carried.push_back(c.input(2 + i));
    parts.carried_inside.push_back(inner.add_body_input(body.input(static_cast<int>(2 + i)).name(),
                                                        c.type(parts.carried.back())));
  }
  inner.add_body_nodes();
  for (std::size_t i = 0; i < carried; ++i) {
    parts.carried_on.push_back(inner.body_result(body.output(static_cast<int>(1 + i)).name()));
    check_carried(c, inner.graph_, parts.carried_inside[i], parts.carried_on[i]);
  }
  const ValueId condition = inner.body_result(body.output(0).name());
  const Tensor* known = inner.graph_.value(condition).data.get();
  const bool all_run = known != nullptr && convert(*known, DType::kBool).values<bool>()[0];
  const bool is_exact = plan_trips(c, all_run, parts);
  if (!all_run && !is_exact) parts.condition = inner.builder_.reshape(condition, {});
  std::vector<std::size_t> stacked;  // outputs of the node
  for (std::size_t i = carried; i < node.outputs.size(); ++i) {
    if (!c.wants(i)) continue;
    if (!is_exact) {
      scope_.refuse(node.outputs[i],
                    fmt::format("{}: the length of '{}' depends on the data, because the number of "
                                "trips does, and all shapes must be known before the run",
                                c.label(), printable(node.outputs[i])));
      continue;
    }
    stacked.push_back(i);
    parts.stacked.push_back(inner.body_result(body.output(static_cast<int>(1 + i)).name()));
  }
  const std::vector<ValueId> made = build_loop(c, inner, parts);
  for (std::size_t i = 0; i < carried; ++i) c.result(i, made[i]);
  for (std::size_t k = 0; k < stacked.size(); ++k) c.result(stacked[k], made[carried + k]);
}

// --- Scan ----------------------------------------------------------------------------------------

void Importer::add_scan(Composition& c) {
  const SourceNode& node = c.node();
  const pb::GraphProto& body = body_of(c, "body");
  const auto scanned = static_cast<std::size_t>(c.attributes().integer("num_scan_inputs", 0));
  const auto inputs = static_cast<std::size_t>(body.input_size());
  const auto outputs = static_cast<std::size_t>(body.output_size());
  c.require(scanned >= 1 && scanned <= node.inputs.size() && inputs == node.inputs.size(),
            "its graph has {} inputs, there are {}, of which {} are scanned", inputs,
            node.inputs.size(), scanned);
  const std::size_t carried = inputs - scanned;
  c.require(outputs >= carried && node.outputs.size() <= outputs,
            "its graph has {} outputs for {} carried values and {} outputs", outputs, carried,
            node.outputs.size());
  Importer inner(*this, body, node);
  LoopParts parts;
  for (std::size_t i = 0; i < inputs; ++i) {
    ValueId v = c.input(i);
    TensorType type = c.type(v);
    if (i >= carried) {
      const std::size_t k = i - carried;
      const int axis = normalized_axis(entry(c, "scan_input_axes", k), type.shape.rank);
      v = moved(c, v, axis, Move::kToFront);
      if (entry(c, "scan_input_directions", k) != 0) v = reversed(c, v, 0);
      const Shape whole = c.shape(v);
      c.require(k == 0 || whole[0] == parts.most, "its scanned inputs have {} and {} slices",
                parts.most, whole[0]);
      parts.most = whole[0];
      type.shape = Shape(whole.span().subspan(1));
    }
    (i < carried ? parts.carried : parts.sliced).push_back(v);
    (i < carried ? parts.carried_inside : parts.sliced_inside)
        .push_back(inner.add_body_input(body.input(static_cast<int>(i)).name(), type));
  }
  parts.number_inside = inner.add_body_input(inner.scope_.fresh("trip"), kNumber);
  parts.trips = c.constant(Tensor::scalar(parts.most));
  inner.add_body_nodes();
  for (std::size_t i = 0; i < outputs; ++i) {
    const ValueId v = inner.body_result(body.output(static_cast<int>(i)).name());
    (i < carried ? parts.carried_on : parts.stacked).push_back(v);
    if (i < carried) check_carried(c, inner.graph_, parts.carried_inside[i], v);
  }
  const std::vector<ValueId> made = build_loop(c, inner, parts);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    ValueId v = made[i];
    if (i >= carried && c.wants(i)) {
      const std::size_t k = i - carried;
      if (entry(c, "scan_output_directions", k) != 0) v = reversed(c, v, 0);
      const int axis = normalized_axis(entry(c, "scan_output_axes", k), c.shape(v).rank);
      v = moved(c, v, axis, Move::kFromFront);
    }
    c.result(i, v);
  }
}

// --- If ------------------------------------------------------------------------------------------

// What the branch makes where `trips` is 1; where it is 0: `otherwise`, or zeros.
std::vector<ValueId> Importer::run_branch(Composition& c, const pb::GraphProto& branch,
                                          ValueId trips, const std::vector<ValueId>& otherwise) {
  Importer inner(*this, branch, c.node());
  LoopParts parts{.trips = trips, .most = 1};
  parts.number_inside = inner.add_body_input(inner.scope_.fresh("trip"), kNumber);
  inner.add_body_nodes();
  for (std::size_t i = 0; i < c.node().outputs.size(); ++i) {
    const ValueId v = inner.body_result(branch.output(static_cast<int>(i)).name());
    const TensorType type = inner.graph_.value(v).type;
    c.require_supported(otherwise.empty() || c.type(otherwise[i]) == type,
                        "output {} is {} in one branch and {} in the other, and all shapes must be "
                        "known before the run",
                        i, type_text(type),
                        otherwise.empty() ? "" : type_text(c.type(otherwise[i])));
    parts.carried_on.push_back(v);
    parts.carried_inside.push_back(
        inner.add_body_input(inner.scope_.fresh(fmt::format("otherwise_{}", i)), type));
    parts.carried.push_back(otherwise.empty() ? zeros_of(c, type) : otherwise[i]);
  }
  std::vector<ValueId> made = build_loop(c, inner, parts);
  made.resize(c.node().outputs.size());
  return made;
}

// One branch is known to be taken: its nodes stand here.
void Importer::write_out(Composition& c, const pb::GraphProto& branch) {
  scope_.open_branch();
  for (const pb::TensorProto& tensor : branch.initializer()) {
    Tensor elements = read_tensor(tensor, tensor.name(), model_.external_files());
    const DType dtype = dtype_of(elements.dtype());
    if (dtype != elements.dtype()) elements = convert(elements, dtype);
    scope_.name_in_branch(tensor.name(), scope_.constant(std::move(elements), tensor.name()));
  }
  NodeNames names(branch);
  for (int i = 0; i < branch.node_size(); ++i) {
    const std::string name = names.take(branch.node(i), i);
    SourceNode inside = source_node(branch.node(i), fmt::format("{}/{}", c.node().name, name));
    inside.source = c.node().source;
    for (std::string& input : inside.inputs) input = scope_.resolved(input);
    for (std::string& output : inside.outputs) {
      if (output.empty()) continue;
      std::string fresh = scope_.fresh(fmt::format("{}/{}", c.node().name, output));
      scope_.name_in_branch(output, fresh);
      output = std::move(fresh);
    }
    add_source_node(std::move(inside));
  }
  for (std::size_t i = 0; i < c.node().outputs.size(); ++i) {
    if (!c.wants(i)) continue;
    add_source_node({.op = "Identity",
                     .domain = {},
                     .opset = 13,
                     .name = fmt::format("{}/Identity_{}", c.node().name, i),
                     .source = c.node().source,
                     .inputs = {scope_.resolved(branch.output(static_cast<int>(i)).name())},
                     .outputs = {c.node().outputs[i]},
                     .attributes = {},
                     .depth = c.node().depth});
  }
  scope_.close_branch();
}

// Otherwise two loops of which one runs once and the other one not at all.
void Importer::add_if(Composition& c) {
  const pb::GraphProto& taken = body_of(c, "then_branch");
  const pb::GraphProto& other = body_of(c, "else_branch");
  for (const pb::GraphProto* branch : {&taken, &other}) {
    const auto outputs = static_cast<std::size_t>(branch->output_size());
    c.require(branch->input_size() == 0 && outputs >= c.node().outputs.size(),
              "a branch has {} inputs and {} outputs, {} are expected", branch->input_size(),
              outputs, c.node().outputs.size());
  }
  if (c.has(0) && is_known(c, 0)) return write_out(c, known_number(c, 0, 1) != 0 ? taken : other);
  const ValueId trips = c.cast(as_scalar(c, c.input(0)), DType::kI64);
  const ValueId rest = c("Sub", {c.constant(Tensor::scalar(std::int64_t{1})), trips});
  const std::vector<ValueId> first = run_branch(c, taken, trips, {});
  const std::vector<ValueId> results = run_branch(c, other, rest, first);
  for (std::size_t i = 0; i < results.size(); ++i) c.result(i, results[i]);
}

}  // namespace trainscope
