// Collectives by slots in shared memory, and meetings between writing and reading them.
#include "engine/ranks/shared_memory_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "engine/core/error.h"

namespace trainscope {
namespace {

using Function = RankRequest::Function;

constexpr int kSpins = 4000;  // looks before it sleeps, with a pause of the processor between
constexpr std::int64_t kLookNs = 50'000'000;
constexpr std::int64_t kLongestJoinNs = 60'000'000'000;
constexpr int kAll = -1;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Of the processor, while another one is waited for.
void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

template <typename T>
void add_elements(std::byte* sum, const std::byte* more, std::int64_t bytes) {
  auto* to = reinterpret_cast<T*>(sum);
  const auto* from = reinterpret_cast<const T*>(more);
  for (std::int64_t i = 0; i < bytes / std::int64_t{sizeof(T)}; ++i) to[i] += from[i];
}

// sum[i] += more[i]; null: there are no sums of the type.
using Add = void (*)(std::byte* sum, const std::byte* more, std::int64_t bytes);
Add addition_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return add_elements<float>;
    case DType::kF64:
      return add_elements<double>;
    case DType::kI32:
      return add_elements<std::int32_t>;
    case DType::kI64:
      return add_elements<std::int64_t>;
    default:
      return nullptr;
  }
}

std::int64_t bytes_of(std::int64_t elements, DType dtype) {
  return elements * static_cast<std::int64_t>(size_of(dtype));
}

}  // namespace

SharedMemoryRanks::SharedMemoryRanks(int descriptor, int rank, int size)
    : memory_(descriptor, size), rank_(rank), joined_ns_(now_ns()) {
  require(rank >= 0 && rank < size, ErrorCode::kUsage, "there is no rank {} of {}", rank, size);
  memory_.join(rank);
}

std::string SharedMemoryRanks::failure() const { return memory_.failure(); }
void SharedMemoryRanks::give_up(std::string_view why) { memory_.note_failure(why); }

DeviceStatus SharedMemoryRanks::failed() const {
  return {.code = DeviceStatus::Code::kFailed, .message = memory_.failure()};
}

DeviceStatus SharedMemoryRanks::no_sum_of(DType dtype) const {
  return {.code = DeviceStatus::Code::kBadInput,
          .message = fmt::format("ranks add up no {}", name_of(dtype))};
}

