// Small models after training issues of ONNX Runtime's tracker: each has the op or the form that
// the issue is about. docs/coming-from-ort.md lists the issues.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/core/tensor.h"
#include "engine/passes/training_options.h"
#include "engine/session.h"

namespace trainscope::test {

// The parts of a model in ONNX's text form.
struct OrtIssue {
  std::string_view issue = {};  // "#22407"; of the examples' repository "examples#185"
  // The first loss by other engines: ONNX Runtime's outputs, or with batch norms those of ONNX's
  // reference evaluator in training form, under PyTorch's loss. 0: dropout draws other numbers.
  double loss_there = 0.0;
  std::string_view about = {};    // what fails there
  std::string_view inputs = {};   // "float[4,3] x, int64[4,5] ids"
  std::string_view outputs = {};  // "float[4,2] y"
  // Initializers, separated by semicolons: "float[3,2] w; int64[2] shape = {2, 3}". Floats without
  // elements are drawn.
  std::string_view weights = {};
  std::string_view nodes = {};  // "{ y = MatMul(x, w) }"
  LossOptions loss = {};
  std::int64_t integers_below = 2;  // elements of integer inputs and labels
  std::string_view opset = "17";    // with other domains after it: "17, \"local\" : 1"
  std::string_view functions = {};  // local ones, after the graph
  bool train_all = false;           // every initializer is asked for as a parameter
};

// Ops without a gradient there.
std::span<const OrtIssue> issues_of_ops();
// Architectures and forms of files.
std::span<const OrtIssue> issues_of_models();

OnnxModel model_of(const OrtIssue& issue);
CompileOptions options_of(const OrtIssue& issue, GraphMode mode);
// Inputs and labels of a compiled program, the same for the same types and names. Floats are
// normal, those of "flags" 0 or 1; integers are below the issue's limit, three of four of a
// "mask" 1.
Batch batch_of(const Compiled& compiled, const OrtIssue& issue);
// Binds the batch, and the step that dropout draws for.
void bind_step(Executor& executor, const Batch& batch);

// Normal elements; those of names that end in "var" lie about 1, as variances.
Tensor drawn(std::string_view name, const TensorType& type);

// One batch over and over.
class SameOrtBatch final : public BatchSource {
 public:
  explicit SameOrtBatch(Batch batch) : batch_(std::move(batch)) {}
  const Batch* next() override { return &batch_; }

 private:
  Batch batch_;
};

}  // namespace trainscope::test
