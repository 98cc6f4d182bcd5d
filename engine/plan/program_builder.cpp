// Kernels, lifetimes, placement, calls.
#include "engine/plan/program_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/saturating.h"
#include "engine/core/text.h"
#include "engine/ir/op_def.h"
#include "engine/plan/body.h"
#include "engine/plan/calls.h"
#include "engine/plan/kernel_call.h"
#include "memplan/validate.h"

namespace trainscope {
namespace {

TensorView shape_only(const Graph& graph, ValueId v) {
  if (v == kNoValue) return {.type = {}, .data = nullptr, .present = false};
  const Value& value = graph.value(v);
  TensorView view{.type = value.type, .data = nullptr};
  bool fixed = value.kind == ValueKind::kConstant || value.kind == ValueKind::kNode;
  if (fixed && value.data) view = value.data->view();
  return view;
}

std::vector<TensorView> shapes_only(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<TensorView> views;
  for (ValueId v : values) views.push_back(shape_only(graph, v));
  return views;
}

DType dtype_of(const Graph& graph, const Node& node) {
  auto types = [&graph](const std::vector<ValueId>& values) {
    std::vector<TensorType> list;
    for (ValueId v : values) {
      if (v != kNoValue) list.push_back(graph.value(v).type);
    }
    return list;
  };
  return kernel_dtype(types(node.inputs), types(node.outputs));
}

// The first role of the list that one of the values has.
BufferRole role_of(const Graph& graph, ValueId v) {
  const Value& value = graph.value(v);
  switch (value.kind) {
    case ValueKind::kParameter:
      return BufferRole::kParameter;
    case ValueKind::kState:
      return BufferRole::kState;
    case ValueKind::kConstant:
      return BufferRole::kConstant;
    case ValueKind::kInput:
      return BufferRole::kInput;
    case ValueKind::kNode:
      break;
  }
  const Node& producer = graph.node(value.producer);
  if (producer.phase == Phase::kUpdate) return BufferRole::kUpdate;
  const bool rematerialized = producer.provenance.pass == kRematerializedBy;
  return producer.phase == Phase::kForward || rematerialized ? BufferRole::kActivation
                                                             : BufferRole::kGradient;
}

}  // namespace

ProgramBuilder::ProgramBuilder(Graph graph, DeviceHandle device, const LowerOptions& options)
    : options_(options) {
  program_.graph = std::move(graph);
  program_.device = std::move(device);
  program_.runs = options.runs;
  program_.threads = options.threads;
  if (program_.device == nullptr) return;
  for (const Space space : {Space::kDevice, Space::kHost}) {
    program_.space(space).alignment_bytes = program_.device->space(space).alignment_bytes;
  }
}

ProgramBuilder::ProgramBuilder(const Program& placed) : has_buffers_(true) {
  options_.runs = placed.runs;
  options_.threads = placed.threads;
  program_.graph = placed.graph;
  program_.device = placed.device;
  program_.runs = placed.runs;
  program_.threads = placed.threads;
  program_.values = placed.values;
  for (const Space space : {Space::kDevice, Space::kHost}) {
    program_.space(space).alignment_bytes = placed.space(space).alignment_bytes;
  }
  program_.times = placed.times;
  program_.update_time = placed.update_time;
  program_.persistent_bytes = placed.persistent_bytes;
  for (const PlannedBuffer& buffer : placed.buffers) {
    if (buffer.role != BufferRole::kWorkspace) program_.buffers.push_back(buffer);
  }
  for (const CallId id : calls_by_time(placed)) {
    const Call& call = placed.call(id);
    launches_.push_back({.node = call.node,
                         .kernel = call.kernel,
                         .others = call.others,
                         .params = call.params,
                         .prepared = call.prepared,
                         .body = call.body,
                         .workspace_bytes = workspace_bytes_of(placed, call)});
  }
  for (const Call& call : placed.calls) {
    if (call.kind != CallKind::kStateCopy) continue;
    copies_.push_back({call.inputs[0].value, call.outputs[0].value, call.phase});
  }
}

namespace {

// Parameters stay f32 in mixed precision: a file that stores them in less is no way to it.
std::string low_precision_hint(const Graph& graph) {
  for (ValueId id : graph.values_of(ValueKind::kParameter)) {
    const DType dtype = graph.value(id).type.dtype;
    if (dtype != DType::kF16 && dtype != DType::kBF16) continue;
    return fmt::format(
        "the model's parameters are {0}: export it in float32, and train with --precision {1} for "
        "activations and matmuls in {0}",
        name_of(dtype), dtype == DType::kF16 ? "fp16" : "bf16");
  }
  return {};
}

}  // namespace

void ProgramBuilder::choose_kernels() {
  std::map<std::string, std::vector<std::string>> missing;
  for (NodeId id : phase_order(program_.graph)) {
    const Node& node = program_.graph.node(id);
    if (node.op->is_view) continue;
    options_.watch.check();
    Launch launch{.node = id};
    if (!at_node(node, [&] { return prepare(node, launch); })) {
      const std::string why = launch.others.refused.empty()
                                  ? ""
                                  : fmt::format(" ({})", refusals_text(launch.others.refused));
      std::string dtype(name_of(dtype_of(program_.graph, node)));
      missing[fmt::format("{} for {}{}", node.op->name, dtype, why)].push_back(node.name);
    }
    launches_.push_back(std::move(launch));
  }
  if (missing.empty()) return;
  Error error(ErrorCode::kBadInput, "the model needs kernels that do not exist");
  error.mark_unsupported();
  for (const auto& [kernel, nodes] : missing) {
    error.at(fmt::format("{}: {} node{}: {}", kernel, nodes.size(), nodes.size() == 1 ? "" : "s",
                         printable(join(nodes, ", "), 400)));
  }
  throw error.hint(low_precision_hint(program_.graph))
      .hint("`trainscope inspect MODEL` lists the model's ops and types");
}

bool ProgramBuilder::prepare(const Node& node, Launch& launch) const {
  NodeArgs args(program_.graph, node);
  if (node.op->params) launch.params = node.op->params(*args);
  if (node.op->body) {
    launch.body = std::make_shared<const CallBody>(
        lowered_body(node.op->body(*args), program_.device, options_));
    launch.workspace_bytes = launch.body->workspace_bytes;
    return true;
  }
  std::vector<TensorView> inputs = shapes_only(program_.graph, node.inputs);
  std::vector<TensorView> outputs = shapes_only(program_.graph, node.outputs);
  for (TensorView& view : outputs) view.data = nullptr;
  const PrepareArgs prepare_args{
      .params = launch.params, .inputs = inputs, .outputs = outputs, .threads = options_.threads};
  KernelChoiceResult choice =
      choose_kernel(program_.device->kernels(), {.op = node.op->name,
                                                 .dtype = dtype_of(program_.graph, node),
                                                 .args = prepare_args,
                                                 .choice = options_.kernels,
                                                 .same_bits = options_.same_bits,
                                                 .tf32 = options_.tf32});
  launch.kernel = choice.kernel;
  launch.others = std::move(choice.others);
  if (launch.kernel == nullptr) return false;
  launch.prepared = prepared_for(*launch.kernel, prepare_args);
  launch.workspace_bytes = static_cast<std::int64_t>(launch.prepared.workspace_bytes);
  if (!options_.runs) launch.prepared.state.reset();
  return true;
}

void ProgramBuilder::leave_out_kernels(std::span<const std::int64_t> workspaces) {
  for (NodeId id : phase_order(program_.graph)) {
    if (program_.graph.node(id).op->is_view) continue;
    const auto index = static_cast<std::size_t>(id);
    launches_.push_back(
        {.node = id, .workspace_bytes = index < workspaces.size() ? workspaces[index] : 0});
  }
}

void ProgramBuilder::hold(std::string label, std::int64_t bytes) {
  held_ = {.role = BufferRole::kHeld, .label = std::move(label), .bytes = bytes};
}

void ProgramBuilder::tile(std::span<const TimeSection> sections) {
  sections_.assign(sections.begin(), sections.end());
}

void ProgramBuilder::find_buffers() {
  const Graph& graph = program_.graph;
  const std::vector<NodeId> order = phase_order(graph);
  program_.times = std::ssize(launches_);
  std::vector<std::int64_t> workspaces;
  for (const Launch& launch : launches_) {
    workspaces.push_back(launch.workspace_bytes);
    const bool update = graph.node(launch.node).phase == Phase::kUpdate;
    if (!update) program_.update_time = std::ssize(workspaces);
  }
  const Lifetimes lifetimes = find_lifetimes(graph, order, options_, workspaces);
  copies_ = lifetimes.copies;
  for (const Lifetimes::Buffer& b : lifetimes.buffers) {
    const memplan::Buffer placeable =
        placeable_buffer(b, std::max<std::int64_t>(1, program_.times));
    program_.buffers.push_back({.role = role_of(graph, b.value),
                                .value = b.value,
                                .label = graph.value(b.value).name,
                                .space = b.host ? Space::kHost : Space::kDevice,
                                .external = b.external,
                                .persistent = b.persistent,
                                .begin = placeable.lower,
                                .end = placeable.upper,
                                .bytes = placeable.size_bytes});
    if (b.persistent && !b.external) {
      add_saturating(program_.persistent_bytes, static_cast<std::int64_t>(b.bytes));
    }
  }
  program_.values.resize(graph.value_capacity());
  for (std::size_t v = 0; v < program_.values.size(); ++v) {
    const std::int32_t buffer = lifetimes.buffer_of[v];
    if (buffer < 0) continue;
    program_.values[v] = {.buffer = BufferId(buffer), .offset = lifetimes.offset_of[v]};
    PlannedBuffer& in = program_.buffers[static_cast<std::size_t>(buffer)];
    const BufferRole role = role_of(graph, ValueId(static_cast<std::int32_t>(v)));
    if (role <= BufferRole::kInput) in.role = std::min(in.role, role);
  }
  has_buffers_ = true;
}

void ProgramBuilder::add_workspaces() {
  program_.workspace_bytes = 0;
  for (std::size_t time = 0; time < launches_.size(); ++time) {
    Launch& launch = launches_[time];
    program_.workspace_bytes = std::max(program_.workspace_bytes, launch.workspace_bytes);
    if (launch.workspace_bytes == 0) continue;
    launch.workspace = BufferId(static_cast<std::int32_t>(program_.buffers.size()));
    program_.buffers.push_back({.role = BufferRole::kWorkspace,
                                .label = "workspace of " + program_.graph.node(launch.node).name,
                                .begin = static_cast<std::int64_t>(time),
                                .end = static_cast<std::int64_t>(time) + 1,
                                .bytes = launch.workspace_bytes});
  }
  if (held_ && held_->bytes > 0) {
    held_->end = program_.update_time;
    program_.buffers.push_back(*held_);
  }
}

// What touches a section lives as long as it does.
void ProgramBuilder::live_through_sections() {
  for (PlannedBuffer& buffer : program_.buffers) {
    if (buffer.space == Space::kHost) continue;
    for (const TimeSection& section : sections_) {
      if (buffer.end <= section.begin || section.end <= buffer.begin) continue;
      buffer.begin = std::min(buffer.begin, section.begin);
      buffer.end = std::max(buffer.end, section.end);
    }
  }
}

// The message of a placement that failed; empty otherwise.
std::string ProgramBuilder::place(Space space) {
  const memplan::Problem problem = placement_problem(program_, space);
  if (space == Space::kHost && problem.buffers.empty()) return {};
  const memplan::Result result = memplan::solve(
      problem,
      {.seconds = options_.seconds, .threads = options_.threads, .stop = options_.watch.stop});
  options_.watch.check();
  if (result.status != memplan::Status::kPlaced) return result.message;
  const memplan::Solution& solution = result.solution;
  CHECK_INVARIANT(memplan::validate(problem, solution).empty());
  SpacePlan& plan = program_.space(space);
  plan.bytes = solution.height_bytes;
  plan.lower_bound_bytes = solution.lower_bound_bytes;
  plan.proven = solution.proven;
  plan.method = solution.method;
  auto offset = solution.offsets.begin();
  for (PlannedBuffer& buffer : program_.buffers) {
    if (buffer.space == space) buffer.offset = *offset++;
  }
  return {};
}

std::string ProgramBuilder::place() {
  if (!has_buffers_) find_buffers();
  add_workspaces();
  live_through_sections();
  if (std::string failure = place(Space::kDevice); !failure.empty()) return failure;
  return place(Space::kHost);
}

Program ProgramBuilder::build() {
  const std::string failure = place();
  require(failure.empty(), ErrorCode::kOutOfMemory, "the memory plan failed: {}",
          printable(failure, 400));
  make_calls(program_, launches_, sections_, copies_);
  return std::move(program_);
}

std::optional<Program> ProgramBuilder::try_build() {
  if (!place().empty()) return std::nullopt;
  make_calls(program_, launches_, sections_, copies_);
  return std::move(program_);
}

}  // namespace trainscope
