// train: a model goes in, a trained model and the record of the run come out.
#include <memory>
#include <optional>
#include <stop_token>

#include "cli/command.h"
#include "cli/flags/train_request.h"
#include "cli/flags/training_flags.h"
#include "cli/print/progress.h"
#include "cli/print/train_summary.h"
#include "cli/stop_signals.h"
#include "engine/run/training_run.h"

namespace trainscope {
namespace {

constexpr Flag kTrainFlags[] = {
    {.name = "data",
     .value = "SPEC",
     .help = "text:FILE, bpe:FILE,VOCAB.json,MERGES.txt, tokens:FILE, idx:IMAGES,LABELS, "
             "csv:FILE,label=COLUMN, tensors:FILE.safetensors|FILE.npz, catalog:NAME or synthetic; "
             "the last 10 % validate"},
    {.name = "steps",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Optimizer steps, those before a resume included",
     .minimum = 1},
    {.name = "time-limit",
     .value = "TIME",
     .help = "Stop at the end of the step in which this much time has passed since the start (90s, "
             "30min, 1h30m), save, and exit with 0; --resume goes on"},
    {.name = "run-dir", .value = "DIR", .help = "The run's folder; default: ./runs/NAME-N"},
    {.name = "resume",
     .value = "auto|DIR",
     .help = "Go on from the newest checkpoint of --run-dir, of the run DIR, or from that "
             "checkpoint"},
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
    {.name = "export", .value = "FILE", .help = "Another place for the trained model"},
    {.name = "metrics",
     .value = "FORMS",
     .fallback = "jsonl,csv",
     .help = "Files of losses and times: jsonl (always), csv, tensorboard"},
    {.name = "dry-run",
     .type = FlagType::kSwitch,
     .help = "Read, compile and plan everything, then stop; nothing is written"},
};

// From when there is something to save, signals ask the run to stop: between the pieces of its
// work, of which each tells how far it is.
class SignalListener final : public RunEvents {
 public:
  void session_opening() override { signals_.emplace(stop_); }
  void progress(const Progress& /*moment*/) override { pass_on(); }
  void steps_end() override { pass_on(); }

  std::stop_token token() const { return stop_.get_token(); }
  // Of the signal that came.
  int exit_code() const { return signals_->requested(); }

 private:
  void pass_on() {
    if (signals_) signals_->pass_on();
  }

  std::stop_source stop_;
  std::optional<StopSignals> signals_;
};

Outcome run_train(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  for (const char* flag : {"data", "steps"}) {
    require(settings.has(flag), ErrorCode::kUsage, "train needs --{}", flag);
  }
  const auto signals = std::make_shared<SignalListener>();
  const auto progress =
      std::make_shared<ProgressPrinter>(progress_style(settings), invocation.log());
  TrainRequest request = train_request(invocation);
  request.stop_exit_code = [signals] { return signals->exit_code(); };
  TrainingRun training(
      std::move(request),
      std::make_shared<RunListeners>(std::vector<std::shared_ptr<RunEvents>>{signals, progress}),
      signals->token());
  return settings.on("dry-run") ? summary_of(training.preview()) : summary_of(training.run());
}

}  // namespace

Command train_command() {
  return {.name = "train",
          .summary = "Train an ONNX model; records the run in a folder.",
          .arguments = {{.name = "MODEL.onnx", .help = "the forward graph"}},
          .flags = join_flags({kTrainFlags, compile_flags()}),
          .examples = {"trainscope train model.onnx --data synthetic --steps 20",
                       "trainscope train gpt.onnx --data text:book.txt --seq 64 --batch 12 --steps "
                       "2000 --lr 1e-3 --clip 1 --run-dir runs/book"},
          .run = run_train};
}

}  // namespace trainscope
