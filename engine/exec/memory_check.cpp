// Poison before, compare after.
#include "engine/exec/memory_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/exec/device_work.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

// A NaN in both float types, so that reading freed bytes shows in the results too.
constexpr std::byte kPoison{0xFF};

}  // namespace

MemoryCheck::MemoryCheck(Executor& executor)
    : executor_(executor),
      arena_(executor.memory().arena(Space::kDevice)),
      before_(static_cast<std::size_t>(arena_.bytes())),
      after_(before_.size()) {
  executor_.set_observer(this);
}

MemoryCheck::~MemoryCheck() { executor_.set_observer(nullptr); }

std::vector<MemoryCheck::Range> MemoryCheck::live_at(std::size_t instruction) const {
  const Program& program = executor_.program();
  auto step = static_cast<std::int64_t>(instruction);
  std::vector<Range> live;
  for (std::size_t i = 0; i < program.problem.buffers.size(); ++i) {
    const memplan::Buffer& b = program.problem.buffers[i];
    if (b.lower > step || step >= b.upper) continue;
    live.push_back({program.solution.offsets[i], program.solution.offsets[i] + b.size_bytes});
  }
  std::ranges::sort(live, {}, &Range::begin);
  return live;
}

std::vector<MemoryCheck::Range> MemoryCheck::writable_by(std::size_t instruction) const {
  const Program& program = executor_.program();
  const Instruction& call = program.instructions[instruction];
  std::vector<Range> ranges;
  for (ValueId v : program.graph.node(call.node).outputs) {
    if (v == kNoValue) continue;
    const Placement& placement = program.placements[static_cast<std::size_t>(v)];
    const std::int64_t offset = placement.offset;
    if (offset < 0 || placement.host) continue;
    ranges.push_back(
        {offset, offset + static_cast<std::int64_t>(program.graph.value(v).type.bytes())});
  }
  auto workspace = static_cast<std::int64_t>(call.prepared.workspace_bytes);
  if (workspace > 0) ranges.push_back({call.workspace_offset, call.workspace_offset + workspace});
  std::ranges::sort(ranges, {}, &Range::begin);
  return ranges;
}

void MemoryCheck::poison(std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  check(executor_.memory().device().fill(kComputeStream, arena_.data() + begin, kPoison,
                                         static_cast<std::size_t>(end - begin)));
}

void MemoryCheck::before(std::size_t instruction) {
  std::int64_t at = 0;
  for (const Range& live : live_at(instruction)) {
    poison(at, live.begin);
    at = std::max(at, live.end);
  }
  poison(at, arena_.bytes());
  copy_and_wait(executor_.memory().device(), before_.data(), arena_.data(), before_.size());
}

void MemoryCheck::after(std::size_t instruction) {
  copy_and_wait(executor_.memory().device(), after_.data(), arena_.data(), after_.size());
  const Program& program = executor_.program();
  std::vector<Range> writable = writable_by(instruction);
  writable.push_back({arena_.bytes(), arena_.bytes()});
  std::int64_t at = 0;
  bool clean = executor_.guard_intact();
  for (const Range& range : writable) {
    if (range.begin > at) {
      clean = clean &&
              std::equal(after_.begin() + at, after_.begin() + range.begin, before_.begin() + at);
    }
    at = std::max(at, range.end);
  }
  if (clean) return;
  const Node& node = program.graph.node(program.instructions[instruction].node);
  violations_.push_back(fmt::format("{} '{}' ({}) wrote outside its outputs and workspace",
                                    node.op->name, node.name,
                                    program.instructions[instruction].kernel->name));
}

}  // namespace trainscope
