// Tells the listeners of a run when phases begin and end, from the calls of its steps.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "engine/exec/execution_events.h"
#include "engine/plan/program.h"
#include "engine/run/run_events.h"

namespace trainscope {

class PhaseTeller final : public ExecutionEvents {
 public:
  PhaseTeller(std::shared_ptr<const Program> program, std::shared_ptr<RunEvents> to)
      : program_(std::move(program)), to_(std::move(to)) {}

  void call_begin(const CallEvent& event) override;
  void section_begin(std::size_t section) override;
  void part_end(StepPart part) override;
  void part_failed(StepPart part) override;

 private:
  void enter(const Call& call);

  const std::shared_ptr<const Program> program_;
  const std::shared_ptr<RunEvents> to_;
  std::optional<Phase> inside_;
};

}  // namespace trainscope
