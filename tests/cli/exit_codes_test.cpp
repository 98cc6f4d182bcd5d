// Exit codes and messages of the program, one by one.
#include "cli/exit_codes.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

const std::string kMlp = test_model("mlp/model.onnx").string();

std::vector<std::string> train(const std::vector<std::string>& more) {
  std::vector<std::string> words = {"train", kMlp, "--data", "synthetic", "--threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// One or more lines "error", "at", "try", and nothing else.
void check_error_lines(const std::string& text) {
  CHECK(text.find("error: ") != std::string::npos);
  CHECK(text.find("\033") == std::string::npos);
}

TEST_CASE("exit code 0: help and version") {
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"--help"},
                                                {"help"},
                                                {"help", "train"},
                                                {"train", "--help"},
                                                {"help", "exit-codes"},
                                                {"version"},
                                                {"--version"},
                                                {"config", "schema"},
                                                {"completion", "bash"},
                                                {"doctor"}}) {
    const Finished finished = run(words);
    CHECK(finished.exit_code == 0);
    CHECK(!finished.out.empty());
    CHECK(finished.err.empty());
  }
}

TEST_CASE("exit code 2: the command line is wrong") {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"-q"}, "error: which verb?\n  try: `trainscope help` lists the verbs\n"},
      {{"trian"}, "error: there is no verb 'trian'\n  try: did you mean 'train'?\n"},
      {{"help", "trian"}, "error: there is no help on 'trian'\n  try: did you mean 'train'?\n"},
      {{"train"},
       "error: train needs MODEL.onnx, --data and --steps or --epochs\n  try: `trainscope train "
       "--help` shows the flags that matter\n"},
      {{"train", kMlp},
       "error: train needs --data and --steps or --epochs\n  try: `trainscope train --help` shows "
       "the flags that matter\n"},
      {{"train", kMlp, "--data", "synthetic"},
       "error: train needs --steps or --epochs\n  try: `trainscope train --help` shows the flags "
       "that matter\n"},
      {train({"--steps", "0"}), "error: --steps is '0': expected a whole number of 1 or more\n"},
      {train({"--steps", "2", "--lr", "-1"}),
       "error: --lr is '-1': expected a number of 0 or more\n"},
      {train({"--steps", "2", "--momentum", "0.9"}),
       "error: --momentum means nothing with --optimizer adamw\n"},
      {train({"--steps", "2", "--optimizer", "sgd", "--momentum", "1"}),
       "error: --momentum is '1': expected a number of 0 or more, below 1\n"},
      {train({"--steps", "2", "--betas", "0.9"}),
       "error: --betas is '0.9': expected two numbers A,B\n"},
      {train({"--steps", "2", "--batch", "8"}),
       "error: --batch 8 does not fit the model: input 'x' has 16 there\n"
       "  try: leave out --batch, or export the model with an open dimension\n"},
      {train({"--steps", "2", "--loss", "mse:out=y"}),
       "error: --loss: mse has no key 'out'\n  try: its keys are output, labels\n"},
      {train({"--steps", "2", "--disable", "fold_constant"}),
       "error: there is no pass 'fold_constant'\n  try: did you mean 'fold_constants'?\n"},
      {train({"--steps", "2", "--group", "*.bias:decay=0"}),
       "error: --group has no key 'decay'\n  try: its keys are weight_decay, lr_scale and lr\n"},
      {train({"--steps", "2", "--group", "*:lr_scale=-1"}),
       "error: --group: lr_scale is '-1': expected a number of 0 or more\n"},
      {train({"--steps", "2", "--lr", "0", "--group", "*:lr=1e-3"}),
       "error: --group: lr=0.001 needs a --lr above 0: use lr_scale\n"},
      {train({"--steps", "2", "--optimizer", "sgd", "--nesterov"}),
       "error: --nesterov needs a --momentum above 0\n"},
      {train({"--steps", "2", "--optimizer", "sgd", "--no-bias-correction"}),
       "error: --bias-correction means nothing with --optimizer sgd\n"},
      {train({"--steps", "2", "--ratio-limits", "0,1"}),
       "error: --ratio-limits means nothing with --optimizer adamw\n"},
      {train({"--steps", "2", "--optimizer", "lamb", "--ratio-limits", "2,1"}),
       "error: --ratio-limits is '2,1': expected 0 <= A <= B\n"},
      {train({"--steps", "2", "--optimizer", "adan"}),
       "error: --optimizer is 'adan': expected sgd, adam, adamw, adamw_hf, lamb, rmsprop, lion\n"
       "  try: did you mean 'adam'?\n"},
      {train({"--steps", "2", "--min-lr", "1e-4"}),
       "error: --min-lr means nothing with --schedule constant\n"},
      {train({"--steps", "2", "--schedule", "one_cycle", "--warmup", "1"}),
       "error: --warmup means nothing with --schedule one_cycle\n"},
      {train({"--steps", "2", "--schedule", "step"}),
       "error: the step schedule needs steps between its falls, 1 or more (--step-size N)\n"},
      {train({"--steps", "2", "--schedule", "linear", "--power", "2"}),
       "error: --power means nothing with --schedule linear\n"},
      {train({"--steps", "2", "--loss", "cross_entropy:weights=1:2"}),
       "error: the loss has 2 class weights, 'logits' has 10 classes\n"
       "  at: in pass loss\n"},
      {train({"--steps", "2", "--deterministic", "always"}),
       "error: --deterministic is 'always': expected threads, strict\n"},
      {{"eval", kMlp, "--best", "--data", "synthetic"},
       "error: --best needs the folder of a run\n"},
      {train({"--steps", "2", "--resume", "auto"}),
       "error: --resume auto needs --run-dir: which run?\n"
       "  try: --run-dir RUN --resume auto, or --resume RUN\n"},
      {{"doctor", "--device", "gpu"}, "error: --device is 'gpu': expected cpu or cuda\n"},
      {{"place", "x.csv"}, "error: place needs --out SOLUTION.csv\n"},
      {{"doctor", "extra"},
       "error: doctor takes no further argument: 'extra'\n"
       "  try: `trainscope help doctor` lists its flags\n"},
  };
  for (const auto& [words, message] : cases) {
    const Finished finished = run(words, {}, folder.path());
    INFO(message);
    CHECK(finished.exit_code == 2);
    CHECK(finished.err == message);
    CHECK(finished.out.empty());
  }
}

