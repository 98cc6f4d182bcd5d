// A body's graph, lowered.
#include "engine/plan/body.h"

#include <utility>

namespace trainscope {

CallBody lowered_body(OpBody body, const DeviceHandle& device, const LowerOptions& options) {
  LowerOptions inside = options;
  inside.external_parameters = false;
  inside.keep_inputs = true;
  return {.program = std::make_unique<const Program>(lower(std::move(body.graph), device, inside)),
          .trips_input = body.trips_input,
          .carried = std::move(body.carried)};
}

}  // namespace trainscope
