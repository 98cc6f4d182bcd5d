// A phase is from its first call to the first one of the next, or to the end of the step's part.
#include "engine/run/phase_teller.h"

namespace trainscope {

void PhaseTeller::enter(const Call& call) {
  if (inside_ == call.phase) return;
  if (inside_) to_->phase_end(*inside_);
  inside_ = call.phase;
  to_->phase_begin(call.phase);
}

// Those of a section are told by several threads: its beginning is told by one. Calls of a body
// have positions in another program, and the phase of the call around them.
void PhaseTeller::call_begin(const CallEvent& event) {
  if (event.within != kNoCall) return;
  const Call& call = program_->call(event.call);
  if (call.tile < 0) enter(call);
}

void PhaseTeller::section_begin(std::size_t section) {
  enter(program_->call(program_->sections[section].begin));
}

void PhaseTeller::part_end(StepPart /*part*/) {
  if (inside_) to_->phase_end(*inside_);
  inside_.reset();
}

void PhaseTeller::part_failed(StepPart /*part*/) { inside_.reset(); }

}  // namespace trainscope
