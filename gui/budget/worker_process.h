// A process that trains for this one, seen from here: started, asked to stop, and what it says.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/folder.h"
#include "engine/run/worker_protocol.h"

namespace trainscope::gui {

// All that a worker has said so far.
struct WorkerState {
  enum class Phase : std::uint8_t {
    kStarting,  // until the session has begun: it compiles
    kTraining,  // the session goes on
    kStopping,  // it was asked to stop
    kFinished,  // it made the steps that it was to make
    kStopped,   // it ended earlier, as asked
    kFailed,    // it ended in another way: `fault`
  };
  Phase phase = Phase::kStarting;
  std::int64_t process = 0;
  WorkerProgress progress = {};
  std::optional<WorkerBegin> begin = {};
  std::optional<WorkerPeak> peak = {};
  std::vector<WorkerStep> steps = {};
  std::int64_t checkpoint_step = 0;  // from which the run can be resumed; 0: none of this session
  std::string fault = {};            // one line
  std::string hint = {};             // ... what to do about it

  bool has_ended() const { return phase >= Phase::kFinished; }
};

class WorkerProcess {
 public:
  // Starts `program` with `words` behind its name, and --worker-fd. Where it cannot be started the
  // state says so.
  WorkerProcess(const std::filesystem::path& program, std::vector<std::string> words);
  // A worker that still runs loses its owner: it ends after the step under way, with a checkpoint.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  const WorkerState& state() const { return state_; }
  // Takes what there is to read, without waiting; to be called again and again. Whether the state
  // is another one now.
  bool poll();
  // Asks it to end after the step under way.
  void stop();

 private:
  void start(const std::filesystem::path& program, std::vector<std::string> words);
  bool read_messages();
  void read_errors();
  void take(const WorkerMessage& message);
  bool look_for_end();
  void end(int status);
  void fail(std::string fault, std::string hint);

  WorkerState state_;
  FileDescriptor socket_;  // closed once the other end is
  FileDescriptor errors_;  // what it writes on standard error
  WorkerLines lines_;
  std::string error_text_;            // the last of it
  std::optional<WorkerDone> done_;    // what it said last
  std::optional<WorkerFault> fault_;  // ... or that
  bool greeted_ = false;
  bool ended_ = false;  // the process is gone, and its exit status taken
};

}  // namespace trainscope::gui