// Of those that are waited for: one that is gone, in words; empty: all are there.
std::string SharedMemoryRanks::who_is_missing(int only) const {
  const bool may_come = now_ns() - joined_ns_ < kLongestJoinNs;
  for (int r = 0; r < size(); ++r) {
    if (r == rank_ || (only != kAll && r != only)) continue;
    if (memory_.is_gone(r)) {
      return fmt::format("rank {} has ended, and rank {} waits for it", r, rank_);
    }
    if (may_come || memory_.rank(r).joined.load() != 0) continue;
    return fmt::format("rank {} has not come within {} s", r, kLongestJoinNs / 1'000'000'000);
  }
  return {};
}

// Until holds() is true; false where the channel has failed. `only`: the one rank that is waited
// for. What a rank did before it ended counts, so one that is found gone is a failure only if
// holds() is not true after that.
template <class Holds>
bool SharedMemoryRanks::wait_for(int only, Holds holds) {
  for (int i = 0; i < kSpins; ++i) {
    if (holds()) return true;
    pause_processor();
  }
  while (true) {
    const std::uint32_t bell = memory_.bell();
    if (holds()) return true;
    if (!memory_.failure().empty()) return false;
    memory_.sleep(bell, kLookNs);
    if (holds()) return true;
    const std::string missing = who_is_missing(only);
    if (holds()) return true;
    if (missing.empty()) continue;
    memory_.note_failure(missing);
    return false;
  }
}

// What each rank wrote before is there for all others after it.
bool SharedMemoryRanks::meet() {
  const std::uint64_t meeting = ++meetings_;
  memory_.rank(rank_).arrived.store(meeting);
  memory_.ring();
  return wait_for(kAll, [&] {
    for (int r = 0; r < size(); ++r) {
      if (memory_.rank(r).arrived.load() < meeting) return false;
    }
    return true;
  });
}

// After a meeting: whether all ranks ask for the same. All of them find the same.
bool SharedMemoryRanks::agree(std::int64_t number) {
  const RankRequest& first = memory_.rank(0).requests[number % 2];
  for (int r = 1; r < size(); ++r) {
    const RankRequest& other = memory_.rank(r).requests[number % 2];
    if (other == first) continue;
    memory_.note_failure(
        fmt::format("ranks do not agree: call {} of rank 0 is {}, that of rank {} is {}", number,
                    text_of(first), r, text_of(other)));
    return false;
  }
  return true;
}

// put(piece) fills this rank's slot, all ranks meet, take(piece) reads the slots of others and says
// whether it could. A slot is filled again two pieces later: then all have read it, since they have
// met for the piece between.
template <class Put, class Take>
DeviceStatus SharedMemoryRanks::in_pieces(RankRequest request, std::int64_t bytes, Put put,
                                          Take take) {
  if (!memory_.failure().empty()) return failed();
  request.number = ++calls_;
  memory_.rank(rank_).requests[request.number % 2] = request;
  Piece piece;
  do {
    piece = {.begin = piece.end,
             .end = std::min(piece.end + RankMemory::kSlotBytes, bytes),
             .turn = ++turns_};
    put(piece);
    if (!meet()) return failed();
    if (piece.begin == 0 && !agree(request.number)) {
      return {.code = DeviceStatus::Code::kBadInput, .message = memory_.failure()};
    }
    if (!take(piece)) return failed();
  } while (piece.end < bytes);
  return {};
}

// Rank r adds up share r of the piece's elements, in the slot of rank 0.
DeviceStatus SharedMemoryRanks::all_reduce(const CallContext& /*call*/, const void* from, void* to,
                                           std::int64_t elements, DType dtype) {
  const Add add = addition_of(dtype);
  if (add == nullptr) return no_sum_of(dtype);
  const auto element_bytes = static_cast<std::int64_t>(size_of(dtype));
  const auto put = [&](const Piece& piece) {
    copy_bytes(slot(rank_, piece), static_cast<const std::byte*>(from) + piece.begin,
               piece.bytes());
  };
  const auto take = [&](const Piece& piece) {
    const std::int64_t count = piece.bytes() / element_bytes;
    const std::int64_t begin = count * rank_ / size() * element_bytes;
    const std::int64_t end = count * (rank_ + 1) / size() * element_bytes;
    for (int r = 1; r < size(); ++r) {
      add(slot(0, piece) + begin, slot(r, piece) + begin, end - begin);
    }
    if (!meet()) return false;
    copy_bytes(static_cast<std::byte*>(to) + piece.begin, slot(0, piece), piece.bytes());
    return true;
  };
  return in_pieces({.function = Function::kAllReduce, .dtype = dtype, .elements = elements},
                   elements * element_bytes, put, take);
}

// Pieces of one part after the other; of each the rank that gets it makes the sum.
DeviceStatus SharedMemoryRanks::reduce_scatter(const CallContext& /*call*/, const void* from,
                                               void* to, std::int64_t elements, DType dtype) {
  const Add add = addition_of(dtype);
  if (add == nullptr) return no_sum_of(dtype);
  const std::int64_t part = bytes_of(elements, dtype);
  const auto put = [&](const Piece& piece) {
    copy_bytes(slot(rank_, piece), static_cast<const std::byte*>(from) + piece.begin,
               piece.bytes());
  };
  const auto take = [&](const Piece& piece) {
    const std::int64_t begin = std::max(piece.begin, part * rank_);
    const std::int64_t end = std::min(piece.end, part * (rank_ + 1));
    if (begin >= end) return true;
    std::byte* sum = static_cast<std::byte*>(to) + (begin - part * rank_);
    copy_bytes(sum, slot(0, piece) + (begin - piece.begin), end - begin);
    for (int r = 1; r < size(); ++r) {
      add(sum, slot(r, piece) + (begin - piece.begin), end - begin);
    }
    return true;
  };
  return in_pieces({.function = Function::kReduceScatter, .dtype = dtype, .elements = elements},
                   part * size(), put, take);
}

DeviceStatus SharedMemoryRanks::all_gather(const CallContext& /*call*/, const void* from, void* to,
                                           std::int64_t elements, DType dtype) {
  const std::int64_t part = bytes_of(elements, dtype);
  const auto put = [&](const Piece& piece) {
    copy_bytes(slot(rank_, piece), static_cast<const std::byte*>(from) + piece.begin,
               piece.bytes());
  };
  const auto take = [&](const Piece& piece) {
    for (int r = 0; r < size(); ++r) {
      copy_bytes(static_cast<std::byte*>(to) + part * r + piece.begin, slot(r, piece),
                 piece.bytes());
    }
    return true;
  };
  return in_pieces({.function = Function::kAllGather, .dtype = dtype, .elements = elements}, part,
                   put, take);
}

DeviceStatus SharedMemoryRanks::broadcast(const CallContext& /*call*/, void* data,
                                          std::int64_t elements, DType dtype, int root) {
  CHECK_INVARIANT(root >= 0 && root < size());
  auto* bytes = static_cast<std::byte*>(data);
  const auto put = [&](const Piece& piece) {
    if (rank_ == root) copy_bytes(slot(root, piece), bytes + piece.begin, piece.bytes());
  };
  const auto take = [&](const Piece& piece) {
    if (rank_ != root) copy_bytes(bytes + piece.begin, slot(root, piece), piece.bytes());
    return true;
  };
  return in_pieces(
      {.function = Function::kBroadcast, .dtype = dtype, .elements = elements, .root = root},
      bytes_of(elements, dtype), put, take);
}

DeviceStatus SharedMemoryRanks::barrier(const CallContext& /*call*/) {
  return in_pieces(
      {.function = Function::kBarrier}, 0, [](const Piece&) {}, [](const Piece&) { return true; });
}

// move(begin, end) for the bytes of one letter after the other, and says whether it could.
template <class Move>
DeviceStatus SharedMemoryRanks::by_mail(const RankRequest& request, Move move) {
  if (!memory_.failure().empty()) return failed();
  const std::int64_t bytes = bytes_of(request.elements, request.dtype);
  std::int64_t begin = 0;
  do {
    const std::int64_t end = std::min(begin + RankMemory::kMailBytes, bytes);
    if (!move(begin, end)) return failed();
    begin = end;
  } while (begin < bytes);
  return {};
}

// The letter before must have been taken out.
DeviceStatus SharedMemoryRanks::send(const CallContext& /*call*/, const void* data,
                                     std::int64_t elements, DType dtype, int to) {
  CHECK_INVARIANT(to >= 0 && to < size() && to != rank_);
  RankMemory::Mail& mail = memory_.mail(rank_, to);
  const RankRequest request{.function = Function::kSend, .dtype = dtype, .elements = elements};
  return by_mail(request, [&](std::int64_t begin, std::int64_t end) {
    const std::uint64_t sent = mail.sent.load();
    if (!wait_for(to, [&] { return mail.taken.load() == sent; })) return false;
    mail.request = request;
    copy_bytes(memory_.mail_bytes(rank_, to), static_cast<const std::byte*>(data) + begin,
               end - begin);
    mail.sent.store(sent + 1);
    memory_.ring();
    return true;
  });
}

DeviceStatus SharedMemoryRanks::receive(const CallContext& /*call*/, void* data,
                                        std::int64_t elements, DType dtype, int from) {
  CHECK_INVARIANT(from >= 0 && from < size() && from != rank_);
  RankMemory::Mail& mail = memory_.mail(from, rank_);
  const RankRequest request{.function = Function::kSend, .dtype = dtype, .elements = elements};
  return by_mail(request, [&](std::int64_t begin, std::int64_t end) {
    const std::uint64_t taken = mail.taken.load();
    if (!wait_for(from, [&] { return mail.sent.load() > taken; })) return false;
    if (mail.request != request) {
      memory_.note_failure(fmt::format(
          "ranks do not agree: rank {} sends {} {}, rank {} receives {} {}", from,
          mail.request.elements, name_of(mail.request.dtype), rank_, elements, name_of(dtype)));
      return false;
    }
    copy_bytes(static_cast<std::byte*>(data) + begin, memory_.mail_bytes(from, rank_), end - begin);
    mail.taken.store(taken + 1);
    memory_.ring();
    return true;
  });
}

}  // namespace trainscope
