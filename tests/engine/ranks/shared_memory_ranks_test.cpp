// Ranks that share memory: what each function gives, and what they say of ranks that end or differ.
#include "engine/ranks/shared_memory_ranks.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "engine/core/error.h"
#include "tests/support/forked_ranks.h"

namespace trainscope::test {
namespace {

using Code = DeviceStatus::Code;

// Without a remainder, with one, fewer elements than ranks, and more than fit into a slot.
constexpr std::int64_t kSizes[] = {0, 1, 2, 7, 1000, 65536, 65537, 200'003};

// Element i of what rank r has: sums of these round, so that their order shows.
template <typename T>
T element(int rank, std::int64_t i) {
  return static_cast<T>(std::sin(static_cast<double>(i * 7 + rank * 13 + 1)) *
                        std::pow(10.0, static_cast<double>((i + rank) % 9)));
}

template <typename T>
std::vector<T> elements_of(int rank, std::int64_t count) {
  std::vector<T> all(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    all[static_cast<std::size_t>(i)] = element<T>(rank, i);
  }
  return all;
}

// Of the ranks in their order, one after the other.
template <typename T>
std::vector<T> sum_of(int ranks, std::int64_t count) {
  std::vector<T> sum = elements_of<T>(0, count);
  for (int r = 1; r < ranks; ++r) {
    for (std::int64_t i = 0; i < count; ++i) {
      sum[static_cast<std::size_t>(i)] += element<T>(r, i);
    }
  }
  return sum;
}

template <typename T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <typename T>
bool all_reduces(Communicator& ranks, std::int64_t count, DType dtype) {
  const std::vector<T> want = sum_of<T>(ranks.size(), count);
  std::vector<T> mine = elements_of<T>(ranks.rank(), count);
  std::vector<T> got(mine.size(), T{-1});
  bool ok = ranks.all_reduce({}, mine.data(), got.data(), count, dtype).done() && same(got, want);
  ok = ranks.all_reduce({}, mine.data(), mine.data(), count, dtype).done() && ok;
  return ok && same(mine, want);
}

bool reduce_scatters(Communicator& ranks, std::int64_t count) {
  const std::vector<float> want = sum_of<float>(ranks.size(), count * ranks.size());
  const std::vector<float> mine = elements_of<float>(ranks.rank(), count * ranks.size());
  std::vector<float> got(static_cast<std::size_t>(count), -1.0F);
  if (!ranks.reduce_scatter({}, mine.data(), got.data(), count, DType::kF32).done()) return false;
  const auto begin = want.begin() + count * ranks.rank();
  return same(got, std::vector<float>(begin, begin + count));
}

bool all_gathers(Communicator& ranks, std::int64_t count) {
  const std::vector<double> mine = elements_of<double>(ranks.rank(), count);
  std::vector<double> got(static_cast<std::size_t>(count * ranks.size()), -1.0);
  std::vector<double> want;
  for (int r = 0; r < ranks.size(); ++r) {
    const std::vector<double> part = elements_of<double>(r, count);
    want.insert(want.end(), part.begin(), part.end());
  }
  return ranks.all_gather({}, mine.data(), got.data(), count, DType::kF64).done() &&
         same(got, want);
}

bool broadcasts(Communicator& ranks, std::int64_t count) {
  bool ok = true;
  for (int root = 0; root < ranks.size(); ++root) {
    std::vector<float> data = elements_of<float>(ranks.rank(), count);
    ok = ranks.broadcast({}, data.data(), count, DType::kF32, root).done() && ok;
    ok = same(data, elements_of<float>(root, count)) && ok;
  }
  return ok;
}

// Each rank to the next one; the last one, which sends to rank 0, receives first.
bool sends_around(Communicator& ranks, std::int64_t count) {
  if (ranks.size() == 1) return true;
  const std::vector<float> mine = elements_of<float>(ranks.rank(), count);
  std::vector<float> got(mine.size(), -1.0F);
  const int next = (ranks.rank() + 1) % ranks.size();
  const int before = (ranks.rank() + ranks.size() - 1) % ranks.size();
  const auto send = [&] { return ranks.send({}, mine.data(), count, DType::kF32, next).done(); };
  const auto receive = [&] {
    return ranks.receive({}, got.data(), count, DType::kF32, before).done();
  };
  const bool is_last = next == 0;
  const bool ok = is_last ? receive() && send() : send() && receive();
  return ok && same(got, elements_of<float>(before, count));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("ranks: each function gives what it says, to 1 to 4 ranks, of any size") {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    INFO(ranks, " ranks");
    const RanksResult result = run_ranks(ranks, [](Communicator& channel) {
      bool ok = true;
      for (const std::int64_t count : kSizes) {
        ok = all_reduces<float>(channel, count, DType::kF32) && ok;
        ok = all_reduces<double>(channel, count, DType::kF64) && ok;
        ok = reduce_scatters(channel, count) && ok;
        ok = all_gathers(channel, count) && ok;
        ok = channel.barrier({}).done() && ok;
        ok = broadcasts(channel, count) && ok;
        ok = sends_around(channel, count) && ok;
      }
      return ok;
    });
    CHECK(result.all_true());
    CHECK(result.failure.empty());
  }
}

TEST_CASE("ranks: many short calls, with ranks that come late") {
  const RanksResult result = run_ranks(3, [](Communicator& channel) {
    bool ok = true;
    for (int i = 0; i < 3000 && ok; ++i) {
      if (i % 500 == 100 * channel.rank()) usleep(2000);
      std::int64_t number = i + channel.rank();
      ok = channel.all_reduce({}, &number, &number, 1, DType::kI64).done();
      ok = ok && number == 3 * i + 3 && channel.barrier({}).done();
    }
    return ok;
  });
  CHECK(result.all_true());
}

TEST_CASE("ranks: one that is killed ends the calls of the others within a second") {
  for (const bool collective : {true, false}) {
    const RanksResult result = run_ranks(3, [collective](Communicator& channel) {
      float x = 1.0F;
      if (!channel.all_reduce({}, &x, &x, 1, DType::kF32).done()) return false;
      if (channel.rank() == 1) {
        usleep(100'000);
        raise(SIGKILL);
      }
      const auto start = std::chrono::steady_clock::now();
      const DeviceStatus status = collective ? channel.all_reduce({}, &x, &x, 1, DType::kF32)
                                             : channel.receive({}, &x, 1, DType::kF32, 1);
      return status.code == Code::kFailed && status.message == channel.failure() &&
             seconds_since(start) < 1.1 && channel.barrier({}).code == Code::kFailed;
    });
    CHECK(WIFSIGNALED(result.statuses[1]));
    for (const int r : {0, 2}) CHECK(result.statuses[static_cast<std::size_t>(r)] == 0);
    CHECK(result.failure.starts_with("rank 1 has ended, and rank "));
  }
}

TEST_CASE("ranks: one that ended before it came is waited for no longer than its end was noted") {
  const int file = RankMemory::make_file(2);
  RankMemory(file, 2).note_end(1);
  {
    SharedMemoryRanks channel(file, 0, 2);
    const DeviceStatus status = channel.barrier({});
    CHECK(status.code == Code::kFailed);
    CHECK(status.message == "rank 1 has ended, and rank 0 waits for it");
  }
  close(file);
}

TEST_CASE("ranks: one that gives up ends the calls of the others with its reason, the first one") {
  const RanksResult result = run_ranks(3, [](Communicator& ranks) {
    if (ranks.rank() == 1) {
      ranks.give_up("it rains");
      ranks.give_up("it snows");
    }
    const DeviceStatus status = ranks.barrier({});
    return status.code == Code::kFailed && status.message == "it rains" &&
           ranks.failure() == "it rains";
  });
  CHECK(result.all_true());
}

TEST_CASE("ranks: those that ask for different things all hear of two of them") {
  struct Difference {
    DeviceStatus (*ask)(Communicator& channel);
    const char* message;
  };
  const Difference differences[] = {
      {[](Communicator& channel) {
         double x[8] = {};
         const std::int64_t count = channel.rank() == 1 ? 3 : 8;
         return channel.all_reduce({}, x, x, count, DType::kF64);
       },
       "ranks do not agree: call 2 of rank 0 is all-reduce of 8 f64, that of rank 1 is all-reduce "
       "of 3 f64"},
      {[](Communicator& channel) {
         double x[8] = {};
         const DType dtype = channel.rank() == 2 ? DType::kF32 : DType::kF64;
         return channel.all_reduce({}, x, x, 8, dtype);
       },
       "ranks do not agree: call 2 of rank 0 is all-reduce of 8 f64, that of rank 2 is all-reduce "
       "of 8 f32"},
      {[](Communicator& channel) {
         double x[8] = {};
         if (channel.rank() == 1) return channel.broadcast({}, x, 8, DType::kF64, 1);
         return channel.all_reduce({}, x, x, 8, DType::kF64);
       },
       "ranks do not agree: call 2 of rank 0 is all-reduce of 8 f64, that of rank 1 is broadcast "
       "of 8 f64 from rank 1"},
      {[](Communicator& channel) {
         double x[8] = {};
         return channel.broadcast({}, x, 8, DType::kF64, channel.rank() == 2 ? 1 : 0);
       },
       "ranks do not agree: call 2 of rank 0 is broadcast of 8 f64 from rank 0, that of rank 2 is "
       "broadcast of 8 f64 from rank 1"},
      {[](Communicator& channel) {
         float x[8] = {};
         if (channel.rank() == 0) return channel.barrier({});
         return channel.all_gather({}, x, x + 1, 1, DType::kF32);
       },
       "ranks do not agree: call 2 of rank 0 is barrier, that of rank 1 is all-gather of 1 f32"},
  };
  for (const Difference& difference : differences) {
    const RanksResult result = run_ranks(3, [&](Communicator& channel) {
      if (!channel.barrier({}).done()) return false;
      const DeviceStatus status = difference.ask(channel);
      return status.code == Code::kBadInput && status.message == difference.message;
    });
    CHECK(result.all_true());
    CHECK(result.failure == difference.message);
  }
}

TEST_CASE("ranks: who receives something else than was sent says so to both") {
  const RanksResult result = run_ranks(2, [](Communicator& channel) {
    float x[4] = {};
    if (channel.rank() == 0) {
      return channel.send({}, x, 4, DType::kF32, 1).done() &&
             channel.send({}, x, 4, DType::kF32, 1).code == Code::kFailed;
    }
    return channel.receive({}, x, 3, DType::kF32, 0).code == Code::kFailed;
  });
  CHECK(result.all_true());
  CHECK(result.failure == "ranks do not agree: rank 0 sends 4 f32, rank 1 receives 3 f32");
}

TEST_CASE("ranks: sums of a type that they do not add up are refused") {
  const RanksResult result = run_ranks(1, [](Communicator& channel) {
    std::uint8_t x = 1;
    const DeviceStatus status = channel.all_reduce({}, &x, &x, 1, DType::kU8);
    return status.code == Code::kBadInput && status.message == "ranks add up no u8";
  });
  CHECK(result.all_true());
}

TEST_CASE("ranks: a place that is taken, and a file that is no memory of these ranks") {
  const RanksResult result =
      run_ranks(2, [](Communicator& channel) { return channel.barrier({}).done(); });
  CHECK(result.all_true());
  const int file = RankMemory::make_file(2);
  CHECK_THROWS_AS(SharedMemoryRanks(file, 0, 3), Error);
  CHECK_THROWS_AS(SharedMemoryRanks(file, 2, 2), Error);
  CHECK_THROWS_AS(SharedMemoryRanks(-1, 0, 2), Error);
  CHECK_THROWS_AS(SharedMemoryRanks(STDERR_FILENO, 0, 2), Error);
  SharedMemoryRanks here(file, 0, 2);
  const pid_t child = fork();
  if (child == 0) {
    try {
      SharedMemoryRanks there(file, 0, 2);
      _exit(0);
    } catch (const Error& error) {
      _exit(error.code() == ErrorCode::kUsage ? 42 : 1);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 42);
  close(file);
}

}  // namespace trainscope::test
