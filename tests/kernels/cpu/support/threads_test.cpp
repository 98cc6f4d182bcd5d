// The pool's threads: started when asked for, kept for loops.
#include "kernels/cpu/support/threads.h"

#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

std::set<std::string> threads_of_process() {
  std::set<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    ids.insert(entry.path().filename().string());
  }
  return ids;
}

TEST_CASE("start_threads: a loop on as many threads, or on fewer, starts none") {
  constexpr int kThreads = 5;
  std::thread caller([] {  // with a pool of its own
    CHECK(!start_threads(kThreads));
    CHECK(!start_threads(2));
    const std::set<std::string> started = threads_of_process();
    std::array<std::string, kThreads> ids;  // by part
    parallel_for(kThreads, kThreads, 1, [&](std::int64_t begin, std::int64_t) {
      ids[static_cast<std::size_t>(begin)] = std::to_string(syscall(SYS_gettid));
    });
    for (const std::string& id : ids) CHECK(started.contains(id));
  });
  caller.join();
}

}  // namespace
}  // namespace trainscope::cpu