TEST_CASE("exit code 2: a stopped pipeline has no training step") {
  const TemporaryFolder folder;
  const Finished finished = run(train({"--steps", "2", "--stop-after", "loss"}), {}, folder.path());
  CHECK(finished.exit_code == 2);
  CHECK(finished.err.starts_with("error: the compiled graph has no training step\n"));
  CHECK(!fs::exists(folder / "runs"));
}

TEST_CASE("exit code 3: models and data that cannot be used") {
  const TemporaryFolder folder;
  std::ofstream(folder / "bad.onnx") << "this is no model";
  std::ofstream(folder / "bad.csv") << "id,lower,upper,size\na,3,1,5\n";
  write_model(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,4] x) => (float[2,4] logits) {"
      " a = Erf(x) b = NonMaxSuppression(a) c = NonZero(b) logits = NonZero(c) }",
      folder / "ops.onnx");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"check", "bad.onnx"},
        {"inspect", "bad.onnx"},
        {"plan", "bad.onnx"},
        {"train", "bad.onnx", "--data", "synthetic", "--steps", "1"},
        {"place", "bad.csv", "--out", "out.csv"},
        {"remat", "bad.csv", "--front"},
        {"inspect", "."}}) {
    const Finished finished = run(words, {}, folder.path());
    INFO(words.front());
    CHECK(finished.exit_code == 3);
    check_error_lines(finished.err);
  }
  const Finished finished = run({"check", "ops.onnx"}, {}, folder.path());
  CHECK(finished.exit_code == 3);
  // Every missing op in one report.
  CHECK(finished.err.find("NonMaxSuppression") != std::string::npos);
  CHECK(finished.err.find("NonZero") != std::string::npos);
}

TEST_CASE("exit code 4: there is no such device") {
  const Finished finished = run({"plan", kMlp, "--device", "cuda:0"});
  CHECK(finished.exit_code == 4);
  CHECK(finished.err.find("error: there is no CUDA device for trainscope\n  at: ") == 0);
}

TEST_CASE("exit code 5: no placement within the capacity") {
  const TemporaryFolder folder;
  std::ofstream(folder / "p.csv") << "id,lower,upper,size\na,0,2,64\nb,1,3,64\n";
  const Finished finished =
      run({"place", "p.csv", "--capacity", "100", "--out", "s.csv"}, {}, folder.path());
  CHECK(finished.exit_code == 5);
  CHECK(finished.err.find("(so none exists)") != std::string::npos);
  CHECK(finished.err.ends_with("\n  try: --capacity 128 or more\n"));
  CHECK(!fs::exists(folder / "s.csv"));
  CHECK(
      run({"place", "p.csv", "--capacity", "128", "--out", "s.csv"}, {}, folder.path()).exit_code ==
      0);
  CHECK(read_text(folder / "s.csv").starts_with("id,lower,upper,size,offset\n"));
}

