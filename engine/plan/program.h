// Program: a graph lowered to calls and placed in memory; all that execution needs.
//
// Ids are indices: CallId into Program::calls, BufferId into Program::buffers, ValueId and NodeId
// into the graph. They stay as they are for a program's life, and its record names them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"
#include "engine/plan/kernel_choice.h"
#include "kernels/api/device.h"
#include "memplan/problem.h"
#include "memplan/solution.h"

namespace trainscope {

enum class CallId : std::int32_t {};
enum class BufferId : std::int32_t {};
inline constexpr CallId kNoCall{-1};
inline constexpr BufferId kNoBuffer{-1};

// What a buffer's bytes are: the first of the upper four that one of its values is, else what the
// owner is.
enum class BufferRole : std::uint8_t {
  kParameter,
  kState,  // moments of the optimizer, running statistics, accumulated gradients
  kConstant,
  kInput,       // of a step: bound anew each time
  kGradient,    // made by the backward phase
  kActivation,  // made by the forward phase
  kUpdate,      // made by the update phase
  kWorkspace,   // of one call
  kHeld,        // what other micro-batches of a pipeline have in memory meanwhile
};
std::string_view name_of(BufferRole role);

// Bytes of one memory space with a lifetime and a place. The owner is the first value that lives
// there, or the call that a workspace is of.
struct PlannedBuffer {
  BufferRole role = BufferRole::kActivation;
  ValueId value = kNoValue;
  CallId call = kNoCall;
  std::string label = {};  // the value's name, or "workspace of NODE"
  Space space = Space::kDevice;
  bool external = false;    // in another program's arena (parameters of an evaluation): no bytes
  bool persistent = false;  // holds a parameter, a state or a constant
  std::int64_t begin = 0;   // the times [begin, end) at which the bytes are needed
  std::int64_t end = 0;
  std::int64_t bytes = 0;
  std::int64_t offset = 0;  // bytes from its arena's start
};

// Where a value lives; values that share bytes are in one buffer.
struct PlannedValue {
  BufferId buffer = kNoBuffer;  // none: nothing needs the value's bytes
  std::int64_t offset = 0;      // bytes from its buffer's start
};

// The block of a memory space that a program uses, and what the planner knows of its size.
struct SpacePlan {
  std::int64_t bytes = 0;              // of the arena
  std::int64_t lower_bound_bytes = 0;  // no placement of these buffers is lower
  bool proven = false;                 // bytes are the least that there can be
  std::string_view method = {};        // of placement
  std::int64_t alignment_bytes = memplan::Problem{}.alignment_bytes;
};

// What of a value a call reads or writes.
enum class TileSlice : std::uint8_t {
  kWhole,
  kExamples,  // a batch tile's equal slice along axis 0
  kPartial,   // a sum over the tile's examples; these are added up in the tiles' order
  kElements,  // of a result: the elements that one thread adds partials for
};

struct Operand {
  ValueId value = kNoValue;     // none: left out
  BufferId buffer = kNoBuffer;  // a partial lies in a workspace
  std::int64_t offset = 0;      // bytes from its buffer's start
  TensorType type = {};         // of the slice
  TileSlice slice = TileSlice::kWhole;
};

enum class CallKind : std::uint8_t {
  kKernel,
  kTransfer,     // between memory spaces: a kernel too
  kAddPartials,  // adds up the partials of batch tiles: a kernel too
  kStateCopy,    // after a phase: an update that cannot be in place
  kProgram,      // runs a program of its own, its body
};
std::string_view name_of(CallKind kind);

struct Program;

// A graph that a call runs, as often as an input says when the step runs. Its arena is the begin of
// the call's workspace: a part of the outer plan.
struct CallBody {
  std::unique_ptr<const Program> program;
  Trips trips = {};
  // By Trips::carried: where behind the arena, in bytes, an output that lies in an input waits
  // while others are carried; -1: it need not.
  std::vector<std::int64_t> waiting_at = {};
  std::int64_t workspace_bytes = 0;
};

// One piece of a step's work.
struct Call {
  CallKind kind = CallKind::kKernel;
  NodeId node = kNoNode;  // that it computes; of a state copy: that made the new elements
  Phase phase = Phase::kForward;
  std::int64_t time = 0;  // its place on the memory-time plane
  Stream stream = kComputeStream;
  std::vector<CallId> waits = {};  // calls of other streams that must be done before
  std::int32_t tile = -1;          // of a section; -1: outside
  const Kernel* kernel = nullptr;  // null: a copy, a body, or in a program that is a plan alone
  OtherKernels others = {};        // that could have been asked for it, and why they are not used
  Params params = {};
  Prepared prepared = {};
  std::vector<Operand> inputs = {};   // as the node has them; of a state copy: from
  std::vector<Operand> outputs = {};  // ... and to
  BufferId workspace = kNoBuffer;
  std::int64_t workspace_offset = 0;  // bytes from its buffer's start
  std::shared_ptr<const CallBody> body = {};
};

// Calls [begin, end) that so many threads run at once, each its own tile's: tile t has the calls
// begin + t, begin + t + tiles, ... in this order. Threads meet at the section's end.
struct TiledSection {
  CallId begin = kNoCall;
  CallId end = kNoCall;
  int tiles = 0;
};

// Invariants: calls are in phase order and, but for state copies, in order of time; no two buffers
// of a space whose lifetimes meet overlap (checked by memplan::validate); every operand is in a
// buffer; what touches bytes that a call of another stream has touched waits for it, or for one
// that does.
struct Program {
  Graph graph;
  DeviceHandle device;  // that runs it; null: the program is a plan alone
  bool runs = true;     // false: its calls have nothing prepared, as LowerOptions asked
  int threads = 1;
  std::array<SpacePlan, 2> spaces;  // by Space
  std::vector<PlannedBuffer> buffers;
  std::vector<PlannedValue> values;    // by ValueId
  std::vector<Call> calls;             // in order of issue
  std::vector<TiledSection> sections;  // in order
  CallId update_begin{0};              // the first call of the update phase
  std::int64_t times = 0;              // length of the memory-time plane
  std::int64_t update_time = 0;        // the first time of the update phase

