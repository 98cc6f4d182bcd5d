// Names, and what the planner and its callers ask of a program.
#include "engine/plan/program.h"

#include "engine/core/error.h"
#include "engine/core/saturating.h"

namespace trainscope {

std::string_view name_of(BufferRole role) {
  switch (role) {
    case BufferRole::kParameter:
      return "parameter";
    case BufferRole::kState:
      return "state";
    case BufferRole::kConstant:
      return "constant";
    case BufferRole::kInput:
      return "input";
    case BufferRole::kGradient:
      return "gradient";
    case BufferRole::kActivation:
      return "activation";
    case BufferRole::kUpdate:
      return "update";
    case BufferRole::kWorkspace:
      return "workspace";
    case BufferRole::kHeld:
      return "held";
  }
  CHECK_INVARIANT(false);
}

std::string_view name_of(CallKind kind) {
  switch (kind) {
    case CallKind::kKernel:
      return "kernel";
    case CallKind::kTransfer:
      return "transfer";
    case CallKind::kAddPartials:
      return "add_partials";
    case CallKind::kStateCopy:
      return "state_copy";
    case CallKind::kProgram:
      return "program";
  }
  CHECK_INVARIANT(false);
}

namespace {

// Whether it computes its node, or the first batch tile of it.
bool computes(const Call& call) {
  return call.kind != CallKind::kStateCopy && call.kind != CallKind::kAddPartials && call.tile <= 0;
}

}  // namespace

std::vector<CallId> calls_by_time(const Program& program) {
  std::vector<CallId> calls;
  for (std::size_t i = 0; i < program.calls.size(); ++i) {
    if (computes(program.calls[i])) calls.push_back(CallId(static_cast<std::int32_t>(i)));
  }
  return calls;
}

std::int64_t workspace_bytes_of(const Program& program, const Call& call) {
  return call.workspace == kNoBuffer ? 0 : program.buffer(call.workspace).bytes;
}

std::vector<std::int64_t> workspaces_of(const Program& program) {
  std::vector<std::int64_t> bytes(program.graph.node_capacity(), 0);
  for (const Call& call : program.calls) {
    if (computes(call)) {
      bytes[static_cast<std::size_t>(call.node)] = workspace_bytes_of(program, call);
    }
  }
  return bytes;
}

memplan::Problem placement_problem(const Program& program, Space space) {
  memplan::Problem problem;
  problem.alignment_bytes = program.space(space).alignment_bytes;
  for (const PlannedBuffer& buffer : program.buffers) {
    if (buffer.space != space) continue;
    problem.buffers.push_back({.id = buffer.label,
                               .lower = buffer.begin,
                               .upper = buffer.end,
                               .size_bytes = buffer.bytes});
  }
  return problem;
}

memplan::Solution placement_of(const Program& program, Space space) {
  const SpacePlan& plan = program.space(space);
  memplan::Solution solution{.height_bytes = plan.bytes,
                             .lower_bound_bytes = plan.lower_bound_bytes,
                             .proven = plan.proven,
                             .method = plan.method};
  for (const PlannedBuffer& buffer : program.buffers) {
    if (buffer.space == space) solution.offsets.push_back(buffer.offset);
  }
  return solution;
}

}  // namespace trainscope