TEST_CASE("place: several streams from two files") {
  const TemporaryFolder folder;
  std::ofstream(folder / "ops.csv") << "id,stream,after\nmake,gpu,\nnext,gpu,\ncopy,link,make\n";
  std::ofstream(folder / "p.csv") << "id,size,producer,readers\na,64,make,copy\nb,64,next,\n";
  std::ofstream(folder / "bad.csv") << "id,size,producer,readers\na,64,made,\n";
  const auto place = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "place");
    words.insert(words.end(), {"--streams", "ops.csv", "--out", "s.csv"});
    return run(words, {}, folder.path());
  };
  const Finished bad = place({"bad.csv"});
  CHECK(bad.exit_code == 3);
  CHECK(bad.err.find("buffers, line 2: producer names 'made', which is no operation") !=
        std::string::npos);
  CHECK(bad.err.find("'bad.csv' (operations in 'ops.csv'): buffers") != std::string::npos);
  std::ofstream(folder / "bad_ops.csv") << "id,stream,after\nmake,gpu,nobody\n";
  const Finished bad_operations =
      run({"place", "p.csv", "--streams", "bad_ops.csv", "--out", "s.csv"}, {}, folder.path());
  CHECK(bad_operations.exit_code == 3);
  CHECK(bad_operations.err.find("'bad_ops.csv' (buffers in 'p.csv'): operations, line 2") !=
        std::string::npos);
  CHECK(place({"p.csv", "--method", "exact"}).exit_code == 2);
  CHECK(place({"p.csv", "--capacity", "127"}).exit_code == 5);  // the copy may still read
  CHECK(!fs::exists(folder / "s.csv"));
  CHECK(place({"p.csv", "--capacity", "128"}).exit_code == 0);
  CHECK(
      read_text(folder / "s.csv").starts_with("id,size,producer,readers,offset\na,64,make,copy,"));
}

TEST_CASE("exit code 5: no recompute plan within the budget") {
  const TemporaryFolder folder;
  std::ofstream(folder / "p.csv") << "id,name,bytes,time,backward,inputs\n0,a,50,1,0,\n"
                                     "1,b,40,9,0,0\n";
  const Finished finished =
      run({"remat", "p.csv", "--budget", "89", "--out", "plan.csv"}, {}, folder.path());
  CHECK(finished.exit_code == 5);
  CHECK(finished.err ==
        "error: no plan fits 89 bytes: node 1 ('b') alone needs 90 for its inputs, value and "
        "workspace; the least workable budget is 90\n  at: p.csv\n  try: --budget 90 or more\n");
  CHECK(!fs::exists(folder / "plan.csv"));
}

TEST_CASE("exit code 6: files that cannot be read or written") {
  const TemporaryFolder folder;
  CHECK(run({"inspect", "nothing.onnx"}, {}, folder.path()).exit_code == 6);
  const Finished no_run =
      run({"eval", "runs/mpl-1"}, {}, folder.path());  // before --data is missed
  CHECK(no_run.exit_code == 6);
  CHECK(no_run.err == "error: there is no model or run 'runs/mpl-1'\n");
  CHECK(run({"export", kMlp, "-o", "no/such/folder/x.onnx"}, {}, folder.path()).exit_code == 6);
  CHECK(run(train({"--steps", "1", "--export", "no/such/folder/x.onnx"}), {}, folder.path())
            .exit_code == 6);
  CHECK(!fs::exists(folder / "runs"));  // refused before the run
  CHECK(run(train({"--steps", "1", "--resume", "nowhere"}), {}, folder.path()).exit_code == 6);
}

