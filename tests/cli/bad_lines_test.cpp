// Malformed command lines: each with its message, all with exit code 2.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

const std::string kMlp = test_model("mlp/model.onnx").string();

struct BadLine {
  std::vector<std::string> words;
  std::string error;  // what follows "error: "
};

// Runs where there are a file FILE, a folder FULL that is not empty, and a bad configuration BAD.
void check_refused(const std::vector<BadLine>& lines, const std::vector<std::string>& before) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "FULL");
  std::ofstream(folder / "FULL/x") << "x";
  std::ofstream(folder / "FILE") << "x";
  std::ofstream(folder / "BAD") << "steps = \n";
  for (const BadLine& line : lines) {
    std::vector<std::string> words = before;
    words.insert(words.end(), line.words.begin(), line.words.end());
    const Finished finished = run(words, {}, folder.path());
    INFO(line.error);
    CHECK(finished.exit_code == 2);
    CHECK(finished.err == "error: " + line.error + "\n");
    CHECK(finished.out.empty());
  }
  CHECK(!fs::exists(folder / "runs"));  // nothing was begun
}

TEST_CASE("bad command lines: of train") {
  const std::vector<BadLine> lines = {
      {{"--stpes", "1"}, "train has no flag '--stpes'\n  try: did you mean '--steps'?"},
      {{"--step"}, "train has no flag '--step'\n  try: did you mean '--steps'?"},
      {{"-z"}, "train has no flag '-z'\n  try: `trainscope help train` lists its flags"},
      {{"-"},
       "train takes no further argument: '-'\n  try: `trainscope help train` lists its flags"},
      {{"--"}, "train has no flag '--'\n  try: `trainscope help train` lists its flags"},
      {{"--", "--lr"}, "train has no flag '--'\n  try: `trainscope help train` lists its flags"},
      {{"---lr", "1"},
       "train takes no further argument: '---lr'\n  try: `trainscope help train` lists its flags"},
      {{"--=1"}, "train has no flag '--'\n  try: `trainscope help train` lists its flags"},
      {{"--="}, "train has no flag '--'\n  try: `trainscope help train` lists its flags"},
      {{"-lr", "1"}, "train has no flag '-lr'\n  try: did you mean '--lr'?"},
      {{"--LR", "1"}, "train has no flag '--LR'\n  try: did you mean '--lr'?"},
      {{"--learn-rate", "1"}, "train has no flag '--learn-rate'\n  try: did you mean '--lr'?"},
      {{"--batch_size", "1"}, "train has no flag '--batch_size'\n  try: did you mean '--batch'?"},
      {{"--patience", "1"}, "train has no flag '--patience'\n  try: did you mean '--early-stop'?"},
      {{"--lr", "1", "--learning-rate", "2"}, "--lr is given 2 times"},
      {{"--lr "}, "train has no flag '--lr '\n  try: did you mean '--lr'?"},
      {{"--no-steps"}, "train has no flag '--no-steps'\n  try: did you mean '--steps'?"},
      {{"--no-quiet"}, "train has no flag '--no-quiet'\n  try: did you mean '--quiet'?"},
      {{"--no-json"}, "train has no flag '--no-json'\n  try: did you mean '--json'?"},
      {{"--json=maybe"}, "'--json=maybe': --json is a switch and takes no value"},
      {{"--quiet=5"}, "'--quiet=5': --quiet is a switch and takes no value"},
      {{"--quiet=false"}, "'--quiet=false': --quiet is a switch and takes no value"},
      {{"--verbose="}, "'--verbose=': --verbose is a switch and takes no value"},
      {{"--qu"}, "train has no flag '--qu'\n  try: `trainscope help train` lists its flags"},
      {{"-qz"}, "train has no flag '-z'\n  try: `trainscope help train` lists its flags"},
      {{"-q1"},
       "train takes no further argument: '-1'\n  try: `trainscope help train` lists its flags"},
      {{"--lr\n", "1"}, "train has no flag '--lr\\n'\n  try: did you mean '--lr'?"},
      {{"--\xff\xfe"},
       "train has no flag '--\\xff\\xfe'\n  try: `trainscope help train` lists its flags"},
      {{"--lr", "\xff"}, "--lr is '\\xff': expected a number of 0 or more"},
      {{"--lr", "\x1b[31m"}, "--lr is '\\x1b[31m': expected a number of 0 or more"},
      {{"--steps", "2"}, "--steps is given 2 times"},
      {{"--lr", "1", "--lr", "2"}, "--lr is given 2 times"},
      {{"--data", "synthetic"}, "--data is given 2 times"},
      {{"--lr", "nan"}, "--lr is 'nan': expected a number of 0 or more"},
      {{"--lr", "inf"}, "--lr is 'inf': expected a number of 0 or more"},
      {{"--lr", "1e999"}, "--lr is '1e999': expected a number of 0 or more"},
      {{"--lr", "-0.1"}, "--lr is '-0.1': expected a number of 0 or more"},
      {{"--lr", "1,5"}, "--lr is '1,5': expected a number of 0 or more"},
      {{"--lr", "1e"}, "--lr is '1e': expected a number of 0 or more"},
      {{"--lr", ""}, "--lr is '': expected a number of 0 or more"},
      {{"--momentum", "2"}, "--momentum is '2': expected a number from 0 to 1"},
      {{"--threads", "0"}, "--threads is '0': expected a whole number from 1 to 1024"},
      {{"--threads", "1025"}, "--threads is '1025': expected a whole number from 1 to 1024"},
      {{"--threads", "-1"}, "--threads is '-1': expected a whole number from 1 to 1024"},
      {{"--seed", "-1"}, "--seed is '-1': expected a whole number of 0 or more"},
      {{"--seed", "18446744073709551616"},
       "--seed is '18446744073709551616': expected a whole number of 0 or more"},
      {{"--accumulate", "0"}, "--accumulate is '0': expected a whole number from 1 to 1048576"},
      {{"--accumulate", "1048577"},
       "--accumulate is '1048577': expected a whole number from 1 to 1048576"},
      {{"--keep", "0"}, "--keep is '0': expected a whole number from 1 to 1048576"},
      {{"--warmup", "-1"}, "--warmup is '-1': expected a whole number of 0 or more"},
      {{"--kernels", "fast est"},
       "--kernels is 'fast est': expected fastest, direct, reference\n  try: did you mean "
       "'fastest'?"},
      {{"--kernels", ""}, "--kernels is '': expected fastest, direct, reference"},
      {{"--kernels", "FASTEST"}, "--kernels is 'FASTEST': expected fastest, direct, reference"},
      {{"--kernels", "referenc"},
       "--kernels is 'referenc': expected fastest, direct, reference\n  try: did you mean "
       "'reference'?"},
      {{"--color", "red"}, "--color is 'red': expected auto, always, never"},
      {{"--progress", "bar"}, "--progress is 'bar': expected auto, plain, none"},
      {{"--log-level", "loud"}, "--log-level is 'loud': expected debug, info, warning, error"},
      {{"--log-format", "xml"}, "--log-format is 'xml': expected text, json"},
      {{"--device", "gpu"}, "--device is 'gpu': expected cpu or cuda"},
      {{"--device", ""}, "--device is empty"},
      {{"--betas", "0.9"}, "--betas is '0.9': expected two numbers A,B"},
      {{"--betas", "0.9,1"}, "--betas is '0.9,1': each must be at least 0 and below 1"},
      {{"--betas", "a,b"}, "--betas: 'a' is no number"},
      {{"--betas", "0.9,0.9,0.9"}, "--betas is '0.9,0.9,0.9': expected two numbers A,B"},
      {{"--group", "nothing"}, "--group is 'nothing': expected PATTERN:weight_decay=X,lr_scale=X"},
      {{"--group", ":lr_scale=1"},
       "--group is ':lr_scale=1': expected PATTERN:weight_decay=X,lr_scale=X"},
      {{"--metrics", "tensorbord"},
       "--metrics has no form 'tensorbord'\n  try: did you mean 'tensorboard'?"},
      {{"--metrics", "csv,,jsonl"},
       "--metrics has no form ''\n  try: its forms are jsonl, csv and tensorboard, with commas "
       "between them"},
      {{"--metrics", ""}, "--metrics is empty"},
      {{"--loss", ""}, "--loss is empty"},
      {{"--shape", "x"}, "--shape is 'x': expected NAME=2,3"},
      {{"--shape", "x=a"}, "--shape is 'x=a': expected NAME=2,3"},
      {{"--batch", "0"}, "--batch is '0': expected a whole number from 1 to 16777216"},
      {{"--seq", "-3"}, "--seq is '-3': expected a whole number from 1 to 16777216"},
      {{"--batch", "17"},
       "--batch 17 does not fit the model: input 'x' has 16 there\n  try: leave out --batch, or "
       "export the model with an open dimension"},
      {{"--run-dir", ""}, "--run-dir is empty"},
      {{"--stop-after", "nothing"}, "there is no pass 'nothing'"},
      {{"--disable", "nothing"}, "there is no pass 'nothing'"},
      {{"-q", "-v"}, "--quiet and --verbose contradict each other"},
      {{"-q", "--log-level", "error"}, "--log-level error and --quiet: give one"},
      {{"--verbose", "--log-level", "info"}, "--log-level info and --verbose: give one"},
      {{"--optimizer", "adamw", "--momentum", "0.5"},
       "--momentum means nothing with --optimizer adamw"},
      {{"--min-lr", "0.1"}, "--min-lr means nothing with --schedule constant"},
      {{"--resume", "auto"},
       "--resume auto needs --run-dir: which run?\n  try: --run-dir RUN --resume auto, or --resume "
       "RUN"},
      {{"--run-dir", "FILE"}, "the run folder 'FILE' is a file"},
      {{"--run-dir", "FULL"},
       "the run folder 'FULL' is not empty\n  try: continue that run with --resume auto, or choose "
       "another --run-dir"},
      {{"--config"},
       "--config needs a value: FILE.toml\n  try: `trainscope help train` lists its flags"},
      {{"--config", ""}, "--config is empty"},
      {{"--config=BAD"}, "BAD:1:9: Error while parsing key-value pair: expected value, saw '\\n'"},
      {{"--config", "a", "--config", "b"}, "--config is given 2 times"},
      {{"--set"}, "--set needs a value: KEY=VALUE\n  try: `trainscope help train` lists its flags"},
      {{"--set", "lr"}, "--set is 'lr': expected KEY=VALUE"},
      {{"--set", "=1"}, "--set is '=1': expected KEY=VALUE"},
      {{"--set", "lrr=1"}, "--set: train has no flag 'lrr'\n  try: did you mean 'lr'?"},
      {{"--set", "trian.lr=1"}, "--set: there is no verb 'trian'\n  try: did you mean 'train'?"},
      {{"--set", "train.lrr=1"}, "--set: train has no flag 'lrr'\n  try: did you mean 'lr'?"},
      {{"--set", "lr=x"}, "--lr is 'x': expected a number of 0 or more"},
      {{"--set", "lr="}, "--lr is '': expected a number of 0 or more"},
      {{"--lr", "1", "--set", "lr=2"}, "--lr is given twice: once by --set lr=2"},
      {{"--set", "lr=1", "--set", "lr=2"}, "--lr is given twice: once by --set lr=2"},
      {{"--set", "quiet=perhaps"},
       "--quiet is 'perhaps': expected 1 or 0, true or false, on or off"},
      {{"--set", "config=x"},
       "--set: train has no flag 'config'\n  try: `trainscope help train` lists its flags"},
      {{"--set", "train.train.lr=1"},
       "--set: train has no flag 'train.lr'\n  try: `trainscope help train` lists its flags"},
  };
  CHECK(lines.size() == 103);
  check_refused(lines, {"train", kMlp, "--data", "synthetic", "--steps", "1"});
}

