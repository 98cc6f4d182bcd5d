// The record of a plan: every call of a training step, every value, and every buffer with its place
// in memory. It is one to one with the program that ran: a CallId, ValueId, BufferId or NodeId of
// the program is the position of its row here.
//
// The rows are of fixed size and are in plan.bin as they are in memory (docs/run-format.md).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace trainscope {

// Raised when a row changes; a new table alone does not raise it.
inline constexpr std::uint32_t kPlanRecordVersion = 1;

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
enum class PlanSpace : std::uint8_t { kDevice, kHost };

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
  std::int64_t arena_bytes = 0;
  std::int64_t host_arena_bytes = 0;
  std::int64_t lower_bound_bytes = 0;
  std::int64_t persistent_bytes = 0;
  std::int64_t workspace_bytes = 0;  // of the hungriest call
  std::int64_t alignment_bytes = 1;
  std::uint32_t times = 0;
  std::uint32_t update_begin = 0;  // the first time of the update phase
  std::uint32_t threads = 1;
  std::uint32_t proven = 0;       // 1: no placement of these buffers needs less
  TextId method = 0;              // of the placement
  std::uint32_t update_call = 0;  // the first call of the update phase
};

// What recomputation saves and costs, as predicted. Unknown: -1, and NaN for times.
struct PlanRecompute {
  std::int64_t repeats = -1;  // nodes that run a second time
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
  std::array<std::uint8_t, 7> reserved = {};
  std::int64_t offset = 0;  // bytes from its buffer's begin
  std::int64_t bytes = 0;
};

struct PlanBuffer {
  BufferClass holds = BufferClass::kActivation;
  PlanSpace space = PlanSpace::kDevice;
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
  std::array<std::uint8_t, 3> reserved = {};
  std::uint32_t serial = 0;       // by which the run's stages know it; 0: not known
  std::uint32_t backward_of = 0;  // the serial of the node of whose gradient it is a part; 0: none
};

// An input or output of a call; value kNoRow: an optional one that is left out.
struct PlanOperand {
  std::uint32_t value = kNoRow;
  std::uint32_t buffer = kNoRow;
  std::int64_t offset = 0;  // bytes from its buffer's begin
  PlanSlice slice = PlanSlice::kWhole;
  std::array<std::uint8_t, 7> reserved = {};
};

// A kernel that was asked before the chosen one, and why it was not taken.
struct PlanRefusal {
  TextId kernel = 0;
  TextId reason = 0;
};

struct PlanCall {
  PlanCallKind kind = PlanCallKind::kKernel;
  PlanPhase phase = PlanPhase::kForward;
  std::uint16_t stream = 0;
  std::uint32_t node = kNoRow;
  TextId kernel = 0;
  TextId dtype = 0;                  // that the kernel is for
  RowRange inputs = {};              // of operands
  RowRange outputs = {};             // of operands
  RowRange waits = {};               // of waits: calls of other streams that must be done
  RowRange refused = {};             // of refusals
  std::uint32_t workspace = kNoRow;  // buffer
  std::uint32_t tile = kNoRow;       // that it runs on, in a tiled section
  std::uint32_t section = kNoRow;
  std::uint32_t time = 0;
  std::int64_t flops = 0;
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  std::int64_t workspace_offset = 0;  // bytes from the workspace's begin: of a tile
};

// Calls [begin, end) that so many threads run through at once, each its own batch tile's: tile t
// has the calls begin + t, begin + t + tiles, ...
struct PlanSection {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t tiles = 0;
};

static_assert(sizeof(PlanFacts) == 72 && sizeof(PlanRecompute) == 64 && sizeof(PlanValue) == 56);
static_assert(sizeof(PlanBuffer) == 48 && sizeof(PlanNode) == 32 && sizeof(PlanOperand) == 24);
static_assert(sizeof(PlanRefusal) == 8 && sizeof(PlanCall) == 96 && sizeof(PlanSection) == 12);

// Texts, each once, one after the other.
class PlanTexts {
 public:
  PlanTexts() { id(""); }
  TextId id(std::string_view text);  // adds it where it is new

  std::span<const std::uint32_t> ends() const { return ends_; }  // of each in bytes()
  std::span<const char> bytes() const { return bytes_; }

 private:
  std::vector<std::uint32_t> ends_;
  std::vector<char> bytes_;
  std::unordered_map<std::string, TextId> known_;
};

// A record that is being made.
struct PlanRecord {
  PlanFacts facts = {};
  std::vector<PlanRecompute> recompute = {};  // one, or none without recomputation
  PlanTexts texts = {};
  std::vector<std::int64_t> dims = {};
  std::vector<PlanValue> values = {};
  std::vector<PlanBuffer> buffers = {};
  std::vector<std::uint32_t> members = {};  // values in buffers
  std::vector<PlanNode> nodes = {};
  std::vector<PlanCall> calls = {};
  std::vector<PlanOperand> operands = {};
  std::vector<std::uint32_t> waits = {};
  std::vector<TextId> names = {};
  std::vector<PlanRefusal> refusals = {};
  std::vector<PlanSection> sections = {};
};

// A record to read, in memory or in a mapped file, which must outlive it. What comes from a file
// has been checked: every position is inside its table.
struct PlanView {
  std::span<const PlanFacts> facts_row = {};  // one
  std::span<const PlanRecompute> recompute = {};
  std::span<const std::uint32_t> text_ends = {};
  std::span<const char> text_bytes = {};
  std::span<const std::int64_t> dims = {};
  std::span<const PlanValue> values = {};
  std::span<const PlanBuffer> buffers = {};
  std::span<const std::uint32_t> members = {};
  std::span<const PlanNode> nodes = {};
  std::span<const PlanCall> calls = {};
  std::span<const PlanOperand> operands = {};
  std::span<const std::uint32_t> waits = {};
  std::span<const TextId> names = {};
  std::span<const PlanRefusal> refusals = {};
  std::span<const PlanSection> sections = {};

  const PlanFacts& facts() const { return facts_row[0]; }
  std::string_view text(TextId id) const;
  std::string_view name_of(const PlanCall& call) const;  // of its node, or of what it writes
  std::string_view op_of(const PlanCall& call) const;    // of its node; empty for a copy
  std::span<const TextId> sources_of(const PlanCall& call) const;
  bool is_external(const PlanValue& value) const {
    return value.buffer != kNoRow && buffers[value.buffer].external != 0;
  }
};

// The rows of a range.
template <typename Row>
std::span<const Row> rows_of(std::span<const Row> table, RowRange range) {
  return table.subspan(range.begin, range.count);
}

PlanView view_of(const PlanRecord& record);

// "forward", "backward", "update".
std::string_view name_of(PlanPhase phase);
// "input", "parameter", "state", "constant", "node".
std::string_view name_of(PlanValueKind kind);
// "parameter", "state", ..., "workspace", "held".
std::string_view name_of(BufferClass holds);
// "kernel", "transfer", "add_partials", "state_copy", "program".
std::string_view name_of(PlanCallKind kind);
// "whole", "examples", "partial", "elements".
std::string_view name_of(PlanSlice slice);

// Bytes alive at each time in the device's arena.
std::vector<std::int64_t> live_bytes(const PlanView& plan);

// Empty when every position is inside its table and every size makes sense, else what does not.
std::string find_fault(const PlanView& plan);

}  // namespace trainscope
