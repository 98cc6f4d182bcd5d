// What to build around a forward graph: loss, gradients, optimizer. Read by the passes.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainscope {

enum class LossKind : std::uint8_t {
  kCrossEntropy,
  kNll,
  kMse,
  kBceWithLogits,
  kL1,
  kHuber,
  kFocal,
  kCtc,
  kOutput
};
inline constexpr LossKind kLossKinds[] = {
    LossKind::kCrossEntropy,  LossKind::kNll, LossKind::kMse,
    LossKind::kBceWithLogits, LossKind::kL1,  LossKind::kHuber,
    LossKind::kFocal,         LossKind::kCtc, LossKind::kOutput};
std::string_view name_of(LossKind kind);
// Cross entropy and negative log-likelihood: labels are numbers of classes.
constexpr bool is_by_class(LossKind kind) {
  return kind == LossKind::kCrossEntropy || kind == LossKind::kNll;
}

// `--loss KIND:output=logits,labels=labels,...`; kOutput: the output is the loss itself. Several
// with numbers before them, `mse:output=y + 0.5*output:z`, are a weighted sum.
struct LossOptions {
  LossKind kind = LossKind::kCrossEntropy;
  std::string output = {};        // empty: the graph's first output
  std::string labels = "labels";  // name of the new graph input, or of an input that fits
  std::int64_t class_axis = -1;
  std::int64_t ignore_index = -100;
  // Of kCrossEntropy: a weight for each class (empty: all 1), and how much of a label's
  // probability all classes share.
  std::vector<double> class_weights = {};
  double label_smoothing = 0.0;
  double delta = 1.0;            // kHuber: from which difference on it is linear
  double gamma = 2.0;            // kFocal: how much less examples count that are right already
  double alpha = 0.25;           // kFocal: weight of labels 1, that of labels 0 is 1 - alpha
  std::int64_t blank = 0;        // kCtc: the class that stands for no label
  int time_axis = 0;             // kCtc: of the output, 0 of [T, N, C] or 1 of [N, T, C]
  std::int64_t most_labels = 0;  // kCtc: labels are [N, most_labels]
  bool zero_infinity = false;    // kCtc: examples that no path can spell count 0
  double weight = 1.0;           // of this term in the sum
  std::vector<LossOptions> further = {};  // the other terms of the sum, without further ones
};

// What stands between the terms in --loss.
inline constexpr std::string_view kBetweenLosses = " + ";
// All terms of the sum, in their order.
std::vector<const LossOptions*> terms_of_loss(const LossOptions& loss);
// "mse(y)", or the name of the output that is the loss: what a term is called beside others.
std::string term_name(const LossOptions& term);

// Inputs of the graph that kCtc adds besides the labels, both [N]: how many time steps of each
// example count, and how many labels.
inline constexpr std::string_view kInputLengths = "input_lengths";
inline constexpr std::string_view kLabelLengths = "label_lengths";

enum class OptimizerKind : std::uint8_t {
  kSgd,
  kAdam,
  kAdamW,
  kAdamWHuggingFace,
  kLamb,
  kRmsProp,
  kLion,
  kPlugin  // OptimizerOptions::step says which
};
// Our own.
inline constexpr OptimizerKind kOptimizerKinds[] = {
    OptimizerKind::kSgd,   OptimizerKind::kAdam,
    OptimizerKind::kAdamW, OptimizerKind::kAdamWHuggingFace,
    OptimizerKind::kLamb,  OptimizerKind::kRmsProp,
    OptimizerKind::kLion};
// "sgd", "adam", "adamw", "adamw_hf", "lamb", "rmsprop", "lion"; "plugin".
std::string_view name_of(OptimizerKind kind);

// Parameters whose name matches the glob use these instead of the optimizer's own; the last
// matching group wins.
struct ParameterGroup {
  std::string pattern;
  std::optional<double> weight_decay = {};  // none: what the parameter has without the group
  double learning_rate_scale = 1.0;
};

// An update rule of a plugin: a node of its op for each parameter (include/trainscope/plugin.h).
struct PluginStep {
  std::string name;  // of the optimizer
  std::string op;
  std::string domain;
  std::vector<std::string> states;
};

