// speedscope's JSON: the driving thread's time, each piece a sample that weighs its nanoseconds, in
// their order.
#include <map>
#include <string>

#include "engine/core/json.h"
#include "profiler/analysis/timeline.h"
#include "profiler/formats/formats.h"

namespace trainscope::profiler {
namespace {

// Frames by name, each once.
class Frames {
 public:
  std::size_t id(const std::string& name) {
    const auto [found, is_new] = ids_.emplace(name, ids_.size());
    if (is_new) text_ += (text_.empty() ? "" : ",\n") + ("{\"name\": " + Json(name).dump() + "}");
    return found->second;
  }
  const std::string& text() const { return text_; }

 private:
  std::map<std::string, std::size_t> ids_;
  std::string text_;
};

void write_speedscope(const FormatInput& input, const WriteText& write) {
  Frames frames;
  std::string samples;
  std::string weights;
  std::int64_t total = 0;
  std::map<std::pair<std::uint32_t, EventKind>, std::string> known;  // stacks
  for (const TimelinePiece& piece : timeline(*input.events, input.plan)) {
    std::string& stack = known[{piece.call, piece.kind}];
    if (stack.empty()) {
      for (const std::string& name : path_of(input.plan, piece)) {
        stack += (stack.empty() ? "[" : ", ") + std::to_string(frames.id(name));
      }
      stack += "]";
    }
    samples += (samples.empty() ? "" : ",\n") + stack;
    weights += (weights.empty() ? "" : ",") + std::to_string(piece.ns());
    total += piece.ns();
  }
  write(
      "{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n\"name\": " +
      Json(input.name).dump() +
      ",\n\"exporter\": \"trainscope\",\n\"activeProfileIndex\": 0,\n\"shared\": {\"frames\": [\n");
  write(frames.text());
  write(
      "\n]},\n\"profiles\": [{\"type\": \"sampled\", \"name\": \"steps\", \"unit\": "
      "\"nanoseconds\", \"startValue\": 0, \"endValue\": " +
      std::to_string(total) + ",\n\"samples\": [\n");
  write(samples);
  write("\n],\n\"weights\": [");
  write(weights);
  write("]}]\n}\n");
}

}  // namespace

ProfileFormat speedscope_format() { return {.name = "speedscope", .write = write_speedscope}; }

}  // namespace trainscope::profiler
