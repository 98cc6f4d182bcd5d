// Trace event JSON, read event by event: an array of events, or an object whose member
// "traceEvents" is one. Memory is that of one event, however long the file is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/core/json.h"
#include "profiler/import/byte_source.h"

namespace trainscope::profiler {

inline constexpr std::size_t kMostEventBytes = std::size_t{1} << 20;  // of one event, or member
inline constexpr std::size_t kMostMembers = 1000;                     // of the outer object

// Where an event stands, for messages.
struct EventPlace {
  std::uint64_t index = 0;  // from 0
  std::uint64_t byte = 0;   // of the uncompressed text
  std::uint64_t line = 0;   // from 1
};

struct TraceFrame {
  bool is_object = false;  // else an array alone
  bool has_events = false;
  Json members = Json::object();  // of the outer object, but the events
};

// Gives each event to `take`. Throws kBadInput with byte and line for what is no JSON, is cut
// short, has text behind its end, is nested deeper than Json::kMaxDepth, or has an event beyond
// kMostEventBytes. What `take` throws gets the event's place.
using TakeEvent = std::function<void(const Json& event, const EventPlace& place)>;
TraceFrame read_trace(const ByteSource& source, const TakeEvent& take);

}  // namespace trainscope::profiler
