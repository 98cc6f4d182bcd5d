// train: a model goes in, a trained model and the record of the run come out.
#include "cli/command.h"
#include "cli/flags/training_flags.h"
#include "cli/run/training_run.h"

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

Outcome run_train(const Invocation& invocation) {
  for (const char* flag : {"data", "steps"}) {
    require(invocation.settings().has(flag), ErrorCode::kUsage, "train needs --{}", flag);
  }
  TrainingRun training(invocation);
  return invocation.settings().on("dry-run") ? training.preview() : training.run();
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
