// A command line of trainscope that prints JSON, run in a process of its own, behind others.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/folder.h"
#include "engine/core/json.h"

namespace trainscope::gui {

class JsonProcess {
 public:
  enum class Phase : std::uint8_t { kRunning, kDone, kFailed };

  // Starts `program` with `words` behind its name, and --json. Where it cannot be started it has
  // failed.
  JsonProcess(const std::filesystem::path& program, std::vector<std::string> words);
  // Ends a process that still runs.
  ~JsonProcess();
  JsonProcess(const JsonProcess&) = delete;
  JsonProcess& operator=(const JsonProcess&) = delete;

  Phase phase() const { return phase_; }
  const Json& json() const { return json_; }           // of kDone
  const std::string& fault() const { return fault_; }  // of kFailed: a line
  const std::string& hint() const { return hint_; }    // ... and what to do about it

  // Takes what there is to read, without waiting; to be called again and again.
  void poll();

 private:
  void start(const std::filesystem::path& program, std::vector<std::string> words);
  bool read_output();
  void end(int status);
  void fail(std::string fault, std::string hint);

  Phase phase_ = Phase::kRunning;
  pid_t process_ = 0;  // 0: there is none any more
  FileDescriptor output_;
  std::string text_;
  Json json_;
  std::string fault_;
  std::string hint_;
};

}  // namespace trainscope::gui