// AdamW and Lion decay by lr * weight_decay; SGD, Adam and RMSprop add weight_decay * p to the
// gradient (as PyTorch does), LAMB to the direction.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double momentum = 0.0;  // SGD, RMSprop
  bool nesterov = false;  // SGD
  double beta1 = 0.9;     // all but SGD and RMSprop
  double beta2 = 0.999;   // ... RMSprop: of the mean of squares, alpha in PyTorch
  double epsilon = 1e-8;
  bool bias_correction = true;
  bool centered = false;   // RMSprop: by the variance of the gradients, not their mean square
  double ratio_min = 0.0;  // LAMB: limits of its ratio of norms
  double ratio_max = std::numeric_limits<double>::infinity();
  double weight_decay = 0.0;
  bool decay_matrices_only = false;  // no decay for parameters of fewer than two dimensions
  double clip_norm = 0.0;            // 0: no clipping by the global norm
  // Each parameter changes as soon as its gradient is there, which then needs no memory until the
  // end of the step. Without clipping and accumulation only; the same bits.
  bool in_backward = false;
  // Rows of an embedding that a batch does not name stay as they are, with their moments, also
  // where momentum, moments or decay would change them. SGD without these changes no other rows
  // anyway.
  bool sparse_embeddings = false;
  std::vector<ParameterGroup> groups = {};
  PluginStep step = {};  // of kPlugin
};

// A loss of the model, a scalar output, that trains parameters of its own: those whose name matches
// the glob, by an optimizer of its own.
struct AlternatingLoss {
  std::string output;
  std::string pattern;
  OptimizerOptions optimizer = {};
};

enum class GraphMode : std::uint8_t {
  kInference,  // forward in inference form
  kEvaluate,   // inference form and the loss
  kGradients,  // training form, loss, gradients
  kTrain,      // ... and the optimizer
};

// What mixed precision stores activations and computes matmuls in; kF32: there is none.
// Parameters, their gradients, statistics and losses stay f32. kTf32: all values are f32's, and
// matmuls round their factors to TF32, on devices that have such kernels.
enum class StepPrecision : std::uint8_t { kF32, kTf32, kBF16, kF16 };
inline constexpr StepPrecision kStepPrecisions[] = {StepPrecision::kF32, StepPrecision::kTf32,
                                                    StepPrecision::kBF16, StepPrecision::kF16};
std::string_view name_of(StepPrecision precision);  // "f32", "tf32", "bf16", "fp16"

struct TrainingOptions {
  GraphMode mode = GraphMode::kTrain;
  LossOptions loss = {};
  // Into so many chunks the rows of the last linear layer and of a cross entropy over it are split,
  // when training: the scores of one chunk are in memory at a time.
  std::int64_t loss_chunks = 1;
  // The last linear layer computes no scores for labels of a cross entropy that do not count. Only
  // of kTrain, in one chunk; the scores are no output then.
  bool skip_ignored = false;
  // The model's input [batch, sequence] that is not 0 for real tokens: what is computed token by
  // token leaves the others out. Only of kTrain; empty: it does not.
  std::string skip_padding = {};
  StepPrecision precision = StepPrecision::kF32;
  // The model's own Round, Floor, Ceil and Sign pass gradients on as they are, as if each were the
  // identity. Their derivatives are 0, so that otherwise nothing before them is trained.
  bool straight_through = false;
  // Batch norms normalize by their running statistics and leave them as they are, as PyTorch's
  // modules do in eval(); otherwise by the statistics of the batch, which update the running ones.
  bool running_statistics = false;
  OptimizerOptions optimizer = {};
  // In a step these losses train their parameters one after the other, each on what the updates
  // before it left (adversarial nets); `loss` is their sum. Only of kTrain; empty: there is one.
  std::vector<AlternatingLoss> alternation = {};
  // Averages of the parameters over the steps: average = decay * average + (1 - decay) * parameter
  // after each step, from the first parameters on. 0: none are kept.
  double ema_decay = 0.0;
  // Gradients of so many batches, on each of so many ranks, are averaged before an update. With
  // several ranks the program needs a device of one (engine/ranks/ranked_device.h).
  std::int64_t micro_batches = 1;
  std::int64_t ranks = 1;
  std::uint64_t seed = 0;  // of dropout
  std::vector<std::string> gradient_of =
      {};                       // values other than parameters whose gradient is wanted
  bool keep_gradients = false;  // parameters' gradients stay readable after the step
  bool keep_outputs = false;    // the model's outputs, too; only of kTrain they need not

  // Micro-batches of a step on all ranks together.
  std::int64_t all_micro_batches() const { return micro_batches * ranks; }
};

}  // namespace trainscope