TEST_CASE("bad command lines: verbs, arguments, values") {
  const std::vector<BadLine> lines = {
      {{""}, "there is no verb ''\n  try: `trainscope help` lists the verbs"},
      {{"-"}, "which verb?\n  try: `trainscope help` lists the verbs"},
      {{"--"}, "which verb?\n  try: `trainscope help` lists the verbs"},
      {{"--verbos"}, "which verb?\n  try: `trainscope help` lists the verbs"},
      {{"trian"}, "there is no verb 'trian'\n  try: did you mean 'train'?"},
      {{"Train"}, "there is no verb 'Train'\n  try: did you mean 'train'?"},
      {{"train "}, "there is no verb 'train '\n  try: did you mean 'train'?"},
      {{"train\n"}, "there is no verb 'train\\n'\n  try: did you mean 'train'?"},
      {{"\x1b[31mtrain"},
       "there is no verb '\\x1b[31mtrain'\n  try: `trainscope help` lists the verbs"},
      {{"tr\xc3\xa4nscope"},
       "there is no verb 'tr\xc3\xa4nscope'\n  try: `trainscope help` lists the verbs"},
      {{"\xff\xfe"}, "there is no verb '\\xff\\xfe'\n  try: `trainscope help` lists the verbs"},
      {{"help", "trian"}, "there is no help on 'trian'\n  try: did you mean 'train'?"},
      {{"help", "train", "plan"},
       "help takes no further argument: 'plan'\n  try: `trainscope help help` lists its flags"},
      {{"help", "exit-codes", "--man"}, "every manual page has the exit codes"},
      {{"--threads"}, "which verb?\n  try: `trainscope help` lists the verbs"},
      {{"--threads", "2"}, "which verb?\n  try: `trainscope help` lists the verbs"},
      {{"train", kMlp, "--data", "synthetic", "--steps"},
       "--steps needs a value: N\n  try: `trainscope help train` lists its flags"},
      {{"train", kMlp, "--data", "synthetic", "--steps", "1", "--time-limit", "90x"},
       "--time-limit is '90x': expected a span of time above 0, of 10 years at most\n  try: for "
       "example 90s, 30min or 1h30m"},
      {{"train", kMlp, "--data", "synthetic", "--steps="},
       "--steps needs a value: N\n  try: `trainscope help train` lists its flags"},
      {{"train", kMlp, "--data", "synthetic", "--steps", ""},
       "--steps is '': expected a whole number of 1 or more"},
      {{"train", kMlp, "--data", "synthetic", "--steps", "0"},
       "--steps is '0': expected a whole number of 1 or more"},
      {{"train", kMlp, "--data", "synthetic", "--steps", "-1"},
       "--steps is '-1': expected a whole number of 1 or more"},
      {{"train", kMlp, "--data", "synthetic", "--steps", "1.5"},
       "--steps is '1.5': expected a whole number of 1 or more"},
      {{"train", kMlp, "--data", "synthetic", "--steps", "1e3"},
       "--steps is '1e3': expected a whole number of 1 or more"},
      {{"train", kMlp, "--data", "synthetic", "--steps", "0x10"},
       "--steps is '0x10': expected a whole number of 1 or more"},
      {{"train", kMlp, "--data", "synthetic", "--steps", "+5"},
       "--steps is '+5': expected a whole number of 1 or more"},
      {{"train", kMlp, "--data", "synthetic", "--steps", " 5"},
       "--steps is ' 5': expected a whole number of 1 or more"},
      {{"train", kMlp, "--data", "synthetic", "--steps", "5 "},
       "--steps is '5 ': expected a whole number of 1 or more"},
      {{"train", kMlp, "--data", "synthetic", "--steps", "5,"},
       "--steps is '5,': expected a whole number of 1 or more"},
      {{"train", kMlp, "--data", "synthetic", "--steps", "9223372036854775808"},
       "--steps is '9223372036854775808': expected a whole number of 1 or more"},
      {{"train", kMlp, "--data", "synthetic", "--steps", "ten"},
       "--steps is 'ten': expected a whole number of 1 or more"},
      {{"train", kMlp, "--data", "synthetic", "--steps", "--lr"},
       "--steps is '--lr': expected a whole number of 1 or more"},
      {{"train", kMlp, "--data", "synthetic", "--steps", "NaN"},
       "--steps is 'NaN': expected a whole number of 1 or more"},
      {{"train", kMlp, "--data", "synthetic", "--steps", "\xd9\xa1"},
       "--steps is '\xd9\xa1': expected a whole number of 1 or more"},
      {{"train", kMlp, "--steps", "1", "--data", "synthetic,examples=0"},
       "data 'synthetic,examples=0': option 'examples' is '0': expected a whole number of 1 or "
       "more"},
      {{"train", kMlp, "--steps", "1", "--data", ""}, "--data is empty"},
      {{"train"},
       "train needs MODEL.onnx, --data and --steps or --epochs\n  try: `trainscope train --help` "
       "shows the flags that matter"},
      {{"train", kMlp},
       "train needs --data and --steps or --epochs\n  try: `trainscope train --help` shows the "
       "flags that matter"},
      {{"train", kMlp, "--data", "synthetic"},
       "train needs --steps or --epochs\n  try: `trainscope train --help` shows the flags that "
       "matter"},
      {{"train", kMlp, "other", "--data", "synthetic", "--steps", "1"},
       "train takes no further argument: 'other'\n  try: `trainscope help train` lists its flags"},
      {{"train", "", "--data", "synthetic", "--steps", "1"}, "MODEL.onnx is empty"},
      {{"doctor", "extra"},
       "doctor takes no further argument: 'extra'\n  try: `trainscope help doctor` lists its "
       "flags"},
      {{"version", "1"},
       "version takes no further argument: '1'\n  try: `trainscope help version` lists its flags"},
      {{"completion"},
       "completion needs SHELL\n  try: `trainscope help completion` lists its flags"},
      {{"completion", "tcsh"}, "SHELL is 'tcsh': expected bash, zsh, fish"},
      {{"completion", "bash", "zsh"},
       "completion takes no further argument: 'zsh'\n  try: `trainscope help completion` lists its "
       "flags"},
      {{"completion", "bsh"},
       "SHELL is 'bsh': expected bash, zsh, fish\n  try: did you mean 'bash'?"},
      {{"place"}, "place needs PROBLEM.csv\n  try: `trainscope help place` lists its flags"},
      {{"place", "x.csv"}, "place needs --out SOLUTION.csv"},
      {{"place", "x.csv", "--out", "o", "--capacity", "-5"},
       "--capacity is '-5': expected a whole number of 0 or more"},
      {{"remat", "x.csv"}, "remat needs --budget BYTES or PERCENT%, or --front"},
      {{"remat", "x.csv", "--front", "--out", "o"}, "--out needs --budget: a plan of which size?"},
      {{"export", kMlp}, "export needs -o FILE"},
      {{"export", kMlp, "-o"},
       "--out needs a value: FILE\n  try: `trainscope help export` lists its flags"},
      {{"export", kMlp, "-o", "x", "--format", "csv"}, "--format csv needs the folder of a run"},
      {{"export", kMlp, "-o", "x", "--format", "safetensors", "--stage", "loss"},
       "--stage means nothing with --format safetensors"},
      {{"inspect", kMlp, "--at", "0"}, "--at belongs to --memory and --calls"},
      {{"eval", kMlp}, "eval needs --data"},
      {{"verify"}, "verify needs REFERENCE_DIR\n  try: `trainscope help verify` lists its flags"},
      {{"gradients"},
       "gradients needs MODEL.onnx\n  try: `trainscope help gradients` lists its flags"},
      {{"bench"}, "bench needs WORKLOAD\n  try: `trainscope help bench` lists its flags"},
      {{"model"}, "model needs NAME\n  try: `trainscope help model` lists its flags"},
      {{"model", "-o", "x"}, "model needs NAME\n  try: `trainscope help model` lists its flags"},
      {{"config"}, "config needs ACTION\n  try: `trainscope help config` lists its flags"},
      {{"config", "sow"},
       "ACTION is 'sow': expected show, validate, schema\n  try: did you mean 'show'?"},
      {{"config", "show", "trian"}, "there is no verb 'trian'\n  try: did you mean 'train'?"},
      {{"config", "show", "train", "--lrr", "1"},
       "config has no flag '--lrr'\n  try: did you mean '--lr'?"},
      {{"config", "show", "train", "--lr", "x"}, "--lr is 'x': expected a number of 0 or more"},
      {{"config", "validate"}, "config validate needs FILE.toml"},
      {{"config", "validate", "--origin", "x.toml"}, "--origin means nothing with config validate"},
      {{"config", "schema", "train"}, "config schema takes no further argument"},
      {{"config", "schema", "--origin"}, "--origin means nothing with config schema"},
      {{"config", "show", "--completely-else", "loss"},
       "config has no flag '--completely-else'\n  try: `trainscope help config` lists its flags"},
  };
  CHECK(lines.size() == 73);
  check_refused(lines, {});
}

