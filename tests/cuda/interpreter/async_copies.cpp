// Copies from global to shared memory that a thread does not wait for. They arrive as late as they
// may, when a lane waits for their group; that they may arrive earlier is why what they write is
// noted as written when they begin too, so that a reader that has not been waited for is found.
#include <cstring>
#include <utility>

#include "tests/cuda/interpreter/lanewise.h"
#include "tests/cuda/interpreter/machine.h"

namespace trainscope::ptx {
namespace {

constexpr unsigned kBytes = 16;
constexpr Access kTo{.space = Space::kShared, .bytes = kBytes};

// Operand 0 is where to, 1 where from, 3 how many bytes there are; the rest of 16 is zeros.
void run_copy(Warp& warp, const Instruction& instruction, unsigned mask) {
  Machine& machine = warp.machine();
  const Lanes& to = warp.operand(instruction, 0);
  const Lanes& from = warp.operand(instruction, 1);
  const Lanes& present = warp.operand(instruction, 3);
  machine.count(kTo, to, mask, Use::kWrite);
  unsigned reading = 0;
  for_lanes(mask, [&](unsigned lane) {
    const auto bytes = static_cast<unsigned>(present.words[lane]);
    if (bytes > kBytes) machine.fail(warp, lane, instruction, "more bytes than are copied");
    const std::byte* source = nullptr;
    if (bytes != 0) {
      reading |= 1U << lane;
      source = machine.use(warp, lane, instruction, {.space = Space::kGlobal, .bytes = kBytes},
                           from.words[lane], Use::kRead);
    }
    machine.use(warp, lane, instruction, kTo, to.words[lane], Use::kWrite);
    warp.copies().push_back({.instruction = &instruction,
                             .lane = lane,
                             .group = warp.groups(lane),
                             .to = to.words[lane],
                             .from = source,
                             .bytes = bytes});
  });
  if (reading != 0) {
    machine.count({.space = Space::kGlobal, .bytes = kBytes}, from, reading, Use::kRead);
  }
}

void run_end_group(Warp& warp, const Instruction& /*instruction*/, unsigned mask) {
  for_lanes(mask, [&](unsigned lane) { ++warp.groups(lane); });
}

// Until all groups but the last ones, as many as operand 0 says, have arrived.
void run_wait(Warp& warp, const Instruction& instruction, unsigned mask) {
  const Lanes& open = warp.operand(instruction, 0);
  for (const AsyncCopy& copy : std::exchange(warp.copies(), {})) {
    const bool waited = (mask >> copy.lane & 1U) != 0;
    if (!waited || copy.group + open.words[copy.lane] >= warp.groups(copy.lane)) {
      warp.copies().push_back(copy);
      continue;
    }
    std::byte* to =
        warp.machine().use(warp, copy.lane, *copy.instruction, kTo, copy.to, Use::kWrite);
    std::memset(to, 0, kBytes);
    if (copy.bytes != 0) std::memcpy(to, copy.from, copy.bytes);
  }
}

}  // namespace

void add_async_opcodes(OpcodeTable& table) {
  table["cp.async.cg.shared.global"] = {.run = run_copy};
  table["cp.async.commit_group"] = {.run = run_end_group};
  table["cp.async.wait_group"] = {.run = run_wait};
}

}  // namespace trainscope::ptx
