// A run with an owner at the other end of a socket pair.
#include "engine/run/worker_events.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/bundle/reader.h"
#include "engine/core/file.h"
#include "engine/run/training_run.h"
#include "tests/engine/run/run_tools.h"

namespace trainscope::test {
namespace {

// Both ends of a pair: the owner's, and the worker's until it is given away.
class Owner {
 public:
  Owner() {
    std::array<int, 2> ends = {};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    socket_ = FileDescriptor(ends[0]);
    worker_ = ends[1];
  }

  int give_worker_end() { return std::exchange(worker_, -1); }
  void leave() { socket_.close(); }
  void send(const std::string& bytes) const {
    REQUIRE(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  // All that there is, in order.
  std::vector<WorkerMessage> messages() {
    std::array<char, 4096> bytes = {};
    while (true) {
      const ssize_t size = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (size <= 0) break;
      lines_.add({bytes.data(), static_cast<std::size_t>(size)});
    }
    std::vector<WorkerMessage> list;
    while (const std::optional<std::string> line = lines_.next()) {
      list.push_back(worker_message(*line).value());
    }
    return list;
  }

 private:
  FileDescriptor socket_;
  int worker_ = -1;
  WorkerLines lines_;
};

template <typename Message>
std::vector<Message> all_of(const std::vector<WorkerMessage>& messages) {
  std::vector<Message> list;
  for (const WorkerMessage& each : messages) {
    if (const auto* found = std::get_if<Message>(&each)) list.push_back(*found);
  }
  return list;
}

// Does something to the owner's end after a step.
struct AfterStep final : RunEvents {
  std::int64_t step = 0;
  std::function<void()> act;
  void step_end(const StepRecord& record, std::int64_t /*used_bytes*/) override {
    if (record.step == step) act();
  }
};

struct Worker {
  std::stop_source stop;
  std::shared_ptr<WorkerEvents> events;
  std::shared_ptr<AfterStep> after = std::make_shared<AfterStep>();

  explicit Worker(Owner& owner)
      : events(std::make_shared<WorkerEvents>(owner.give_worker_end(), "1.2.3", stop)) {}

  TrainingResult run(TrainRequest request) {
    auto listeners = std::make_shared<RunListeners>();
    listeners->add(after);
    listeners->add(events);
    return TrainingRun(std::move(request), listeners, stop.get_token()).run();
  }
};

}  // namespace

TEST_CASE("worker: an owner hears hello, begin, peaks, steps, the checkpoint and the end") {
  const ScratchFolder folder;
  Owner owner;
  Worker worker(owner);
  const TrainingResult result = worker.run(points_request(folder.path / "run", 5));
  const std::vector<WorkerMessage> messages = owner.messages();
  const auto* hello = std::get_if<WorkerHello>(&messages.front());
  REQUIRE(hello != nullptr);
  CHECK(hello->program_version == "1.2.3");
  CHECK(hello->process == ::getpid());
  const auto begins = all_of<WorkerBegin>(messages);
  REQUIRE(begins.size() == 1);
  CHECK(begins[0].folder == (folder.path / "run").string());
  CHECK(begins[0].from_step == 0);
  CHECK(begins[0].to_step == 5);
  const auto steps = all_of<WorkerStep>(messages);
  const std::vector<StepRecord> recorded = RunReader::open(folder.path / "run").metrics().steps;
  REQUIRE(steps.size() == 5);
  REQUIRE(recorded.size() == 5);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CHECK(steps[i].step == recorded[i].step);
    CHECK(steps[i].loss == recorded[i].loss);
    CHECK(steps[i].milliseconds == recorded[i].step_ms);
  }
  const auto peaks = all_of<WorkerPeak>(messages);
  REQUIRE(peaks.size() == 6);
  CHECK(peaks.front().used_bytes == 0);
  for (const WorkerPeak& peak : peaks) {
    CHECK(peak.predicted_bytes == result.predicted_bytes);
    CHECK(peak.resident_bytes > 0);
  }
  CHECK(peaks.back().used_bytes == result.used_bytes);
  const auto saved = all_of<WorkerCheckpoint>(messages);
  REQUIRE(saved.size() == 1);
  CHECK(saved[0].step == 5);
  const auto* done = std::get_if<WorkerDone>(&messages.back());
  REQUIRE(done != nullptr);
  CHECK(done->status == RunStatus::kFinished);
  CHECK(done->step == 5);
}

TEST_CASE("worker: a stop ends the session after the step, with a checkpoint") {
  const ScratchFolder folder;
  Owner owner;
  Worker worker(owner);
  worker.after->step = 3;
  worker.after->act = [&] { owner.send(worker_line(WorkerStop{})); };
  const TrainingResult result = worker.run(points_request(folder.path / "run", 50));
  CHECK(result.status == RunStatus::kInterrupted);
  CHECK(result.step == 3);
  const std::vector<WorkerMessage> messages = owner.messages();
  CHECK(all_of<WorkerCheckpoint>(messages).back().step == 3);
  CHECK(std::get<WorkerDone>(messages.back()).status == RunStatus::kInterrupted);
}

TEST_CASE("worker: an owner that is gone, or sends something else, is a stop too") {
  for (const std::string& sent :
       {std::string(), std::string("stop!\n"), std::string(kMostWorkerLineBytes + 4096, 'x')}) {
    CAPTURE(sent.size());
    const ScratchFolder folder;
    Owner owner;
    Worker worker(owner);
    worker.after->step = 2;
    worker.after->act = [&] { sent.empty() ? owner.leave() : owner.send(sent); };
    const TrainingResult result = worker.run(points_request(folder.path / "run", 50));
    CHECK(result.status == RunStatus::kInterrupted);
    CHECK(result.step == 2);
  }
}

TEST_CASE("worker: other messages of an owner are skipped") {
  const ScratchFolder folder;
  Owner owner;
  owner.send("{\"kind\": \"weather\"}\n");
  Worker worker(owner);
  CHECK(worker.run(points_request(folder.path / "run", 4)).step == 4);
}

TEST_CASE("worker: an owner that does not read holds nothing up, and gets all when it does") {
  const ScratchFolder folder;
  Owner owner;
  Worker worker(owner);
  std::vector<WorkerMessage> messages;
  std::thread reader;
  worker.after->step = 2999;  // long after the socket is full
  worker.after->act = [&] {
    reader = std::thread([&] {
      while (messages.empty() || !std::holds_alternative<WorkerDone>(messages.back())) {
        for (WorkerMessage& each : owner.messages()) messages.push_back(std::move(each));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  };
  const TrainingResult result = worker.run(points_request(folder.path / "run", 3000));
  reader.join();
  CHECK(result.status == RunStatus::kFinished);
  CHECK(all_of<WorkerStep>(messages).size() == 3000);
}

TEST_CASE("worker: an error is the last message, told once") {
  const ScratchFolder folder;
  Owner owner;
  Worker worker(owner);
  TrainRequest request = points_request(folder.path / "run", 5);
  request.schedule.learning_rate = 1e30;
  CHECK_THROWS_AS(worker.run(std::move(request)), Error);
  worker.events->tell_fault(Error(ErrorCode::kIo, "something later"));
  const auto faults = all_of<WorkerFault>(owner.messages());
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].code == ErrorCode::kNumeric);
}

TEST_CASE("worker: a descriptor that is no socket is refused") {
  const FileDescriptor file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int descriptor : {file.get(), 987}) {
    try {
      const WorkerEvents events(descriptor, "1", std::stop_source());
      FAIL("was taken");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kUsage);
    }
  }
}

TEST_CASE("training run: no more steps in a session than it may make, then it goes on") {
  const ScratchFolder folder;
  TrainRequest whole = points_request(folder.path / "whole", 12);
  RunEvents nobody;
  train(std::move(whole), nobody);
  for (int session = 1; session <= 3; ++session) {
    TrainRequest request = points_request(folder.path / "parts", 12);
    request.session_steps = 5;
    request.resume = "auto";
    const TrainingResult result = train(std::move(request), nobody);
    CHECK(result.step == std::min(5 * session, 12));
    CHECK(result.exit_code == 0);
    CHECK(result.status == (session < 3 ? RunStatus::kInterrupted : RunStatus::kFinished));
  }
  const auto bytes = [&](const char* run) {
    return read_file(folder.path / run / kTrainedModelFile, std::uint64_t{1} << 24);
  };
  CHECK(bytes("whole") == bytes("parts"));
}

}  // namespace trainscope::test
