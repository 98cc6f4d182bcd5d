// Waits by bytes: what was written and read last where a call reads and writes.
#include "engine/plan/streams.h"

#include <algorithm>
#include <array>
#include <map>

#include "engine/core/error.h"

namespace trainscope {
namespace {

using Index = std::int32_t;  // of a call
constexpr Index kNever = -1;
constexpr std::size_t kStreams = 2;

std::size_t index_of(Stream stream) { return static_cast<std::size_t>(stream); }
constexpr Stream other(Stream stream) {
  return stream == kComputeStream ? kTransferStream : kComputeStream;
}

// The last call of each stream that touched some bytes.
struct Touched {
  std::array<Index, kStreams> read = {kNever, kNever};
  std::array<Index, kStreams> written = {kNever, kNever};
};

// Touched, for every byte of a memory space: pieces of equal history, by their first byte.
class History {
 public:
  History() { pieces_.emplace(0, Touched{}); }

  template <class F>
  void for_each(std::int64_t begin, std::int64_t end, F f) {
    if (begin >= end) return;
    cut(begin);
    cut(end);
    for (auto piece = pieces_.find(begin); piece != pieces_.end() && piece->first < end; ++piece) {
      f(piece->second);
    }
  }

 private:
  void cut(std::int64_t at) {
    const auto after = pieces_.upper_bound(at);
    const auto piece = std::prev(after);
    if (piece->first != at) pieces_.emplace_hint(after, at, piece->second);
  }

  std::map<std::int64_t, Touched> pieces_;
};

// Part of a step: the calls [begin, end).
class WaitSearch {
 public:
  WaitSearch(Program& program, Index begin, Index end)
      : program_(program), begin_(begin), end_(end) {}

  void run() {
    const bool any = assign_transfers();
    if (!any) return;
    do {
      find_waits();
    } while (leave_out_transfers());
  }

 private:
  Call& call(Index i) const { return program_.calls[static_cast<std::size_t>(i)]; }

  bool touches_host(const Call& call) const {
    const auto in_host = [this](const Operand& operand) {
      return operand.buffer != kNoBuffer && program_.buffer(operand.buffer).space == Space::kHost;
    };
    return std::ranges::any_of(call.inputs, in_host) || std::ranges::any_of(call.outputs, in_host);
  }

  bool assign_transfers() {
    bool any = false;
    for (Index i = begin_; i < end_; ++i) {
      if (call(i).kind != CallKind::kKernel || !touches_host(call(i))) continue;
      call(i).kind = CallKind::kTransfer;
      call(i).stream = kTransferStream;
      any = true;
    }
    return any;
  }

  // Each stream waits for the last call of the other one that it must not overtake. What that one
  // comes after is then done too.
  void find_waits() {
    History history[2];
    std::array<Index, kStreams> waited = {kNever, kNever};  // by stream: the other's, so far
    for (Index i = begin_; i < end_; ++i) {
      const Stream stream = call(i).stream;
      const Index conflict = last_conflict(history, i, other(stream));
      call(i).waits.clear();
      if (conflict > waited[index_of(stream)]) {
        waited[index_of(stream)] = conflict;
        call(i).waits.push_back(CallId(conflict));
      }
    }
    waited_ = waited;
  }

  Index last_conflict(History* history, Index i, Stream of) const {
    Index last = kNever;
    const std::size_t mine = index_of(call(i).stream);
    each_range(i, [&](Space space, std::int64_t begin, std::int64_t end, bool writes) {
      history[static_cast<std::size_t>(space)].for_each(begin, end, [&](Touched& touched) {
        last = std::max(last, touched.written[index_of(of)]);
        if (writes) last = std::max(last, touched.read[index_of(of)]);
      });
    });
    each_range(i, [&](Space space, std::int64_t begin, std::int64_t end, bool writes) {
      history[static_cast<std::size_t>(space)].for_each(begin, end, [&](Touched& touched) {
        (writes ? touched.written : touched.read)[mine] = i;
      });
    });
    return last;
  }

  template <class F>
  void each_range(Index i, F f) const {
    const auto range = [&](BufferId id, std::int64_t offset, std::int64_t bytes, bool writes) {
      const PlannedBuffer& buffer = program_.buffer(id);
      if (buffer.external) return;
      const std::int64_t begin = buffer.offset + offset;
      f(buffer.space, begin, begin + bytes, writes);
    };
    const Call& one = call(i);
    for (const Operand& operand : one.inputs) {
      if (operand.value == kNoValue || operand.buffer == kNoBuffer) continue;
      range(operand.buffer, operand.offset, static_cast<std::int64_t>(operand.type.bytes()), false);
    }
    for (const Operand& operand : one.outputs) {
      if (operand.value == kNoValue || operand.buffer == kNoBuffer) continue;
      range(operand.buffer, operand.offset, static_cast<std::int64_t>(operand.type.bytes()), true);
    }
    if (one.workspace != kNoBuffer) {
      range(one.workspace, 0, program_.buffer(one.workspace).bytes, true);
    }
  }

  // Transfers before the first wait of their stream and behind the last that is waited for go to
  // the compute stream. Says whether there were any.
  bool leave_out_transfers() {
    bool ordered = false;
    bool changed = false;
    for (Index i = begin_; i < end_; ++i) {
      if (call(i).stream != kTransferStream) continue;
      ordered = ordered || !call(i).waits.empty();
      if (ordered && i <= waited_[index_of(kComputeStream)]) continue;
      call(i).stream = kComputeStream;
      changed = true;
    }
    return changed;
  }

  Program& program_;
  const Index begin_;
  const Index end_;
  std::array<Index, kStreams> waited_ = {kNever, kNever};
};

}  // namespace

void assign_streams(Program& program) {
  if (program.space(Space::kHost).bytes == 0) return;
  const auto update = static_cast<Index>(program.update_begin);
  WaitSearch(program, 0, update).run();
  WaitSearch(program, update, static_cast<Index>(program.calls.size())).run();
}

}  // namespace trainscope
