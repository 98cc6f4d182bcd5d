// Pieces of trace event JSON that several kinds of rows have in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/bundle/plan_record.h"
#include "profiler/formats/formats.h"
#include "profiler/record/event.h"

namespace trainscope::profiler {

// A process and a thread of the trace, as rows name them.
struct RowPlace {
  std::int64_t process = 0;
  std::int64_t thread = 0;
};
// Traces of several ranks can be merged: rank R has the process kMostRanks (1 + R) for its host, R
// for its device, as if each rank had the device of its number, and arrows that no other rank has.
RowPlace host_place(std::int64_t rank, int thread);
// The stream of the device that a thread stands for.
RowPlace stream_place(std::int64_t rank, int thread);
// `number` is the rank's own, less than 2^32.
std::int64_t arrow_id(std::int64_t rank, std::int64_t number);

std::string quoted_text(std::string_view text);
// Microseconds with three decimals, exactly.
std::string microseconds(std::int64_t ns);
// "pid": .., "tid": .. of a thread.
std::string place_text(const RowPlace& place);
std::string metadata_row(std::string_view name, const RowPlace& place, const std::string& args);

// One end of an arrow: "s" where it begins, "f" where it ends.
struct ArrowEnd {
  std::string_view phase;
  std::string_view name;
  std::int64_t id = 0;
  RowPlace place = {};
  std::int64_t ns = 0;
};
std::string arrow_row(const ArrowEnd& end);

// A kernel or copy on a stream.
struct DeviceWork {
  const Event& event;
  std::string kernel = {};       // the name
  std::int64_t bytes = -1;       // of a copy; -1: it is a kernel
  std::int64_t id = 0;           // "External id"
  std::int64_t correlation = 0;  // that the host's row has too that it is of; 0: there is none
};
// Of a call, of its work, or of a copy of the host: the name of the kernel, and how much it copies.
DeviceWork device_work(const PlanView& plan, const Event& event, std::int64_t id);

// What a device did: the row of its stream. `more`: members of its arguments besides.
std::string stream_row(const DeviceWork& work, std::int64_t rank, const std::string& more);

// A call or copy of the host as what a launch and a kernel (or copy) of a device would be. CPU
// rows are shown so only on request, for tools that look at nothing else. Rows with ",\n" between:
// the launch on the host's thread, the kernel on a stream of its own for each thread, the arrow
// between them. Id and correlation are the id of the host's row.
std::string device_rows(const DeviceWork& work, const RowPlace& host, std::int64_t rank);

// What the rows of streams are of.
struct ShownDevice {
  std::string_view name;
  std::string_view properties = {};  // members besides
};
// The CPU.
extern const ShownDevice kAsDevice;

std::string device_metadata(const ShownDevice& device, std::int64_t rank);
std::string device_properties(const ShownDevice& device, std::int64_t rank);
std::string stream_name_row(std::int64_t rank, int thread);

}  // namespace trainscope::profiler
