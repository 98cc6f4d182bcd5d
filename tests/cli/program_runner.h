// Runs the built program as a process of its own, as its users do.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/json.h"

namespace trainscope::test {

// A new folder that goes away with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

struct Finished {
  int exit_code = 0;  // 128 + signal when a signal ended it
  std::string out;
  std::string err;
  Json json() const { return Json::parse(out); }
};

// A running program; the destructor waits for it.
class Process {
 public:
  // `words` follow the program's name; `environment` is added to the test's own; "" for `folder`
  // is the test's own too.
  Process(const std::vector<std::string>& words,
          const std::map<std::string, std::string>& environment = {},
          const std::filesystem::path& folder = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  // Keeps the plan of a run that ended well, see keep_plan_of_run.
  Finished wait();

 private:
  TemporaryFolder outputs_;
  std::vector<std::string> words_;
  std::filesystem::path folder_;
  int pid_ = -1;
};

Finished run(const std::vector<std::string>& words,
             const std::map<std::string, std::string>& environment = {},
             const std::filesystem::path& folder = {});

// Asks again and again until it is so; false after `limit`.
bool wait_until(const std::function<bool()>& is_so,
                std::chrono::seconds limit = std::chrono::seconds(60));

// A model file of the tests: "mlp/model.onnx".
std::filesystem::path test_model(const std::string& name);
// A file of PyTorch's exporters: "reg.safetensors".
std::string exported(const std::string& name);
// c.onnx, which makes scores of three classes [N,3] of x [N,2], and n.onnx, which makes a number
// [N,1] of it: one matmul each.
void write_two_models(const std::filesystem::path& folder);
// ONNX's text form as a model file.
void write_model(const std::string& text, const std::filesystem::path& path);

std::string read_text(const std::filesystem::path& path);
bool text_has(const std::string& text, std::string_view part);
// Of the steps of a run, in order.
std::vector<double> losses_of(const std::filesystem::path& run_folder);

}  // namespace trainscope::test
