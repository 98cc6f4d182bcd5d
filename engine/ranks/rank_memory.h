// Memory that the ranks of one machine share: who is there, how far each is, and room for what they
// tell each other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/api/dtype.h"

namespace trainscope {

inline constexpr int kMostRanks = 64;

// What a rank asks of the others. All ranks must ask for the same.
struct RankRequest {
  enum class Function : std::uint8_t {
    kAllReduce,
    kReduceScatter,
    kAllGather,
    kBroadcast,
    kSend,
    kBarrier
  };
  Function function = Function::kBarrier;
  DType dtype = DType::kF32;
  std::int64_t elements = 0;
  std::int32_t root = 0;    // of kBroadcast
  std::int64_t number = 0;  // which call of the rank it is, from 1

  bool operator==(const RankRequest&) const = default;
};
// "all-reduce of 120 f32", "broadcast of 5 i64 from rank 0", "barrier".
std::string text_of(const RankRequest& request);

// The mapping of a file without a name, which processes inherit as a descriptor: it is gone with
// the last of them, however they end.
class RankMemory {
 public:
  // Bytes that a rank shows at a time, and of which one waits for another rank.
  static constexpr std::int64_t kSlotBytes = 256 * 1024;
  static constexpr std::int64_t kMailBytes = 64 * 1024;

  // New memory for so many ranks, from 1 to kMostRanks. The descriptor is the caller's to close; it
  // is closed in programs that are executed, unless the caller clears that mark. kOutOfMemory.
  static int make_file(int ranks);
  // Maps such a file, of which `descriptor` stays open as long as this is there. kUsage for
  // another file, or one of another number of ranks.
  RankMemory(int descriptor, int ranks);
  ~RankMemory();
  RankMemory(const RankMemory&) = delete;
  RankMemory& operator=(const RankMemory&) = delete;

  // One sender's mail to one receiver: chunks that were put in, and taken out.
  struct Mail {
    alignas(64) std::atomic<std::uint64_t> sent = 0;
    std::atomic<std::uint64_t> taken = 0;
    RankRequest request = {};
  };
  // Of one rank; the others read it.
  struct Rank {
    alignas(64) std::atomic<std::uint64_t> arrived = 0;  // at so many meetings
    std::atomic<std::uint32_t> joined = 0;
    std::atomic<std::uint32_t> ended = 0;  // as whoever started it noted
    RankRequest requests[2] = {};          // by the call's number, odd and even
  };

  int ranks() const { return ranks_; }
  Rank& rank(int number) const;
  Mail& mail(int from, int to) const;
  std::byte* mail_bytes(int from, int to) const;
  // Two slots a rank, so that one may be filled while others still read the other.
  std::byte* slot(int rank, std::int64_t turn) const;

  // This process is the rank from now on. kUsage where another process is already.
  void join(int rank);
  // Whether the rank has joined and its process is gone since, or its end was noted.
  bool is_gone(int rank) const;
  void note_end(int rank);

  // Wakes all that sleep. A number that has changed since it was read lets sleep() return at once.
  void ring();
  std::uint32_t bell() const;
  void sleep(std::uint32_t bell, std::int64_t nanoseconds);

  // The first failure that a rank tells of; empty: none.
  void note_failure(std::string_view text);
  std::string failure() const;

 private:
  struct Header;
  Header& header() const { return *reinterpret_cast<Header*>(memory_); }

  int descriptor_ = -1;
  int ranks_ = 0;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace trainscope
