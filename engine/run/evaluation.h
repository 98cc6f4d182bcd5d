// The loss over the whole validation split, every example once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/core/progress.h"
#include "engine/run/forward_programs.h"
#include "engine/session.h"

namespace trainscope {

// The validation part of a dataset, and how it is read.
struct ValidationData {
  std::shared_ptr<const Dataset> data;
  std::int64_t batch = 1;
  LossOptions loss = {};      // over classes: accuracy is counted too
  BatchAxes batch_axes = {};  // of the model's inputs
  Watch watch = {};           // learns of each batch, work "evaluation", and may ask to give up
};

// A last batch that is not full is padded with examples that the loss ignores, else evaluated at
// its own size, else (a fixed batch and labels that cannot be ignored) left out. None when nothing
// is left, or when it was stopped.
std::optional<Evaluation> evaluate_validation(ForwardPrograms& programs,
                                              const ValidationData& validation);

// The same on the parameters of a session; `import` is what the session was made with.
std::optional<Evaluation> evaluate_validation(Session& session, const ImportOptions& import,
                                              const ValidationData& validation);

// Examples of the validation part that no batch can hold: the model fixes its batch, and labels
// that are numbers cannot be padded.
std::int64_t examples_left_out(const ValidationData& validation, const OnnxModel& model);
// What to say about them; empty when there are none.
std::string left_out_text(const ValidationData& validation, const OnnxModel& model);

// `import` for another batch size; none when the model fixes it.
std::optional<ImportOptions> with_batch(const OnnxModel& model, const ImportOptions& import,
                                        std::int64_t batch, const BatchAxes& axes = {});

}  // namespace trainscope
