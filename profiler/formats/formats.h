// Forms of a run's plan and profile for other tools: one file and one line of formats.def each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/bundle/plan_record.h"
#include "profiler/formats/text_sink.h"
#include "profiler/store/event_file.h"

namespace trainscope::profiler {

inline constexpr std::int64_t kMostRanks = 1000;

struct FormatInput {
  const EventView* events = nullptr;  // null: there is no profile
  PlanView plan = {};
  std::string name = {};  // of the run
  std::int64_t rank = 0;
  std::int64_t ranks = 1;  // kMostRanks at most
  bool as_device = false;  // of "chrome": calls of the host as kernels of a device
};

struct ProfileFormat {
  std::string_view name;
  bool needs_events = true;        // else the plan is enough
  bool always_compressed = false;  // else where the file's name ends with .gz
  // Throws kBadInput for events that are not of the plan, and kUsage for `as_device` where a device
  // ran the calls.
  void (*write)(const FormatInput& input, const WriteText& write);
};

// Of formats.def; null: there is no such format.
const ProfileFormat* format_named(std::string_view name);

// Writes in the format; `compressed`: as gzip.
void write_format(const ProfileFormat& format, const FormatInput& input, bool compressed,
                  const WriteText& write);

}  // namespace trainscope::profiler
