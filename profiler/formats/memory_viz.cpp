// PyTorch's memory snapshot, a pickle: the arena is its one segment, the buffers of the plan are
// allocated and freed in the order of the calls.
#include <algorithm>
#include <string>
#include <vector>

#include "profiler/analysis/breakdown.h"
#include "profiler/formats/formats.h"

namespace trainscope::profiler {
namespace {

constexpr std::int64_t kArenaAddress = std::int64_t{1} << 32;
constexpr std::size_t kListPiece = 1000;  // that the viewer takes at a time

void put_little_endian(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>((value >> (8 * i)) & 0xFF);
}

// Values of a pickle of protocol 2, by its machine's instructions.
void put_text(std::string& out, std::string_view text) {
  out += 'X';
  put_little_endian(out, text.size(), 4);
  out += text;
}
void put_number(std::string& out, std::int64_t number) {
  if (number >= -(std::int64_t{1} << 31) && number < (std::int64_t{1} << 31)) {
    out += 'J';
    put_little_endian(out, static_cast<std::uint64_t>(number), 4);
    return;
  }
  out += "\x8a\x08";
  put_little_endian(out, static_cast<std::uint64_t>(number), 8);
}
void put_list(std::string& out, const std::vector<std::string>& items) {
  out += ']';
  for (std::size_t i = 0; i < items.size(); i += kListPiece) {
    out += '(';
    for (std::size_t k = i; k < std::min(items.size(), i + kListPiece); ++k) out += items[k];
    out += 'e';
  }
}

class Dict {
 public:
  Dict& text(std::string_view key, std::string_view value) {
    put_text(members_, key);
    put_text(members_, value);
    return *this;
  }
  Dict& number(std::string_view key, std::int64_t value) {
    put_text(members_, key);
    put_number(members_, value);
    return *this;
  }
  Dict& list(std::string_view key, const std::vector<std::string>& items) {
    put_text(members_, key);
    put_list(members_, items);
    return *this;
  }
  std::string done() const { return "}(" + members_ + "u"; }

 private:
  std::string members_;
};

class Snapshot {
 public:
  explicit Snapshot(const PlanView& plan) : plan_(plan) {
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
      const PlanBuffer& buffer = plan.buffers[i];
      if (buffer.space == PlanSpaceKind::kDevice && buffer.bytes > 0) buffers_.push_back(&buffer);
    }
  }

  std::string pickle() const {
    std::string all;
    put_list(all, trace());
    return std::string("\x80\x02") +
           Dict().list("segments", segments()).list("device_traces", {all}).done() + ".";
  }

 private:
  std::uint32_t end_of(const PlanBuffer& buffer) const {
    return std::min(buffer.end, plan_.facts().times);
  }
  bool stays(const PlanBuffer& buffer) const { return end_of(buffer) == plan_.facts().times; }

  // What the viewer shows of a buffer, as if it were a stack of calls: what it is, who writes it
  // first, that node's layer.
  std::vector<std::string> frames(const PlanBuffer& buffer) const {
    const std::string_view node = plan_.text(buffer.producer);
    const std::string what =
        std::string(plan_.text(buffer.label)) + " (" + std::string(name_of(buffer.holds)) + ")";
    const auto frame = [&](std::string_view file, std::string_view name) {
      return Dict().text("filename", file).number("line", buffer.begin).text("name", name).done();
    };
    return {frame(node, what), frame(layer_of(node), node)};
  }

  std::string event(std::string_view action, const PlanBuffer& buffer) const {
    return Dict()
        .text("action", action)
        .number("addr", kArenaAddress + buffer.offset)
        .number("size", buffer.bytes)
        .number("stream", 0)
        .list("frames", frames(buffer))
        .done();
  }

  std::vector<std::string> trace() const {
    std::vector<std::string> events = {Dict()
                                           .text("action", "segment_alloc")
                                           .number("addr", kArenaAddress)
                                           .number("size", plan_.arena().bytes)
                                           .number("stream", 0)
                                           .list("frames", {})
                                           .done()};
    struct Change {
      std::uint32_t time;
      bool begins;  // at one time, what ends comes before what begins
      const PlanBuffer* buffer;
    };
    std::vector<Change> changes;
    for (const PlanBuffer* buffer : buffers_) {
      if (buffer->begin >= end_of(*buffer)) continue;
      changes.push_back({buffer->begin, true, buffer});
      if (!stays(*buffer)) changes.push_back({buffer->end, false, buffer});
    }
    std::ranges::stable_sort(changes, [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.begins < b.begins;
    });
    for (const Change& change : changes) {
      if (change.begins) {
        events.push_back(event("alloc", *change.buffer));
      } else {
        events.push_back(event("free_requested", *change.buffer));
        events.push_back(event("free_completed", *change.buffer));
      }
    }
    return events;
  }

  std::string block(std::int64_t offset, std::int64_t bytes, const PlanBuffer* buffer) const {
    return Dict()
        .number("address", kArenaAddress + offset)
        .number("size", bytes)
        .number("requested_size", bytes)
        .text("state", buffer == nullptr ? "inactive" : "active_allocated")
        .list("frames", buffer == nullptr ? std::vector<std::string>() : frames(*buffer))
        .done();
  }

  // What is alive behind the last call, and what is free between: the whole arena.
  std::vector<std::string> blocks() const {
    std::vector<const PlanBuffer*> alive;
    std::ranges::copy_if(buffers_, std::back_inserter(alive),
                         [this](const PlanBuffer* buffer) { return stays(*buffer); });
    std::ranges::sort(alive, {}, &PlanBuffer::offset);
    std::vector<std::string> all;
    std::int64_t at = 0;
    for (const PlanBuffer* buffer : alive) {
      if (buffer->offset > at) all.push_back(block(at, buffer->offset - at, nullptr));
      all.push_back(block(buffer->offset, buffer->bytes, buffer));
      at = std::max(at, buffer->offset + buffer->bytes);
    }
    const std::int64_t end = plan_.arena().bytes;
    if (end > at) all.push_back(block(at, end - at, nullptr));
    return all;
  }

  std::vector<std::string> segments() const {
    std::int64_t active = 0;
    for (const PlanBuffer* buffer : buffers_) active += stays(*buffer) ? buffer->bytes : 0;
    return {Dict()
                .number("device", 0)
                .number("address", kArenaAddress)
                .number("total_size", plan_.arena().bytes)
                .number("allocated_size", active)
                .number("active_size", active)
                .number("requested_size", active)
                .number("stream", 0)
                .text("segment_type", "large")
                .list("blocks", blocks())
                .list("frames", {})
                .done()};
  }

  const PlanView& plan_;
  std::vector<const PlanBuffer*> buffers_;  // of the device's arena
};

void write_snapshot(const FormatInput& input, const WriteText& write) {
  write(Snapshot(input.plan).pickle());
}

}  // namespace

ProfileFormat memory_viz_format() {
  return {.name = "memory_viz", .needs_events = false, .write = write_snapshot};
}

}  // namespace trainscope::profiler
