// Rows of a plan's record: of fixed size, in plan.bin as they are in memory (docs/plan-format.md).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "engine/core/op_class.h"

namespace trainscope {

// Raised when a row changes; a new table alone does not raise it.
inline constexpr std::uint32_t kPlanRecordVersion = 4;
// From here on versions have rows of today's sizes but for nodes: what they do not know is 0.
inline constexpr std::uint32_t kOldestWithTheseCalls = 2;
inline constexpr std::uint32_t kOldestWithTheseNodes = 4;

// Positions of rows. kNoRow: none.
inline constexpr std::uint32_t kNoRow = std::numeric_limits<std::uint32_t>::max();
// Position of a text in the record's texts; 0 is the empty one.
using TextId = std::uint32_t;

// Rows [begin, begin + count) of another table.
struct RowRange {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
};

enum class PlanPhase : std::uint8_t { kForward, kBackward, kUpdate };
enum class PlanSpaceKind : std::uint8_t { kDevice, kHost };

enum class PlanValueKind : std::uint8_t { kInput, kParameter, kState, kConstant, kNode, kErased };

// What a buffer holds. kHeld: bytes that other micro-batches in flight keep.
enum class BufferClass : std::uint8_t {
  kParameter,
  kState,
  kConstant,
  kInput,
  kGradient,    // made by the backward phase
  kActivation,  // made by the forward phase
  kUpdate,      // made by the update phase
  kWorkspace,
  kHeld,
};

enum class BufferOwner : std::uint8_t { kNone, kValue, kCall };

enum class PlanCallKind : std::uint8_t {
  kKernel,
  kTransfer,     // a value goes to host memory, or comes back
  kAddPartials,  // partials of batch tiles are added up to the result
  kStateCopy,    // the new value of a state goes to the state's own bytes
  kProgram,      // runs a program of its own in its workspace
};

// What of a value a call reads or writes: a batch tile's slice, a tile's sum over its examples, the
// elements that one thread adds partials for.
enum class PlanSlice : std::uint8_t { kWhole, kExamples, kPartial, kElements };

// Sizes of the plan, in bytes. `times` is the length of the time axis: what computes a node takes
// one position, in a tiled section all of its tiles together; other calls share the one before.
struct PlanFacts {
  std::int64_t persistent_bytes = 0;
  std::int64_t workspace_bytes = 0;  // of the hungriest call
  std::uint32_t times = 0;
  std::uint32_t update_begin = 0;  // the first time of the update phase
  std::uint32_t threads = 1;
  std::uint32_t update_call = 0;  // the first call of the update phase
  TextId device = 0;              // its name; empty: not known, or a plan alone
  std::uint32_t reserved = 0;
};

// A memory space of the device, and the arena in it.
struct PlanSpace {
  std::int64_t bytes = 0;  // of the arena
  std::int64_t lower_bound_bytes = 0;
  std::int64_t alignment_bytes = 1;  // of every offset
  TextId name = 0;                   // as the device calls it
  TextId method = 0;                 // of the placement
  PlanSpaceKind kind = PlanSpaceKind::kDevice;
  std::uint8_t proven = 0;  // 1: no placement of these buffers needs less
  std::array<std::uint8_t, 6> reserved = {};
};

// What recomputation saves and costs, as predicted. Unknown: -1, and NaN for times.
struct PlanRecompute {
  std::int64_t repeats = -1;  // nodes that are there a second time, views too
  std::int64_t plain_bytes = -1;
  std::int64_t offloaded_bytes = -1;
  std::int64_t budget_bytes = -1;
  std::int64_t bound_bytes = -1;
  double plain_seconds = std::numeric_limits<double>::quiet_NaN();  // of a step
  double seconds = std::numeric_limits<double>::quiet_NaN();
  double bound_seconds = std::numeric_limits<double>::quiet_NaN();
};

struct PlanValue {
  TextId name = 0;
  TextId dtype = 0;
  RowRange shape = {};                 // of dims
  std::uint32_t buffer = kNoRow;       // kNoRow: not placed, or in another program's arena
  std::uint32_t producer = kNoRow;     // node
  std::uint32_t gradient_of = kNoRow;  // the value whose gradient it is
  std::uint32_t serial = 0;            // by which the run's stages know it; 0: not known
  PlanValueKind kind = PlanValueKind::kErased;
  std::array<std::uint8_t, 3> reserved = {};
  std::uint32_t view_of = kNoRow;  // the value whose elements it has under another shape, uncopied
  std::int64_t offset = 0;         // bytes from its buffer's begin
  std::int64_t bytes = 0;
};

struct PlanBuffer {
  BufferClass holds = BufferClass::kActivation;
  PlanSpaceKind space = PlanSpaceKind::kDevice;
  BufferOwner owner_kind = BufferOwner::kNone;
  std::uint8_t external = 0;     // 1: the bytes are in another program's arena
  std::uint32_t owner = kNoRow;  // a value, or the call whose workspace it is
  TextId label = 0;
  TextId producer = 0;      // the node that writes it first, or what kind of value it starts as
  RowRange values = {};     // of members
  std::uint32_t begin = 0;  // the first time that it is written
  std::uint32_t end = 0;    // the first time that no longer needs it
  std::int64_t offset = 0;  // bytes from the arena's begin
  std::int64_t bytes = 0;
};

struct PlanNode {
  TextId name = 0;
  TextId op = 0;
  TextId pass = 0;        // that made it
  RowRange sources = {};  // of names: ONNX nodes that it stems from, the primary one first
  PlanPhase phase = PlanPhase::kForward;
  OpClass op_class = OpClass::kUnstated;
  std::array<std::uint8_t, 2> reserved = {};
  std::uint32_t serial = 0;       // by which the run's stages know it; 0: not known
  std::uint32_t backward_of = 0;  // the serial of the node of whose gradient it is a part; 0: none
  std::uint32_t rematerialized_of = kNoRow;  // the node that computes the same first
};

// An input or output of a call; value kNoRow: an optional one that is left out.
struct PlanOperand {
  std::uint32_t value = kNoRow;
  std::uint32_t buffer = kNoRow;
  std::int64_t offset = 0;  // bytes from its buffer's begin
  PlanSlice slice = PlanSlice::kWhole;
  std::array<std::uint8_t, 3> reserved = {};
  TextId dtype = 0;     // of the slice, as its shape is; empty: not known
  RowRange shape = {};  // of dims
};

// A kernel that could have been asked for a call, and why it was not taken.
struct PlanOtherKernel {
  TextId kernel = 0;
  TextId reason = 0;
};

struct PlanCall {
  PlanCallKind kind = PlanCallKind::kKernel;
  PlanPhase phase = PlanPhase::kForward;
  std::uint16_t stream = 0;
  std::uint32_t node = kNoRow;
  TextId kernel = 0;
  TextId dtype = 0;             // that the kernel is for
  RowRange inputs = {};         // of operands
  RowRange outputs = {};        // of operands
  RowRange waits = {};          // of waits: calls of other streams that must be done
  RowRange other_kernels = {};  // of other_kernels: those asked before its own, then those behind
  std::uint32_t workspace = kNoRow;  // buffer
  std::uint32_t tile = kNoRow;       // that it runs on, in a tiled section
  std::uint32_t section = kNoRow;
  std::uint32_t time = 0;
  std::int64_t flops = 0;  // by the op's definition, of a tile its share
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  std::int64_t kernel_flops = -1;  // what the kernel says that it does; -1: not known
  std::int64_t kernel_bytes_read = -1;
  std::int64_t kernel_bytes_written = -1;
  std::int64_t workspace_offset = 0;  // bytes from the workspace's begin: of a tile
  std::int64_t workspace_bytes = 0;   // of the call, a tile's own; -1: not known
  std::uint32_t body = kNoRow;        // of kProgram: what it runs
  std::uint32_t behind = 0;           // how many of its other kernels, the last ones, are behind
};

// Calls [begin, end) that so many threads run through at once, each its own batch tile's: tile t
// has the calls begin + t, begin + t + tiles, ...
struct PlanSection {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t tiles = 0;
};

// What a call of kind kProgram runs: a plan of its own, whose arena is the call's workspace. Its
// inputs and outputs are the call's, in their order.
struct PlanBody {
  std::uint64_t offset = 0;  // in plan.bin: of its record in the bytes of all bodies
  std::uint64_t bytes = 0;
  RowRange carried = {};
  std::uint32_t trips_input = kNoRow;  // of the call: how often it runs; kNoRow: once
  std::uint32_t reserved = 0;
};

// After each trip of a body the elements of output `from` go to input `to`.
struct PlanCarried {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

static_assert(sizeof(PlanFacts) == 40 && sizeof(PlanSpace) == 40 && sizeof(PlanRecompute) == 64);
static_assert(sizeof(PlanValue) == 56 && sizeof(PlanBuffer) == 48 && sizeof(PlanNode) == 36);
static_assert(sizeof(PlanOperand) == 32 && sizeof(PlanOtherKernel) == 8 && sizeof(PlanCall) == 136);
static_assert(sizeof(PlanSection) == 12 && sizeof(PlanBody) == 32 && sizeof(PlanCarried) == 8);

// The rows of a range.
template <typename Row>
std::span<const Row> rows_of(std::span<const Row> table, RowRange range) {
  return table.subspan(range.begin, range.count);
}

// "forward", "backward", "update".
std::string_view name_of(PlanPhase phase);
// "device", "host".
std::string_view name_of(PlanSpaceKind kind);
// "input", "parameter", "state", "constant", "node".
std::string_view name_of(PlanValueKind kind);
// "parameter", "state", ..., "workspace", "held".
std::string_view name_of(BufferClass holds);
// "kernel", "transfer", "add_partials", "state_copy", "program".
std::string_view name_of(PlanCallKind kind);
// "whole", "examples", "partial", "elements".
std::string_view name_of(PlanSlice slice);

}  // namespace trainscope
