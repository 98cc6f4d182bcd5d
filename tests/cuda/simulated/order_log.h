// What orders the work of a simulated GPU, call by call, for tests that ask what a call is for.
#pragma once

#include <cstdint>
#include <cstdio>

namespace trainscope::simulated {

// TRAINSCOPE_SIMULATED_ORDER=FILE: a line for each call, in their order: what, the stream's number,
// and a name of the moment where there is one ("-": none). The calls: `work` and `replay` (of a
// graph) give the stream work; `record` makes a moment of a stream, `wait` has a stream wait for
// one; `begin` and `end` a capture; at `drain` and `finish` the host waits for a stream, for a
// moment (of stream 0 here).
class OrderLog {
 public:
  OrderLog();
  ~OrderLog();
  OrderLog(const OrderLog&) = delete;

  void add(const char* what, std::uint32_t stream, const void* moment = nullptr);

 private:
  std::FILE* const file_;  // null: nobody asks
};

}  // namespace trainscope::simulated
