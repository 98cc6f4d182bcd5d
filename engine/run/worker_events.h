// A listener that makes a run a worker: it tells an owner at the other end of a socket how the
// session goes on, and ends it when the owner says so or is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>

#include "engine/core/folder.h"
#include "engine/run/run_events.h"
#include "engine/run/worker_protocol.h"

namespace trainscope {

// One end of a socket pair, as a worker uses it. No call waits for the owner but finish().
class WorkerSocket {
 public:
  // Takes the descriptor over. Throws kUsage when it is no socket.
  explicit WorkerSocket(int descriptor);

  void send(const WorkerMessage& message);
  // The same for the last message, which is waited for, some seconds at most.
  void finish(const WorkerMessage& message);
  // Whether the owner has said so by now, or is gone.
  bool wants_stop();

 private:
  void write_waiting();
  void read_messages();

  FileDescriptor socket_;
  WorkerLines lines_;
  std::string waiting_;  // what the socket has not taken yet
  bool stop_ = false;
};

class WorkerEvents final : public RunEvents {
 public:
  // Says hello. `stop` is asked when the session is to end.
  WorkerEvents(int descriptor, std::string program_version, std::stop_source stop);

  // For an error outside the session; one alone is told.
  void tell_fault(const Error& error);

  void session_begin(const SessionFacts& facts) override;
  void step_end(const StepRecord& step, std::int64_t used_bytes) override;
  void steps_end() override { look_for_stop(); }
  void checkpoint_end(std::int64_t step, const std::filesystem::path& folder) override;
  void progress(const Progress& moment) override;
  void session_end(RunStatus status) override;
  void session_failed(const Error& error) override { tell_fault(error); }

 private:
  void tell_peak(std::int64_t used_bytes);
  void look_for_stop();

  WorkerSocket socket_;
  std::stop_source stop_;
  std::chrono::steady_clock::time_point told_progress_ = {};
  std::int64_t predicted_bytes_ = 0;
  std::int64_t step_ = 0;
  bool ended_ = false;
};

}  // namespace trainscope
