// Forward steps over all examples, and the rows of their outputs.
#include "engine/run/prediction.h"

#include <algorithm>

#include "engine/core/batch_layout.h"
#include "engine/core/error.h"

namespace trainscope {
namespace {

// Examples first, whatever axis they are in a batch.
Shape row_shape(const Shape& batch, int axis, std::int64_t examples) {
  Shape shape{examples};
  for (int a = 0; a < batch.rank; ++a) {
    if (a != axis) shape.push_back(batch[a]);
  }
  return shape;
}

// The outputs that have a row for each example of a batch. Throws kUsage where none has.
std::vector<Prediction> predictions_of(const Executor& executor, const OnnxModel& model,
                                       const PredictedData& from, std::int64_t examples) {
  std::vector<Prediction> predictions;
  for (const ModelTensor& output : model.outputs()) {
    const Graph& graph = executor.program().graph;
    const ValueId id = graph.find(output.name);
    if (id == kNoValue || !executor.has(output.name)) continue;
    const TensorType& type = graph.value(id).type;
    const auto named = from.batch_axes.find(output.name);
    const int axis = named == from.batch_axes.end() ? 0 : named->second;
    if (axis >= type.shape.rank || type.shape[axis] != from.batch) continue;
    Prediction prediction{.name = output.name, .rows = Tensor(), .axis = axis};
    prediction.rows = Tensor({.dtype = type.dtype, .shape = row_shape(type.shape, axis, examples)});
    predictions.push_back(std::move(prediction));
  }
  require(!predictions.empty(), ErrorCode::kUsage,
          "no output of the model has a row for each of {} examples: there is nothing to write",
          from.batch);
  return predictions;
}

// The first `count` examples of a batch become the rows from `first` on.
void take_rows(const Tensor& batch, std::int64_t first, std::int64_t count, Prediction& to) {
  const BatchLayout layout(batch.type(), to.axis);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto row = static_cast<std::size_t>(first + i);
    layout.read_row(batch.data(), i, to.rows.data() + row * layout.row_bytes());
  }
}

}  // namespace

std::vector<Prediction> predict(ForwardPrograms& programs, const OnnxModel& model,
                                const PredictedData& from) {
  Executor& executor = programs.executor(GraphMode::kInference);
  const std::int64_t examples = from.data->examples(Split::kValidation);
  std::vector<Prediction> predictions = predictions_of(executor, model, from, examples);
  Batch batch;
  std::vector<std::int64_t> indices(static_cast<std::size_t>(from.batch));
  for (std::int64_t first = 0; first < examples; first += from.batch) {
    for (std::int64_t i = 0; i < from.batch; ++i) {
      indices[static_cast<std::size_t>(i)] = std::min(first + i, examples - 1);
    }
    from.data->read(Split::kValidation, 0, indices, batch);
    bind_batch(executor, batch);
    executor.run_micro_step();
    for (Prediction& prediction : predictions) {
      take_rows(executor.read(prediction.name), first, std::min(from.batch, examples - first),
                prediction);
    }
  }
  return predictions;
}

}  // namespace trainscope
