// Poison before, compare after.
#include "engine/exec/memory_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/exec/device_work.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

// A NaN in both float types, so that reading freed bytes shows in the results too.
constexpr std::byte kPoison{0xFF};

}  // namespace

MemoryCheck::MemoryCheck(std::shared_ptr<Executor> executor)
    : executor_(std::move(executor)),
      before_(static_cast<std::size_t>(arena().bytes())),
      after_(before_.size()),
      listens_(executor_->listen(*this)) {}

std::vector<MemoryCheck::Range> MemoryCheck::live_at(std::int64_t time) const {
  std::vector<Range> live;
  for (const PlannedBuffer& buffer : executor_->program().buffers) {
    const bool is_alive = buffer.begin <= time && time < buffer.end;
    if (!is_alive || buffer.space == Space::kHost) continue;
    live.push_back({buffer.offset, buffer.offset + buffer.bytes});
  }
  std::ranges::sort(live, {}, &Range::begin);
  return live;
}

std::vector<MemoryCheck::Range> MemoryCheck::writable_by(const Call& call) const {
  const Program& program = executor_->program();
  std::vector<Range> ranges;
  for (const Operand& output : call.outputs) {
    if (output.buffer == kNoBuffer) continue;
    const PlannedBuffer& buffer = program.buffer(output.buffer);
    if (buffer.space == Space::kHost || buffer.external) continue;
    const std::int64_t begin = buffer.offset + output.offset;
    ranges.push_back({begin, begin + static_cast<std::int64_t>(output.type.bytes())});
  }
  if (call.workspace != kNoBuffer) {
    const PlannedBuffer& workspace = program.buffer(call.workspace);
    ranges.push_back({workspace.offset, workspace.offset + workspace.bytes});
  }
  std::ranges::sort(ranges, {}, &Range::begin);
  return ranges;
}

void MemoryCheck::poison(std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  check(executor_->memory().device().fill(kComputeStream, arena().data() + begin, kPoison,
                                          static_cast<std::size_t>(end - begin)));
}

void MemoryCheck::call_begin(const CallEvent& event) {
  if (event.within != kNoCall) return;
  std::int64_t at = 0;
  for (const Range& live : live_at(executor_->program().call(event.call).time)) {
    poison(at, live.begin);
    at = std::max(at, live.end);
  }
  poison(at, arena().bytes());
  copy_and_wait(executor_->memory().device(), before_.data(), arena().data(), before_.size());
}

void MemoryCheck::call_end(const CallEvent& event) {
  if (event.within != kNoCall) return;
  copy_and_wait(executor_->memory().device(), after_.data(), arena().data(), after_.size());
  const Program& program = executor_->program();
  const Call& call = program.call(event.call);
  std::vector<Range> writable = writable_by(call);
  writable.push_back({arena().bytes(), arena().bytes()});
  std::int64_t at = 0;
  bool clean = executor_->guard_intact();
  for (const Range& range : writable) {
    if (range.begin > at) {
      clean = clean &&
              std::equal(after_.begin() + at, after_.begin() + range.begin, before_.begin() + at);
    }
    at = std::max(at, range.end);
  }
  if (clean) return;
  const Node* node = call.node == kNoNode ? nullptr : &program.graph.node(call.node);
  violations_.push_back(
      fmt::format("{} '{}' ({}) wrote outside its outputs and workspace",
                  node == nullptr ? "" : node->op->name, node == nullptr ? "" : node->name,
                  call.kernel == nullptr ? name_of(call.kind) : call.kernel->name));
}

}  // namespace trainscope