  std::int64_t persistent_bytes = 0;  // parameters, states and constants
  std::int64_t workspace_bytes = 0;   // of the hungriest call

  const PlannedBuffer& buffer(BufferId id) const { return buffers[static_cast<std::size_t>(id)]; }
  const Call& call(CallId id) const { return calls[static_cast<std::size_t>(id)]; }
  const PlannedValue& place(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
  const SpacePlan& space(Space space) const { return spaces[static_cast<std::size_t>(space)]; }
  SpacePlan& space(Space space) { return spaces[static_cast<std::size_t>(space)]; }
  const SpacePlan& arena() const { return space(Space::kDevice); }
  bool keeps(ValueId id) const { return place(id).buffer != kNoBuffer; }
  // The buffer that the value lives in; null: there is none.
  const PlannedBuffer* buffer_of(ValueId id) const {
    return keeps(id) ? &buffer(place(id).buffer) : nullptr;
  }
  // Bytes from its arena's start; -1 where it is not in an arena of this program.
  std::int64_t offset_of(ValueId id) const {
    const PlannedBuffer* in = buffer_of(id);
    return in == nullptr || in->external ? -1 : in->offset + place(id).offset;
  }
};

// By time: the call that computes there, of a section the first tile's.
std::vector<CallId> calls_by_time(const Program& program);
// Bytes by NodeId: what a node's call needs besides its operands; in a section of all tiles.
std::vector<std::int64_t> workspaces_of(const Program& program);
std::int64_t workspace_bytes_of(const Program& program, const Call& call);
// The buffers of a space as the planner has them, in their order, with their offsets.
memplan::Problem placement_problem(const Program& program, Space space = Space::kDevice);
memplan::Solution placement_of(const Program& program, Space space = Space::kDevice);

}  // namespace trainscope
