// pprof's profile.proto: a stack for each call and each kind of other time, with its nanoseconds
// and how often it ran in all profiled steps.
#include <map>
#include <string>
#include <vector>

#include "profiler/analysis/timeline.h"
#include "profiler/formats/formats.h"

namespace trainscope::profiler {
namespace {

// Fields of protobuf's wire format: a key (number and wire type), then the value.
void add_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}
void add_number(std::string& out, std::uint32_t field, std::uint64_t value) {
  add_varint(out, std::uint64_t{field} << 3);
  add_varint(out, value);
}
void add_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  add_varint(out, (std::uint64_t{field} << 3) | 2);
  add_varint(out, bytes.size());
  out += bytes;
}
void add_packed(std::string& out, std::uint32_t field, const std::vector<std::uint64_t>& values) {
  std::string packed;
  for (const std::uint64_t value : values) add_varint(packed, value);
  add_bytes(out, field, packed);
}

class Message {
 public:
  Message() { string(""); }  // string 0 is the empty one

  std::uint64_t string(const std::string& text) {
    return strings_.emplace(text, strings_.size()).first->second;
  }
  // ValueType: type 1, unit 2.
  void sample_type(const std::string& type, const std::string& unit) {
    std::string body;
    add_number(body, 1, string(type));
    add_number(body, 2, string(unit));
    add_bytes(head_, 1, body);
  }
  // Sample: location_id 1, the innermost first; value 2.
  void sample(const std::vector<std::string>& path, const std::vector<std::uint64_t>& values) {
    std::vector<std::uint64_t> locations;
    for (auto name = path.rbegin(); name != path.rend(); ++name) {
      locations.push_back(location(*name));
    }
    std::string body;
    add_packed(body, 1, locations);
    add_packed(body, 2, values);
    add_bytes(head_, 2, body);
  }
  void period(std::uint64_t start_unix_ns, std::uint64_t ns) {
    add_number(tail_, 9, start_unix_ns);
    add_number(tail_, 10, ns);
  }
  // ... with the table of strings, by position.
  std::string text() const {
    std::vector<const std::string*> in_order(strings_.size());
    for (const auto& [text, id] : strings_) in_order[id] = &text;
    std::string out = head_ + locations_;
    for (const std::string* text : in_order) add_bytes(out, 6, *text);
    return out + tail_;
  }

 private:
  // A name is a function of its own at a location of its own. Location: id 1, line 4 (Line:
  // function_id 1); Function: id 1, name 2.
  std::uint64_t location(const std::string& name) {
    const auto [found, is_new] = ids_.emplace(name, ids_.size() + 1);
    if (!is_new) return found->second;
    std::string line;
    add_number(line, 1, found->second);
    std::string place;
    add_number(place, 1, found->second);
    add_bytes(place, 4, line);
    add_bytes(locations_, 4, place);
    std::string function;
    add_number(function, 1, found->second);
    add_number(function, 2, string(name));
    add_bytes(locations_, 5, function);
    return found->second;
  }

  std::map<std::string, std::uint64_t> strings_;
  std::map<std::string, std::uint64_t> ids_;
  std::string head_;
  std::string locations_;
  std::string tail_;
};

struct Sum {
  TimelinePiece piece;
  std::uint64_t pieces = 0;
  std::uint64_t ns = 0;
};

void write_pprof(const FormatInput& input, const WriteText& write) {
  std::map<std::pair<std::uint32_t, EventKind>, Sum> sums;
  std::uint64_t total = 0;
  for (const TimelinePiece& piece : timeline(*input.events, input.plan)) {
    Sum& sum = sums.try_emplace({piece.call, piece.kind}, Sum{.piece = piece}).first->second;
    ++sum.pieces;
    sum.ns += static_cast<std::uint64_t>(piece.ns());
    total += static_cast<std::uint64_t>(piece.ns());
  }
  Message message;
  message.sample_type("pieces", "count");
  message.sample_type("time", "nanoseconds");
  for (const auto& [key, sum] : sums) {
    message.sample(path_of(input.plan, sum.piece), {sum.pieces, sum.ns});
  }
  message.period(static_cast<std::uint64_t>(input.events->facts.start_unix_ns), total);
  write(message.text());
}

}  // namespace

ProfileFormat pprof_format() {
  return {.name = "pprof", .always_compressed = true, .write = write_pprof};
}

}  // namespace trainscope::profiler
