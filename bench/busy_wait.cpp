// Trains as `trainscope train` does, while calls of one op take longer than they have to: an
// observer waits, busily, inside of their spans. For bench/profiler_pairs.py, which lets `compare`
// find the op.
//   busy_wait_bench OP SHARE TURN train MODEL.onnx FLAGS...
// OP is an op ("Gelu") or the ONNX node that calls stem from; SHARE of each call's own time is
// added to it: 0.1. After TURN seconds of training the process stops itself between two calls
// (SIGSTOP), for whoever started it to let another one train, and to continue it (SIGCONT).
#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/flags/parser.h"
#include "cli/flags/train_request.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/exec/execution_events.h"
#include "engine/run/training_run.h"

namespace trainscope {

Command train_command();

namespace {

using Clock = std::chrono::steady_clock;

// Listeners are told in their order, and a profiler comes last: what this one waits at a call's end
// is still within the profiler's span, and a turn that ends where a call begins is not.
class BusyWait final : public ExecutionEvents {
 public:
  BusyWait(std::string op, double share, double turn_seconds)
      : op_(std::move(op)), share_(share), turn_(turn_seconds) {}

  void set_program(std::shared_ptr<const Compiled> compiled) {
    compiled_ = std::move(compiled);
    const Program& program = compiled_->program;
    slow_.assign(program.calls.size(), false);
    for (std::size_t i = 0; i < program.calls.size(); ++i) {
      const Node& node = program.graph.node(program.calls[i].node);
      slow_[i] = op_ == node.op->name || op_ == source_of(node);
      calls_ += slow_[i] ? 1 : 0;
    }
    require(calls_ > 0, ErrorCode::kUsage, "no call of the step is of the op or node '{}'",
            printable(op_));
  }
  int calls() const { return calls_; }

  void call_begin(const CallEvent& event) override {
    if (!in_section_ && event.within == kNoCall && Clock::now() - turn_begin_ > turn_) {
      raise(SIGSTOP);
      turn_begin_ = Clock::now();
    }
    if (is_slow(event)) begin_ = Clock::now();
  }
  void call_end(const CallEvent& event) override {
    if (!is_slow(event)) return;
    const Clock::time_point now = Clock::now();
    const auto wait = std::chrono::duration_cast<Clock::duration>((now - begin_) * share_);
    while (Clock::now() - now < wait) {
    }
  }
  // Other threads are at calls of a section, which a stop would lengthen.
  void section_begin(std::size_t) override { in_section_ = true; }
  void section_end(std::size_t) override { in_section_ = false; }

 private:
  static const std::string& source_of(const Node& node) {
    return node.provenance.sources.empty() ? node.name : *node.provenance.sources.begin();
  }
  bool is_slow(const CallEvent& event) const {
    return event.thread == 0 && event.within == kNoCall &&
           slow_[static_cast<std::size_t>(event.call)];
  }

  const std::string op_;
  const double share_;
  const std::chrono::duration<double> turn_;
  std::shared_ptr<const Compiled> compiled_;
  std::vector<bool> slow_;  // by CallId
  int calls_ = 0;
  Clock::time_point begin_;
  Clock::time_point turn_begin_ = Clock::now();
  bool in_section_ = false;
};

class SetProgram final : public RunEvents {
 public:
  explicit SetProgram(BusyWait& wait) : wait_(wait) {}
  void session_begin(const SessionFacts& facts) override { wait_.set_program(facts.compiled); }

 private:
  BusyWait& wait_;
};

int run(std::string op, double share, double turn_seconds, const std::vector<std::string>& words) {
  const Command command = train_command();
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  ParsedLine line = parse_line(command, rest);
  const Environment environment = [](const std::string&) { return std::nullopt; };
  const Invocation invocation(command, Settings(command, line.flags, environment),
                              std::move(line.arguments), words);
  TrainRequest request = train_request(invocation);
  const auto wait = std::make_shared<BusyWait>(std::move(op), share, turn_seconds);
  request.execution_events.push_back(wait);
  SetProgram events(*wait);
  train(std::move(request), events);
  fmt::print("{{\"calls\": {}}}\n", wait->calls());
  return 0;
}

}  // namespace
}  // namespace trainscope

int main(int count, char** words) {
  const std::vector<std::string> all(words + 1, words + count);
  if (all.size() < 5 || all[3] != "train") {
    fmt::print(stderr, "usage: busy_wait_bench OP SHARE TURN train MODEL.onnx FLAGS...\n");
    return 2;
  }
  try {
    return trainscope::run(all[0], std::atof(all[1].c_str()), std::atof(all[2].c_str()),
                           {all.begin() + 3, all.end()});
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
