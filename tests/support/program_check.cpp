// Follows every value through a program's arena, instruction by instruction.
#include "tests/support/program_check.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "engine/core/text.h"
#include "engine/ops/rules/byte_ranges.h"
#include "tests/support/kept_plans.h"

namespace trainscope::test {
namespace {

constexpr std::int64_t kUnit = 64;  // bytes; the plan aligns to it

struct Range {
  std::int64_t begin = 0;  // in units
  std::int64_t end = 0;
};

Range range_at(std::int64_t offset, std::int64_t bytes) {
  return {offset / kUnit, (offset + bytes + kUnit - 1) / kUnit};
}

bool overlap(Range a, Range b) { return std::max(a.begin, b.begin) < std::min(a.end, b.end); }

class Follower {
 public:
  explicit Follower(const Program& program)
      : program_(program),
        graph_(program.graph),
        arena_units_((program.arena().bytes + kUnit - 1) / kUnit),
        held_(static_cast<std::size_t>(arena_units_ +
                                       (program.space(Space::kHost).bytes + kUnit - 1) / kUnit),
              kNothing) {}

  std::vector<std::string> run() {
    find_contents();
    for (ValueId v : graph_.live_values()) {
      if (graph_.value(v).kind != ValueKind::kNode && placed(v)) take(v);
    }
    Phase last = Phase::kForward;
    check_operands();
    for (const CallId id : calls_by_time(program_)) {
      const Call& call = program_.call(id);
      if (call.phase < last) complain("the call at {} is of an earlier phase", call.time);
      const bool is_update = call.phase == Phase::kUpdate;
      if (is_update != (call.time >= program_.update_time)) complain("update_time");
      if (is_update != (id >= program_.update_begin)) complain("update_begin");
      last = call.phase;
      execute(call);
    }
    check_ends();
    return std::move(faults_);
  }

 private:
  // What a unit of memory holds: a value and which of its units. Its number is unique.
  using Unit = std::int64_t;
  static constexpr Unit kNothing = -1;
  static constexpr Unit kWorkspace = -2;

  template <typename... Args>
  void complain(fmt::format_string<Args...> format, Args&&... args) {
    if (faults_.size() < 20) faults_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  // A view holds what its source holds, a part what the whole holds there.
  void find_contents() {
    contents_.resize(graph_.value_capacity());
    Unit next = 0;
    for (ValueId v : graph_.live_values()) {
      const Range units = range_at(0, static_cast<std::int64_t>(graph_.value(v).type.bytes()));
      for (std::int64_t u = 0; u < units.end; ++u) contents_[index(v)].push_back(next++);
    }
    for (NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (node.op->is_view) contents_[index(node.outputs[0])] = contents_[index(node.inputs[0])];
      find_parts(node);
    }
  }

  void find_parts(const Node& node) {
    const ByteRanges ranges = byte_ranges(graph_, node);
    if (ranges.offsets.empty()) return;
    std::vector<Unit>& whole =
        contents_[index(ranges.in_output ? node.outputs[0] : node.inputs[0])];
    const std::vector<ValueId>& parts = ranges.in_output ? node.inputs : node.outputs;
    for (std::size_t i = 0; i < std::min(parts.size(), ranges.offsets.size()); ++i) {
      if (parts[i] == kNoValue || ranges.offsets[i] % kUnit != 0) continue;
      std::vector<Unit>& part = contents_[index(parts[i])];
      const auto begin = whole.begin() + ranges.offsets[i] / kUnit;
      // Units that hold something else, too, are neither's.
      const auto bytes = static_cast<std::int64_t>(graph_.value(parts[i]).type.bytes());
      const bool at_end = begin + std::ssize(part) == whole.end();
      const std::int64_t units = at_end ? std::ssize(part) : bytes / kUnit;
      if (ranges.in_output) {
        std::copy_n(part.begin(), units, begin);
      } else {
        std::copy_n(begin, units, part.begin());
      }
    }
  }

  static std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }
  const std::string& name(ValueId v) const { return graph_.value(v).name; }
  bool placed(ValueId v) const { return v != kNoValue && program_.offset_of(v) >= 0; }
  bool elsewhere(ValueId v) const {
    const PlannedBuffer* buffer = program_.buffer_of(v);
    return buffer != nullptr && buffer->external;
  }
  // Host memory comes after the arena.
  Range range(ValueId v) const {
    const bool host = program_.buffer_of(v)->space == Space::kHost;
    return range_at((host ? arena_units_ * kUnit : 0) + program_.offset_of(v),
                    static_cast<std::int64_t>(graph_.value(v).type.bytes()));
  }

