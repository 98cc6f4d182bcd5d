// A memfd: its pages are there when they are touched, its locks tell which processes are alive.
#include "engine/ranks/rank_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "engine/core/error.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMagic = 0x316b6e6172737400;  // of this layout
constexpr std::size_t kMostFailureBytes = 1024;

std::string system_text() { return std::error_code(errno, std::generic_category()).message(); }

// The byte of this number is locked by the rank's process as long as that lives.
struct flock lock_of(int rank) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

std::string_view name_of(RankRequest::Function function) {
  switch (function) {
    case RankRequest::Function::kAllReduce:
      return "all-reduce";
    case RankRequest::Function::kReduceScatter:
      return "reduce-scatter";
    case RankRequest::Function::kAllGather:
      return "all-gather";
    case RankRequest::Function::kBroadcast:
      return "broadcast";
    case RankRequest::Function::kSend:
      return "send";
    case RankRequest::Function::kBarrier:
      return "barrier";
  }
  return "?";
}

}  // namespace

std::string text_of(const RankRequest& request) {
  const std::string_view name = name_of(request.function);
  if (request.function == RankRequest::Function::kBarrier) return std::string(name);
  const std::string text =
      fmt::format("{} of {} {}", name, request.elements, name_of(request.dtype));
  const bool has_root = request.function == RankRequest::Function::kBroadcast;
  return has_root ? fmt::format("{} from rank {}", text, request.root) : text;
}

enum class FailureState : std::uint32_t { kNone, kBeingWritten, kThere };

// What these bytes begin with.
struct MemoryLabel {
  std::uint64_t magic = kMagic;
  std::int64_t ranks = 0;
};

// All zero but for the label, as a new file is.
struct RankMemory::Header {
  MemoryLabel label;
  alignas(64) std::atomic<std::uint32_t> bell = 0;
  std::atomic<std::uint32_t> sleepers = 0;
  std::atomic<FailureState> failure_state = FailureState::kNone;
  char failure[kMostFailureBytes] = {};
  Rank rank[kMostRanks];
  Mail mail[kMostRanks][kMostRanks];
};

namespace {

constexpr std::int64_t kPageBytes = 4096;

constexpr std::int64_t in_pages(std::int64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

std::int64_t slots_bytes(int ranks) { return 2 * ranks * RankMemory::kSlotBytes; }
std::int64_t mails_bytes(int ranks) { return std::int64_t{ranks} * ranks * RankMemory::kMailBytes; }

}  // namespace

int RankMemory::make_file(int ranks) {
  CHECK_INVARIANT(ranks >= 1 && ranks <= kMostRanks);
  const int file = memfd_create("trainscope-ranks", MFD_CLOEXEC);
  const std::int64_t bytes = in_pages(sizeof(Header)) + slots_bytes(ranks) + mails_bytes(ranks);
  const MemoryLabel label{.ranks = ranks};
  const bool made = file >= 0 && ftruncate(file, bytes) == 0 &&
                    pwrite(file, &label, sizeof label, 0) == ssize_t{sizeof label};
  if (made) return file;
  const std::string why = system_text();
  if (file >= 0) close(file);
  fail(ErrorCode::kOutOfMemory, "no memory for {} ranks to share: {}", ranks, why);
}

RankMemory::RankMemory(int descriptor, int ranks) : descriptor_(descriptor), ranks_(ranks) {
  struct stat facts = {};
  const bool is_file = fstat(descriptor, &facts) == 0;
  bytes_ = is_file ? static_cast<std::size_t>(facts.st_size) : 0;
  const bool fits =
      ranks >= 1 && ranks <= kMostRanks &&
      std::cmp_equal(bytes_, in_pages(sizeof(Header)) + slots_bytes(ranks) + mails_bytes(ranks));
  require(fits, ErrorCode::kUsage, "descriptor {} is no memory of {} ranks", descriptor, ranks);
  void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  require(mapped != MAP_FAILED, ErrorCode::kOutOfMemory, "cannot map the memory of {} ranks: {}",
          ranks, system_text());
  memory_ = static_cast<std::byte*>(mapped);
  if (header().label.magic == kMagic && header().label.ranks == ranks) return;
  munmap(memory_, bytes_);
  fail(ErrorCode::kUsage, "descriptor {} is no memory of {} ranks", descriptor, ranks);
}

RankMemory::~RankMemory() { munmap(memory_, bytes_); }

RankMemory::Rank& RankMemory::rank(int number) const { return header().rank[number]; }
RankMemory::Mail& RankMemory::mail(int from, int to) const { return header().mail[from][to]; }

std::byte* RankMemory::slot(int rank, std::int64_t turn) const {
  return memory_ + in_pages(sizeof(Header)) + (2 * rank + turn % 2) * kSlotBytes;
}

std::byte* RankMemory::mail_bytes(int from, int to) const {
  return memory_ + in_pages(sizeof(Header)) + slots_bytes(ranks_) +
         (std::int64_t{from} * ranks_ + to) * kMailBytes;
}

void RankMemory::join(int number) {
  struct flock lock = lock_of(number);
  const bool locked = fcntl(descriptor_, F_SETLK, &lock) == 0;
  require(locked, ErrorCode::kUsage, "another process is rank {} already", number);
  rank(number).joined.store(1);
  ring();
}

bool RankMemory::is_gone(int number) const {
  const Rank& there = rank(number);
  if (there.ended.load() != 0) return true;
  if (there.joined.load() == 0) return false;
  struct flock lock = lock_of(number);
  return fcntl(descriptor_, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

void RankMemory::note_end(int number) {
  rank(number).ended.store(1);
  ring();
}

// Either this sees the sleeper, who counts itself first, or the sleeper the bell's new number.
void RankMemory::ring() {
  header().bell.fetch_add(1);
  if (header().sleepers.load() == 0) return;
  syscall(SYS_futex, &header().bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::uint32_t RankMemory::bell() const { return header().bell.load(); }

void RankMemory::sleep(std::uint32_t bell, std::int64_t nanoseconds) {
  const struct timespec longest = {.tv_sec = nanoseconds / 1'000'000'000,
                                   .tv_nsec = nanoseconds % 1'000'000'000};
  header().sleepers.fetch_add(1);
  syscall(SYS_futex, &header().bell, FUTEX_WAIT, bell, &longest, nullptr, 0);
  header().sleepers.fetch_sub(1);
}

void RankMemory::note_failure(std::string_view text) {
  FailureState none = FailureState::kNone;
  if (!header().failure_state.compare_exchange_strong(none, FailureState::kBeingWritten)) return;
  const std::size_t length = std::min(text.size(), kMostFailureBytes - 1);
  std::memcpy(header().failure, text.data(), length);
  header().failure[length] = '\0';
  header().failure_state.store(FailureState::kThere);
  ring();
}

std::string RankMemory::failure() const {
  if (header().failure_state.load() != FailureState::kThere) return {};
  return header().failure;
}

}  // namespace trainscope
