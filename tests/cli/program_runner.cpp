// Runs the built program as a process of its own, as its users do.
#include "tests/cli/program_runner.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "engine/bundle/format.h"
#include "engine/bundle/reader.h"
#include "engine/session.h"
#include "tests/support/kept_plans.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

void redirect(const fs::path& file, int descriptor) {
  const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (opened < 0 || dup2(opened, descriptor) < 0) _exit(126);
}

[[noreturn]] void become(const std::vector<std::string>& words,
                         const std::map<std::string, std::string>& environment,
                         const fs::path& folder) {
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  if (!folder.empty() && chdir(folder.c_str()) != 0) _exit(126);
  const std::string program = std::string(TRAINSCOPE_BIN_DIR) + "/trainscope";
  std::vector<char*> arguments = {const_cast<char*>(program.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  _exit(127);
}

// Those that the program may have left.
std::vector<fs::path> run_folders(const std::vector<std::string>& words, const fs::path& folder) {
  const auto flag = std::ranges::find(words, "--run-dir");
  if (flag != words.end() && flag + 1 != words.end()) return {folder / *(flag + 1)};
  std::vector<fs::path> numbered;
  if (!folder.empty() && fs::exists(folder / "runs")) {
    for (const fs::directory_entry& run : fs::directory_iterator(folder / "runs")) {
      numbered.push_back(run.path());
    }
  }
  return numbered;
}

// Devices' plans go where they can be kept.
std::vector<std::string> with_plans(std::vector<std::string> words, const fs::path& plans) {
  const bool worlds = std::ranges::find(words, "--target") != words.end();
  if (!worlds || std::getenv(kKeptPlansVariable) == nullptr) return words;
  if (std::ranges::find(words, "--plans") != words.end()) return words;
  words.insert(words.end(), {"--plans", plans.string()});
  return words;
}

void keep_plans_below(const fs::path& folder) {
  if (!fs::exists(folder)) return;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == kRunPlanFile) keep_plan_of_run(entry.path().parent_path());
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "trainscope-test-XXXXXX").string();
  REQUIRE(mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Process::Process(const std::vector<std::string>& words,
                 const std::map<std::string, std::string>& environment, const fs::path& folder)
    : words_(with_plans(words, outputs_ / "plans")), folder_(folder) {
  pid_ = fork();
  REQUIRE(pid_ >= 0);
  if (pid_ > 0) return;
  redirect(outputs_ / "out", STDOUT_FILENO);
  redirect(outputs_ / "err", STDERR_FILENO);
  become(words_, environment, folder);
}

Process::~Process() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const { kill(pid_, number); }

Finished Process::wait() {
  int status = 0;
  REQUIRE(waitpid(pid_, &status, 0) == pid_);
  pid_ = -1;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == 0) std::ranges::for_each(run_folders(words_, folder_), keep_plan_of_run);
  if (code == 0) keep_plans_below(outputs_ / "plans");
  return {
      .exit_code = code, .out = read_text(outputs_ / "out"), .err = read_text(outputs_ / "err")};
}

Finished run(const std::vector<std::string>& words,
             const std::map<std::string, std::string>& environment, const fs::path& folder) {
  return Process(words, environment, folder).wait();
}

bool wait_until(const std::function<bool()>& is_so, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

fs::path test_model(const std::string& name) {
  return fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/models" / name;
}

void write_model(const std::string& text, const fs::path& path) {
  export_inference(OnnxModel::parse_text(text), path, {});
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string exported(const std::string& name) {
  return (fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/exporters" / name).string();
}

void write_two_models(const fs::path& folder) {
  write_model(
      "<ir_version: 8, opset_import: [\"\" : 17]> c (float[N,2] x) => (float[N,3] y)"
      " <float[2,3] w = {0.1,0.2,0.3,-0.1,-0.2,0.4}> { y = MatMul(x, w) }",
      folder / "c.onnx");
  write_model(
      "<ir_version: 8, opset_import: [\"\" : 17]> n (float[N,2] x) => (float[N,1] y)"
      " <float[2,1] w = {0.1,0.2}> { y = MatMul(x, w) }",
      folder / "n.onnx");
}

bool text_has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::vector<double> losses_of(const fs::path& run_folder) {
  std::vector<double> losses;
  for (const StepRecord& step : RunReader::open(run_folder).metrics().steps) {
    losses.push_back(step.loss);
  }
  return losses;
}

}  // namespace trainscope::test