  bool is_inside(Range range) {
    if (range.begin >= 0 && range.end <= static_cast<std::int64_t>(held_.size())) return true;
    complain("units {} to {} are outside the arena", range.begin, range.end);
    return false;
  }
  void take(ValueId v) {
    const std::vector<Unit>& content = contents_[index(v)];
    if (is_inside(range(v))) std::ranges::copy(content, held_.begin() + range(v).begin);
  }

  bool holds(ValueId storage, ValueId content) const {
    const Range r = range(storage);
    return std::equal(held_.begin() + r.begin, held_.begin() + r.end,
                      contents_[index(content)].begin(), contents_[index(content)].end());
  }

  // Whether the two have the same elements where they lie over one another.
  bool agree(ValueId a, ValueId b) const {
    for (std::int64_t u = std::max(range(a).begin, range(b).begin);
         u < std::min(range(a).end, range(b).end); ++u) {
      const Unit in_a = contents_[index(a)][static_cast<std::size_t>(u - range(a).begin)];
      if (in_a != contents_[index(b)][static_cast<std::size_t>(u - range(b).begin)]) return false;
    }
    return true;
  }

  // Operands lie where their values do, slices inside of them; partials in a workspace.
  void check_operands() {
    for (const Call& call : program_.calls) {
      for (const std::vector<Operand>* operands : {&call.inputs, &call.outputs}) {
        for (const Operand& operand : *operands) check_operand(call, operand);
      }
    }
  }

  void check_operand(const Call& call, const Operand& operand) {
    if (operand.value == kNoValue) return;
    const PlannedValue& place = program_.place(operand.value);
    const auto bytes = static_cast<std::int64_t>(operand.type.bytes());
    const auto whole = static_cast<std::int64_t>(graph_.value(operand.value).type.bytes());
    if (operand.buffer == place.buffer) {
      const std::int64_t at = operand.offset - place.offset;
      const bool is_whole = operand.slice == TileSlice::kWhole;
      if (is_whole ? at != 0 || bytes != whole : at < 0 || at + bytes > whole) {
        complain("'{}' of '{}' is not where its value is", name(operand.value), call_name(call));
      }
      return;
    }
    const bool partial = operand.slice == TileSlice::kPartial &&
                         program_.buffer(operand.buffer).role == BufferRole::kWorkspace;
    if (!partial || operand.offset + bytes > program_.buffer(operand.buffer).bytes) {
      complain("'{}' of '{}' is in another buffer", name(operand.value), call_name(call));
    }
  }
  std::string call_name(const Call& call) const {
    return call.node == kNoNode ? std::string(name_of(call.kind)) : graph_.node(call.node).name;
  }

  void execute(const Call& call) {
    const Node& node = graph_.node(call.node);
    for (ValueId v : node.inputs) {
      if (v == kNoValue || elsewhere(v)) continue;
      if (!placed(v)) {
        complain("node '{}' reads '{}', which has no place", node.name, name(v));
      } else if (!holds(v, v)) {
        complain("node '{}' reads '{}', whose bytes hold something else", node.name, name(v));
      }
    }
    check_overlaps(node);
    if (call.workspace != kNoBuffer) use_workspace(node, program_.buffer(call.workspace));
    for (ValueId v : node.outputs) {
      if (placed(v)) take(v);
      if (v != kNoValue && !placed(v)) complain("node '{}': '{}' has no place", node.name, name(v));
    }
  }

  bool allowed(const Node& node, std::size_t output, std::size_t input) const {
    if (!node.op->in_place) return false;
    const NodeArgs args(graph_, node);
    return std::ranges::any_of(node.op->in_place(*args), [&](const InPlace& pair) {
      return pair.output == static_cast<int>(output) && pair.input == static_cast<int>(input);
    });
  }

