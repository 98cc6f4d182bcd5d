// eval: the loss of a model on data, or text that it writes.
#include <fmt/format.h>

#include <cmath>

#include "cli/command.h"
#include "cli/data/data_fields.h"
#include "cli/data/data_request.h"
#include "cli/flags/loss_spec.h"
#include "cli/flags/training_flags.h"
#include "cli/source.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/model_warnings.h"
#include "engine/run/evaluation.h"
#include "engine/run/forward_programs.h"
#include "engine/run/sampling.h"

namespace trainscope {
namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

constexpr Flag kEvalFlags[] = {
    {.name = "data",
     .value = "SPEC",
     .help = "As for train; its validation split counts (validation=1: all). Default: the run's"},
    {.name = "sample",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Write N characters with a run that was trained on text",
     .minimum = 1,
     .maximum = 1 << 24},
    {.name = "prompt", .value = "TEXT", .help = "What the sample follows"},
    {.name = "temperature",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "0.8",
     .help = "Of the sample; 0: always the likeliest character",
     .minimum = 0},
};

struct Evaluating {
  const Invocation& invocation;  // with the run's options
  const Source& source;
  const OnnxModel& model;
  LossOptions loss;
  Sizes sizes;
  ForwardPrograms& programs;
};

bool is_text_run(const Source& source) {
  return source.is_run() && source.run().manifest().data.get_or<std::string>("kind", "") == "text";
}

Vocabulary run_vocabulary(const Source& source) {
  return Vocabulary::from_json(source.run().manifest().data.at("vocabulary"));
}

// Only then its exponential is a perplexity.
bool is_log_likelihood(const LossOptions& loss) {
  const bool is_alone = loss.further.empty() && loss.weight == 1.0;
  return is_alone && is_by_class(loss.kind) && loss.class_weights.empty() &&
         loss.label_smoothing == 0.0;
}

void evaluate_data(const Evaluating& e, Outcome& outcome) {
  DatasetOptions wanted =
      dataset_options(e.programs.compiled(GraphMode::kEvaluate), e.model, e.loss, e.sizes);
  wanted.seed = e.invocation.seed();
  const DataRequest request = data_request(e.invocation.settings());
  const std::string& source = request.source;
  if (e.source.is_run()) take_from_training(e.source.run().manifest().data, wanted);
  const std::shared_ptr<const Dataset> data = open_data(request, std::move(wanted));
  const ValidationData validation{
      .data = data, .batch = e.sizes.batch, .loss = e.loss, .batch_axes = e.sizes.batch_axes};
  const std::string left_out = left_out_text(validation, e.model);
  const std::optional<Evaluation> result = evaluate_validation(e.programs, validation);
  require(result.has_value(), ErrorCode::kBadInput, "data '{}' have no examples to evaluate: {}",
          printable(source), left_out.empty() ? "they all train" : left_out);
  if (!left_out.empty()) e.invocation.log().warning("{}", left_out);
  outcome.facts.set("loss", result->loss);
  outcome.facts.set("examples", result->examples);
  outcome.text +=
      fmt::format("loss        {:.6g} over {} examples\n", result->loss, result->examples);
  if (const std::optional<double> accuracy = result->accuracy()) {
    outcome.facts.set("accuracy", *accuracy);
    outcome.text += fmt::format("accuracy    {:.6g}: {} of {} labels\n", *accuracy,
                                result->counted.correct, result->counted.labels);
  }
  if (!is_log_likelihood(e.loss)) return;
  outcome.facts.set("perplexity", std::exp(result->loss));
  outcome.text += fmt::format("perplexity  {:.6g}\n", std::exp(result->loss));
}

// Control characters other than line ends shown as escapes.
std::string printable_lines(const std::string& text) {
  std::string shown;
  for (std::string_view line : split(text, '\n')) {
    shown += printable(line, kMaxLineBytes);
    shown += '\n';
  }
  return shown;
}

// Without a prompt a line end, or else the vocabulary's first character.
std::vector<std::int64_t> prompt_ids(const Vocabulary& vocabulary, const std::string& prompt) {
  std::string text = prompt;
  const std::int64_t first[] = {0};
  if (text.empty()) {
    const std::string all = vocabulary.to_json().as_string();
    text = all.find('\n') == std::string::npos ? vocabulary.decode(first) : "\n";
  }
  const std::vector<std::uint16_t> ids = vocabulary.encode(text);
  return {ids.begin(), ids.end()};
}

void sample(const Evaluating& e, Outcome& outcome) {
  if (!is_text_run(e.source)) {
    throw Error(ErrorCode::kUsage, "--sample needs the folder of a run that was trained on text")
        .hint("train with --data text:FILE, then trainscope eval RUN --sample 200");
  }
  const Settings& settings = e.invocation.settings();
  const Vocabulary vocabulary = run_vocabulary(e.source);
  const std::string prompt = settings.text_or_empty("prompt");
  SamplingOptions options{.input = {},
                          .output = e.loss.output,
                          .ids = static_cast<std::int64_t>(vocabulary.size()),
                          .count = settings.integer("sample"),
                          .temperature = settings.number("temperature"),
                          .seed = e.invocation.seed()};
  for (const ModelTensor& input : e.model.inputs()) {
    const bool ids = input.dtype == DType::kI64 || input.dtype == DType::kI32;
    if (ids && options.input.empty()) options.input = input.name;
  }
  require(!options.input.empty(), ErrorCode::kUsage, "the model has no integer input");
  options.prompt = prompt_ids(vocabulary, prompt);
  const std::string text = vocabulary.decode(sample_ids(e.programs, options));
  outcome.facts.set("sample", text);
  outcome.text += printable_lines(prompt + text);
}

Outcome run_eval(const Invocation& invocation) {
  const Source source = Source::open(invocation.argument(0));
  const Invocation settled = source.settle(invocation);
  const Settings& settings = settled.settings();
  const bool samples = settings.has("sample");
  require(samples || settings.has("data"), ErrorCode::kUsage, "eval needs --data");
  for (const char* flag : {"prompt", "temperature"}) {
    require(samples || !settings.given(flag), ErrorCode::kUsage, "--{} belongs to --sample", flag);
  }
  Source::Trained trained = source.trained_model(settled);
  warn_of(trained.model, settled.log());
  LossOptions loss = parse_loss(settings.text("loss"));
  resolve_loss_output(trained.model, loss);
  if (settings.has("data")) resolve_most_labels(settings.text("data"), loss);
  const Sizes sizes =
      settings.has("data")
          ? resolve_sizes_with_data(trained.model, size_request(settings), settings.text("data"))
          : resolve_sizes(trained.model, size_request(settings));
  if (settings.has("data")) require_examples(trained.model, sizes);
  CompileOptions options = forward_options(settled, sizes);
  options.training.loss = loss;
  options.lower.kernels = kernel_choice(settings);
  options.lower.same_bits = same_bits(settings);
  ForwardPrograms programs(trained.model, std::move(trained.checkpoint), options, sizes.batch_axes);
  const Evaluating evaluating{.invocation = settled,
                              .source = source,
                              .model = trained.model,
                              .loss = loss,
                              .sizes = sizes,
                              .programs = programs};
  Outcome outcome;
  outcome.facts.set("model", invocation.argument(0));
  if (!samples || settings.given("data")) evaluate_data(evaluating, outcome);
  if (samples) sample(evaluating, outcome);
  return outcome;
}

}  // namespace

Command eval_command() {
  return {.name = "eval",
          .summary = "Evaluate a model or run on data, or let it write text.",
          .arguments = {{.name = "MODEL.onnx|RUN", .help = "a model, or a run's folder"}},
          .flags = join_flags({kEvalFlags, validation_flags(), normalize_flags(), source_flags(),
                               loss_flags(), size_flags(), kernel_flags(), determinism_flags()}),
          .examples = {"trainscope eval runs/mlp-1 --data tensors:test.safetensors,validation=1",
                       "trainscope eval runs/gpt-1 --sample 400 --prompt 'The '"},
          .run = run_eval};
}

}  // namespace trainscope
