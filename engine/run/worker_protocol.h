// What a worker, a process that trains for another one, and its owner say to each other: a line of
// JSON for each message (docs/worker-protocol.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/bundle/format.h"
#include "engine/core/error.h"

namespace trainscope {

// Raised when a reader of the earlier version would misread a message; kinds and members that a
// reader does not know are skipped.
inline constexpr std::int64_t kWorkerProtocol = 1;
// A longer line, without its end, is no message.
inline constexpr std::size_t kMostWorkerLineBytes = std::size_t{64} << 10;

// The first message of a worker.
struct WorkerHello {
  std::int64_t protocol = kWorkerProtocol;
  std::string program_version = {};
  std::int64_t process = 0;  // its id
};

// Of compilation, evaluation and the record, as RunEvents::progress has it.
struct WorkerProgress {
  std::string work = {};
  std::string now = {};
  std::int64_t done = 0;
  std::int64_t total = 0;  // 0: not known
};

// The session has begun.
struct WorkerBegin {
  std::string folder = {};  // of the run
  std::int64_t from_step = 0;
  std::int64_t to_step = 0;  // the last one that it will make
};

// Bytes of memory: of the arena as planned and as used so far (0 before the first step), and of the
// whole process.
struct WorkerPeak {
  std::int64_t predicted_bytes = 0;
  std::int64_t used_bytes = 0;
  std::int64_t resident_bytes = 0;
};

struct WorkerStep {
  std::int64_t step = 0;
  double loss = 0.0;  // NaN where it is no number
  double milliseconds = 0.0;
};

// There is a checkpoint of this step.
struct WorkerCheckpoint {
  std::int64_t step = 0;
};

// The last message of a session that ended well.
struct WorkerDone {
  RunStatus status = RunStatus::kFinished;  // or kInterrupted
  std::int64_t step = 0;                    // the last one done
};

// The last message of one that did not.
struct WorkerFault {
  ErrorCode code = ErrorCode::kRunFailed;
  std::string message = {};
  std::vector<std::string> where = {};
  std::string hint = {};
};

// The owner's only message: end after the step under way, with a checkpoint.
struct WorkerStop {};

using WorkerMessage = std::variant<WorkerHello, WorkerProgress, WorkerBegin, WorkerPeak, WorkerStep,
                                   WorkerCheckpoint, WorkerDone, WorkerFault, WorkerStop>;

// A line with its end.
std::string worker_line(const WorkerMessage& message);
// Of a line without its end; none for a kind that this version does not know. Throws kBadInput for
// what is no message, naming what is wrong with it.
std::optional<WorkerMessage> worker_message(std::string_view line);

// Bytes as they come, cut into lines.
class WorkerLines {
 public:
  // Throws kBadInput when more than kMostWorkerLineBytes come without a line end.
  void add(std::string_view bytes);
  // The next whole line without its end; none while there is none.
  std::optional<std::string> next();

 private:
  std::string bytes_;
  std::size_t begin_ = 0;  // of what next() has not given
};

}  // namespace trainscope
