// A body's graph, lowered.
#include "engine/plan/body.h"

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// The graph's input whose bytes the output lies in; kNoValue: none.
ValueId input_with(const Program& program, ValueId output) {
  const Graph& graph = program.graph;
  const auto found = std::ranges::find_if(graph.inputs, [&](ValueId input) {
    return input == output || (program.keeps(input) && program.keeps(output) &&
                               program.place(input).buffer == program.place(output).buffer);
  });
  return found == graph.inputs.end() ? kNoValue : *found;
}

void refuse_passed_through(const CallBody& body) {
  const Program& program = *body.program;
  for (int i = 0; i < static_cast<int>(program.graph.outputs.size()); ++i) {
    const bool is_copied = body.trips.carried_to(i) >= 0 || body.trips.is_stacked(i) ||
                           i == body.trips.condition_output;
    const ValueId output = program.graph.outputs[static_cast<std::size_t>(i)];
    require(is_copied || input_with(program, output) == kNoValue, ErrorCode::kBadInput,
            "the output '{}' of a body is one of its inputs: it needs a node in between",
            printable(program.graph.value(output).name));
  }
}

// What is carried from an input to another one waits behind the arena: the first could be carried
// to before it is read.
void add_waiting(CallBody& body) {
  const Program& program = *body.program;
  const std::int64_t unit = program.arena().alignment_bytes;
  body.workspace_bytes = program.arena().bytes;
  for (const Trips::Carried& carried : body.trips.carried) {
    const ValueId from = program.graph.outputs[static_cast<std::size_t>(carried.from)];
    const ValueId to = program.graph.inputs[static_cast<std::size_t>(carried.to)];
    const ValueId input = input_with(program, from);
    if (input == kNoValue || input == to) {
      body.waiting_at.push_back(-1);
      continue;
    }
    body.workspace_bytes = (body.workspace_bytes + unit - 1) / unit * unit;
    body.waiting_at.push_back(body.workspace_bytes);
    body.workspace_bytes += static_cast<std::int64_t>(program.graph.value(from).type.bytes());
  }
}

}  // namespace

CallBody lowered_body(OpBody body, const DeviceHandle& device, const LowerOptions& options) {
  LowerOptions inside = options;
  inside.external_parameters = false;
  inside.keep_inputs = true;
  auto program = std::make_unique<const Program>(lower(std::move(body.graph), device, inside));
  CallBody lowered{.program = std::move(program), .trips = std::move(body.trips)};
  refuse_passed_through(lowered);
  add_waiting(lowered);
  return lowered;
}

}  // namespace trainscope