TEST_CASE("bad command lines: long words are shortened in messages") {
  const Finished verb = run({std::string(100'000, 'x')});
  CHECK(verb.exit_code == 2);
  CHECK(verb.err.size() < 400);
  CHECK(verb.err.find("(100000 bytes)") != std::string::npos);
  const Finished number = run({"train", kMlp, "--steps", std::string(5'000, '9')});
  CHECK(number.exit_code == 2);
  CHECK(number.err.size() < 400);
  CHECK(run({"train", kMlp, "--" + std::string(100'000, 'x')}).err.size() < 400);
}

TEST_CASE("command lines: without even a program's name") {
  const std::string program = std::string(TRAINSCOPE_BIN_DIR) + "/trainscope";
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    char* const nothing[] = {nullptr};
    close(STDOUT_FILENO);
    execv(program.c_str(), nothing);
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);  // the help, as without further words
}

TEST_CASE("command lines: paths with spaces, quotes and line ends are paths") {
  const TemporaryFolder folder;
  const std::string name = "a model's \"name\"\n.onnx";
  fs::copy_file(kMlp, folder / name);
  const Finished finished = run({"train", name, "--data", "synthetic", "--steps", "1", "--threads",
                                 "1", "-q", "--run-dir", "a run"},
                                {}, folder.path());
  INFO(finished.err);
  CHECK(finished.exit_code == 0);
  CHECK(fs::exists(folder / "a run/model.onnx"));
  // And its configuration file names it so that it is found again.
  CHECK(run({"check", "--config", "a run/config.toml"}, {}, folder.path()).exit_code == 0);
  const Finished missing = run({"check", "no such\nmodel.onnx"}, {}, folder.path());
  CHECK(missing.exit_code == 6);
  CHECK(missing.err.find("no such\\nmodel.onnx") != std::string::npos);
}

}  // namespace
}  // namespace trainscope::test
