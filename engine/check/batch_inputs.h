// A batch's tensors as a model's inputs: the sizes that they give it, and whether all are there.
#pragma once

#include "engine/exec/executor.h"
#include "engine/onnx/import.h"
#include "engine/passes/training_options.h"
#include "engine/train/data.h"

namespace trainscope {

// Gives `import` the shape of each input as the batch's tensor of that name has it. A symbol of an
// input without a tensor takes its size from the other tensors, the labels among them: their shape
// is that of the output that the loss reads, by class without the axis of the classes. kBadInput,
// naming the tensors, where they contradict the model or each other or leave a dimension open.
void bind_batch_sizes(const OnnxModel& model, const LossOptions& loss, const Batch& batch,
                      ImportOptions& import);

// kBadInput naming an input of the model, or the labels, that the program reads but the batch does
// not hold.
void require_inputs(const Executor& executor, const OnnxModel& model, const LossOptions& loss,
                    const Batch& batch);

}  // namespace trainscope
