// train: a model goes in, a trained model and the record of the run come out.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "cli/command.h"
#include "cli/data/data_request.h"
#include "cli/flags/ranks_flag.h"
#include "cli/flags/train_request.h"
#include "cli/flags/training_flags.h"
#include "cli/machine.h"
#include "cli/print/progress.h"
#include "cli/print/train_summary.h"
#include "cli/signal_listener.h"
#include "cli/source.h"
#include "engine/core/any_error.h"
#include "engine/core/text.h"
#include "engine/run/training_run.h"
#include "engine/run/worker_events.h"

namespace trainscope {
namespace {

constexpr Flag kTrainFlags[] = {
    {.name = "data",
     .value = "SPEC",
     .help = "text:FILE, bpe:FILE,VOCAB.json,MERGES.txt, tokens:FILE, idx:IMAGES,LABELS, "
             "csv:FILE,label=COLUMN, tensors:FILE.safetensors|FILE.npz, catalog:NAME or synthetic; "
             "a file's ending says its kind too; the last 10 % validate",
     .also = "dataset"},
    {.name = "steps",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Optimizer steps, those before a resume included",
     .minimum = 1,
     .also = "max-steps|iterations"},
    {.name = "epochs",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Instead of --steps: how often all examples are read, in whole batches",
     .minimum = 1,
     .also = "num-epochs"},
    {.name = "shuffle",
     .type = FlagType::kChoice,
     .value = "epoch|none",
     .fallback = "epoch",
     .help = "Another order of the examples in each epoch, or the order that the data have"},
    {.name = "time-limit",
     .value = "TIME",
     .help = "Stop at the end of the step in which this much time has passed since the start (90s, "
             "30min, 1h30m), save, and exit with 0; --resume goes on"},
    {.name = "session-steps",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Stop after N steps of this session, as --time-limit does; --resume goes on",
     .minimum = 1},
    {.name = "run-dir",
     .value = "DIR",
     .help = "The run's folder; default: ./runs/NAME-N",
     .also = "output-dir"},
    {.name = "resume",
     .value = "auto|DIR",
     .help = "Go on from the newest checkpoint of --run-dir, of the run DIR, or from that "
             "checkpoint; without MODEL.onnx all that is not said here is as in that run"},
    {.name = "save-every",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "0",
     .help = "Steps between checkpoints; 0: only at the end",
     .minimum = 0},
    {.name = "keep",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "3",
     .help = "Newest checkpoints to keep",
     .minimum = 1,
     .maximum = 1 << 20},
    {.name = "keep-best",
     .type = FlagType::kToggle,
     .fallback = "on",
     .help = "With --eval-every: keep the checkpoint with the lowest validation loss too"},
    {.name = "eval-every",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "0",
     .help = "Steps between validations; 0: only at the end",
     .minimum = 0},
    {.name = "early-stop",
     .value = "PATIENCE[,min_delta=X]",
     .help = "With --eval-every: end after PATIENCE evaluations in a row without a validation loss "
             "below the lowest one (by more than X); the best checkpoint stays"},
    {.name = "export", .value = "FILE", .help = "Another place for the trained model"},
    {.name = "metrics",
     .value = "FORMS",
     .fallback = "jsonl,csv",
     .help = "Files of losses and times: jsonl (always), csv, tensorboard"},
    {.name = "profile",
     .value = "steps=FROM:TO[,every=N[,repeat=K]]",
     .help = "Record what these steps do, for `trainscope query`; with steps=+FROM:TO counted from "
             "where the session begins; with every=N again N steps after they began, K times in "
             "all or to the end"},
    {.name = "trace-level",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "1",
     .help = "With --profile on a GPU: 1 records its kernels, copies and sets, 2 also how long the "
             "host launches them, waits and records, 3 all of its calls of CUDA and how often it "
             "allocates, 0 the host alone",
     .minimum = 0,
     .maximum = 3},
    {.name = "record-numerics",
     .type = FlagType::kSwitch,
     .help = "Record statistics, a sketch and a hash of each tensor of some steps, for `trainscope "
             "compare`"},
    {.name = "record-steps",
     .value = "LIST",
     .help = "With --record-numerics: these steps (1,5,100) in place of 1, 2, 5, 10, 20, 50 ... "
             "and the last"},
    {.name = "record-values",
     .value = "fused|all|NAMES",
     .fallback = "fused",
     .help =
         "With --record-numerics: the tensors that the step makes (fused), or each value of the "
         "model and its gradient, from the step computed once more without fusions (all), or of "
         "these those with these names (patterns, commas between)"},
    {.name = "record-full",
     .value = "NAMES",
     .help = "With --record-numerics: keep all elements of the tensors with these names (patterns, "
             "commas between)"},
    {.name = "dry-run",
     .type = FlagType::kSwitch,
     .help = "Read, compile and plan everything, then stop; nothing is written"},
    {.name = "ranks-fd",
     .value = "R/N@FD",
     .help = "For `trainscope launch`: this process is rank R of N, which share the memory of "
             "descriptor FD"},
    {.name = "worker-fd",
     .type = FlagType::kInteger,
     .value = "N",
     .help =
         "For programs that start this one: tell on socket N, a line of JSON a message, how the "
         "session goes on, and stop when asked there or when its other end is gone",
     .minimum = 0,
     .maximum = std::numeric_limits<int>::max()},
};

// What a call lacks, all of it in one error.
void require_all(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  std::vector<std::string> missing;
  if (invocation.argument(0).empty()) missing.emplace_back("MODEL.onnx");
  if (!settings.has("data")) missing.emplace_back("--data");
  if (!settings.has("steps") && !settings.has("epochs"))
    missing.emplace_back("--steps or --epochs");
  if (missing.empty()) return;
  std::string text = missing.front();
  for (std::size_t i = 1; i < missing.size(); ++i) {
    text += (i + 1 == missing.size() ? " and " : ", ") + missing[i];
  }
  const std::string_view verb = invocation.command().name;
  throw Error(ErrorCode::kUsage, fmt::format("{} needs {}", verb, text))
      .hint(fmt::format("`trainscope {} --help` shows the flags that matter", verb));
}

// The run that --resume goes on with; empty when it names none.
std::string resumed_run(const Settings& settings) {
  const std::string resume = settings.text_or_empty("resume");
  return resume == "auto" ? settings.text_or_empty("run-dir") : resume;
}

// A call that names no model has that of the run it resumes, and the run's options.
Invocation settled(const Invocation& invocation) {
  const std::string run = resumed_run(invocation.settings());
  if (run.empty()) return invocation.with_run(Json::object());
  if (!invocation.argument(0).empty()) {
    load_plugins_of(run_of(run).string());
    return invocation.with_run(Json::object());
  }
  const Source source = Source::open(run_of(run).string());
  require(source.is_run(), ErrorCode::kUsage, "--resume: '{}' is no run", printable(run));
  return source.settle(invocation).with_argument(source.model_file().string());
}

// What the model's file leaves open of what PyTorch trains.
std::vector<std::string> untold_of(const TrainRequest& request) {
  const ParameterChoices choices = choose_parameters(request.model, request.compile.import);
  return choices.of_pytorch ? untold(choices) : std::vector<std::string>();
}

// Null without --worker-fd.
std::shared_ptr<WorkerEvents> worker_events(const Settings& settings,
                                            const std::stop_source& stop) {
  if (!settings.has("worker-fd")) return nullptr;
  const auto descriptor = static_cast<int>(settings.integer("worker-fd"));
  return std::make_shared<WorkerEvents>(descriptor, std::string(program_version()), stop);
}

// `worker` may be null.
Outcome trained(const Invocation& given, const std::stop_source& stop,
                const std::shared_ptr<WorkerEvents>& worker) {
  const Invocation invocation = settled(given);
  const Settings& settings = invocation.settings();
  require_all(invocation);
  const auto signals = std::make_shared<SignalListener>(stop);
  const auto progress =
      std::make_shared<ProgressPrinter>(progress_style(settings), invocation.log());
  TrainRequest request = train_request(invocation);
  const std::vector<std::string> notes = untold_of(request);
  request.stop_exit_code = [signals] { return signals->exit_code(); };
  const auto listeners = std::make_shared<RunListeners>();
  listeners->add(signals);
  if (worker) listeners->add(worker);
  if (!is_other_rank(settings)) listeners->add(progress);
  TrainingRun training(std::move(request), listeners, stop.get_token());
  if (is_other_rank(settings) && !settings.on("dry-run")) {
    return {.exit_code = training.run().exit_code};
  }
  Outcome outcome =
      settings.on("dry-run") ? summary_of(training.preview()) : summary_of(training.run());
  for (const std::string& each : notes) outcome.text += fmt::format("note        {}\n", each);
  outcome.facts.set("notes", Json::list(notes));
  return outcome;
}

// `launch` says for all ranks that they have lost one, or do not do the same.
Outcome trained_as_rank(const Invocation& given, const std::stop_source& stop) {
  require(!given.settings().has("worker-fd"), ErrorCode::kUsage,
          "--worker-fd and `launch` do not go together yet");
  try {
    return trained(given, stop, nullptr);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDistributed) throw;
    return {.exit_code = static_cast<int>(error.code()), .told = true};
  }
}

Outcome run_train(const Invocation& given) {
  const std::stop_source stop;
  if (rank_place(given.settings())) return trained_as_rank(given, stop);
  const std::shared_ptr<WorkerEvents> worker = worker_events(given.settings(), stop);
  if (!worker) return trained(given, stop, nullptr);
  try {
    return trained(given, stop, worker);
  } catch (const Stopped&) {  // before there was a session
    worker->session_end(RunStatus::kInterrupted);
    return {};
  } catch (const std::exception& exception) {
    worker->tell_fault(error_of(exception));
    throw;
  }
}

}  // namespace

Command train_command() {
  return {.name = "train",
          .summary = "Train an ONNX model; records the run in a folder.",
          .arguments = {{.name = "MODEL.onnx",
                         .help = "the forward graph; of a run that --resume names its own",
                         .required = false}},
          .flags = join_flags({kTrainFlags, validation_flags(), image_flags(), compile_flags()}),
          .examples = {"trainscope train model.onnx --data synthetic --steps 20",
                       "trainscope train gpt.onnx --data text:book.txt --seq 64 --batch 12 --steps "
                       "2000 --lr 1e-3 --clip 1 --run-dir runs/book"},
          .run = run_train,
          .essential = {"data", "steps", "epochs", "batch", "loss", "optimizer", "lr", "eval-every",
                        "run-dir", "resume"}};
}

}  // namespace trainscope
