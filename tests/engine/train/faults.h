// File calls that fail on request.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/core/system/file_calls.h"

namespace trainscope {

// Which calls fail. A call is counted from 1, over all kinds or over those of one name.
struct Fault {
  std::string_view call = {};  // "open", "write", "sync", "rename", "exchange", "mkdir"; empty: all
  int first = 1;
  bool all_after = true;  // the first and all after it, or it alone
  int error_number = 5;   // EIO
};

// The system's calls, until one is to fail. Nothing here loses its power: `sync` waits for nothing,
// which makes the tests ten times as fast.
class TestCalls final : public FileCalls {
 public:
  TestCalls() = default;  // none fails
  explicit TestCalls(const Fault& fault) : fault_(fault), armed_(true) {}

  // How many calls failed, and the names of all calls in their order.
  int failures() const { return failures_; }
  const std::vector<std::string>& calls() const { return calls_; }

  int open(int folder, const char* name, int flags, mode_t mode) const override;
  ssize_t write(int fd, const void* data, std::size_t size) const override;
  int sync(int fd) const override;
  int rename(int folder, const char* from, const char* to) const override;
  int exchange(int folder, const char* a, const char* b) const override;
  int make_folder(int folder, const char* name) const override;

 private:
  bool fails(std::string_view call) const;

  Fault fault_;
  bool armed_ = false;
  mutable int counted_ = 0;
  mutable int failures_ = 0;
  mutable std::vector<std::string> calls_;
};

}  // namespace trainscope