// The program with `output` as its standard output and nothing as its standard error.
int exit_code_with_output(int output, const std::string& verb) {
  const std::string program = std::string(TRAINSCOPE_BIN_DIR) + "/trainscope";
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(output, STDOUT_FILENO);
    close(STDERR_FILENO);
    execl(program.c_str(), program.c_str(), verb.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST_CASE("exit code 6: standard output on a full disk; a reader that went away is none") {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  CHECK(exit_code_with_output(full, "help") == 6);
  close(full);
  int ends[2] = {-1, -1};
  REQUIRE(pipe(ends) == 0);
  close(ends[0]);
  CHECK(exit_code_with_output(ends[1], "help") == 0);  // trainscope help | head -0
  close(ends[1]);
}

TEST_CASE("exit code 6: a run folder where none can be made") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  for (const char* place : {"file/run", "/proc/run", "/dev/null/run"}) {
    const Finished finished = run(train({"--steps", "1", "--run-dir", place}), {}, folder.path());
    INFO(place << ": " << finished.err);
    CHECK(finished.exit_code == 6);
    CHECK(finished.err.starts_with("error: "));
  }
}

TEST_CASE("exit code 7: a loss that is no number names the first bad tensor") {
  const TemporaryFolder folder;
  const Finished finished =
      run(train({"--steps", "20", "--optimizer", "sgd", "--lr", "1e30", "--run-dir", "r"}), {},
          folder.path());
  CHECK(finished.exit_code == 7);
  CHECK(finished.err.find("error: the loss is ") != std::string::npos);
  CHECK(finished.err.find("  at: first bad tensor: '") != std::string::npos);
  const Json manifest = Json::parse(read_text(folder / "r/manifest.json"));
  const Json& session = manifest.array_at("sessions").back();
  CHECK(session.get<std::string>("status") == "failed");
  CHECK(session.get<int>("exit_code") == 7);
  CHECK(session.get<std::string>("message").starts_with("the loss is "));
}

TEST_CASE("exit code 7: the last update made the parameters bad") {
  const TemporaryFolder folder;
  const Finished finished =
      run(train({"--steps", "1", "--optimizer", "sgd", "--lr", "1e300", "--run-dir", "r"}), {},
          folder.path());
  CHECK(finished.exit_code == 7);
  CHECK(finished.err.find("error: the validation loss after step 1 is ") != std::string::npos);
  CHECK(fs::is_empty(folder / "r/checkpoints"));
}

TEST_CASE("exit code 9: numbers outside their tolerance") {
  const TemporaryFolder folder;
  const fs::path copy = folder / "mlp";
  fs::copy(test_model("mlp"), copy);
  CHECK(run({"verify", copy.string(), "--threads", "1"}).exit_code == 0);
  // Another model than the numbers are of: one trained for a few steps.
  const Finished trained = run(train({"--steps", "3", "--run-dir", "r", "-q"}), {}, folder.path());
  REQUIRE(trained.exit_code == 0);
  fs::copy_file(folder / "r/model.onnx", copy / "model.onnx", fs::copy_options::overwrite_existing);
  const Finished finished = run({"verify", copy.string(), "--json", "--threads", "1"});
  CHECK(finished.exit_code == 9);
  CHECK(finished.json().get<int>("failed") > 0);
}

TEST_CASE("exit code 5: a step that no machine has the memory for") {
  const TemporaryFolder folder;
  write_model(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[B,K] x) => (float[B,K] y)"
      " <float[1] w = {2}> { y = Mul(x, w) }",
      folder / "wide.onnx");
  const std::vector<std::string> sizes = {"--loss",  "mse:output=y", "--batch",   "16777216",
                                          "--shape", "K=1000000",    "--threads", "1"};
  std::vector<std::string> words = {"plan", "wide.onnx", "--json"};
  words.insert(words.end(), sizes.begin(), sizes.end());
  // Planning needs no memory of that size.
  const Finished planned = run(words, {}, folder.path());
  INFO(planned.err);
  REQUIRE(planned.exit_code == 0);
  CHECK(planned.json().get<std::int64_t>("peak_bytes") > std::int64_t{1} << 45);
  words = {"train", "wide.onnx", "--data", "synthetic,examples=64", "--steps", "1"};
  words.insert(words.end(), sizes.begin(), sizes.end());
  const Finished finished = run(words, {}, folder.path());
  INFO(finished.err);
  CHECK(finished.exit_code == 5);
  CHECK(finished.err.starts_with("error: "));
  CHECK(!fs::exists(folder / "runs"));
}

TEST_CASE("exit codes: the page of the documentation has the table of the program") {
  const std::string page = read_text(fs::path(TRAINSCOPE_SOURCE_DIR) / "docs/exit-codes.md");
  for (const ExitCode& code : exit_codes()) {
    const std::string row = fmt::format("\n| {} | `{}` | {} |", code.code, code.name, code.meaning);
    INFO(row);
    CHECK(page.find(row) != std::string::npos);
  }
}

}  // namespace
}  // namespace trainscope::test
