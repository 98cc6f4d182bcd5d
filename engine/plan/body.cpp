// A body's graph, lowered.
#include "engine/plan/body.h"

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

void refuse_passed_through(const Program& program) {
  const Graph& graph = program.graph;
  for (const ValueId output : graph.outputs) {
    const bool is_input = std::ranges::any_of(graph.inputs, [&](ValueId input) {
      return input == output ||
             (program.keeps(input) && program.place(input).buffer == program.place(output).buffer);
    });
    require(!is_input, ErrorCode::kBadInput,
            "the output '{}' of a body is one of its inputs: it needs a node in between",
            printable(graph.value(output).name));
  }
}

}  // namespace

CallBody lowered_body(OpBody body, const DeviceHandle& device, const LowerOptions& options) {
  LowerOptions inside = options;
  inside.external_parameters = false;
  inside.keep_inputs = true;
  auto program = std::make_unique<const Program>(lower(std::move(body.graph), device, inside));
  refuse_passed_through(*program);
  return {.program = std::move(program),
          .trips_input = body.trips_input,
          .carried = std::move(body.carried)};
}

}  // namespace trainscope