  void check_overlaps(const Node& node) {
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (!placed(node.outputs[o])) continue;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (!placed(node.inputs[i]) || !overlap(range(node.outputs[o]), range(node.inputs[i])) ||
            agree(node.outputs[o], node.inputs[i])) {
          continue;
        }
        const bool same_place = range(node.outputs[o]).begin == range(node.inputs[i]).begin;
        if (!same_place || !allowed(node, o, i)) {
          complain("node '{}' writes '{}' over its input '{}'", node.name, name(node.outputs[o]),
                   name(node.inputs[i]));
        }
      }
      for (std::size_t p = 0; p < o; ++p) {
        if (placed(node.outputs[p]) && overlap(range(node.outputs[o]), range(node.outputs[p]))) {
          complain("node '{}': outputs {} and {} share bytes", node.name, o, p);
        }
      }
    }
  }

  void use_workspace(const Node& node, const PlannedBuffer& buffer) {
    const Range workspace = range_at(buffer.offset, buffer.bytes);
    for (const std::vector<ValueId>* values : {&node.inputs, &node.outputs}) {
      for (ValueId v : *values) {
        if (placed(v) && overlap(range(v), workspace)) {
          complain("the workspace of '{}' touches '{}'", node.name, name(v));
        }
      }
    }
    if (!is_inside(workspace)) return;
    std::fill(held_.begin() + workspace.begin, held_.begin() + workspace.end, kWorkspace);
  }

  void check_end(ValueId v, std::string_view what) {
    if (v == kNoValue || elsewhere(v)) return;
    if (!placed(v) || !holds(v, v)) complain("{} '{}' is lost at the end", what, name(v));
  }

  // Where an update is in place, the state's bytes hold the new value in the end.
  void check_ends() {
    for (ValueId v : graph_.outputs) {
      const bool updated =
          std::ranges::any_of(graph_.updates, [v](const Update& u) { return u.state == v; });
      if (!updated) check_end(v, "output");
    }
    check_end(graph_.loss, "loss");
    for (const GradientOf& g : graph_.gradients) check_end(g.gradient, "gradient");
    for (const Update& u : graph_.updates) {
      if (elsewhere(u.state) || holds(u.state, u.value)) continue;
      const bool copied = std::ranges::any_of(program_.calls, [&u](const Call& call) {
        return call.kind == CallKind::kStateCopy && call.inputs[0].value == u.value &&
               call.outputs[0].value == u.state;
      });
      if (!copied || !holds(u.state, u.state) || !(elsewhere(u.value) || holds(u.value, u.value))) {
        complain("the update of '{}' is lost", name(u.state));
      }
    }
    for (ValueId v : graph_.live_values()) {
      const ValueKind kind = graph_.value(v).kind;
      const bool kept = kind == ValueKind::kParameter || kind == ValueKind::kState ||
                        kind == ValueKind::kConstant;
      const bool updated =
          std::ranges::any_of(graph_.updates, [v](const Update& u) { return u.state == v; });
      if (kept && !updated && placed(v) && !holds(v, v)) complain("'{}' was overwritten", name(v));
    }
  }

  const Program& program_;
  const Graph& graph_;
  std::vector<std::vector<Unit>> contents_;  // by ValueId
  std::int64_t arena_units_;
  std::vector<Unit> held_;  // by unit of both arenas
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> placement_faults(const Program& program) {
  return Follower(program).run();
}

void move_value(Program& program, ValueId value, PlannedValue place) {
  program.values[static_cast<std::size_t>(value)] = place;
  for (Call& call : program.calls) {
    for (std::vector<Operand>* operands : {&call.inputs, &call.outputs}) {
      for (Operand& operand : *operands) {
        if (operand.value != value) continue;
        operand.buffer = place.buffer;
        operand.offset = place.offset;
      }
    }
  }
}

void check_placements(const Program& program, const Stages& stages) {
  const std::vector<std::string> faults = placement_faults(program);
  CHECK_MESSAGE(faults.empty(), join(faults, "\n"));
  keep_plan(program, stages);
}

}  // namespace trainscope::test
