// Event files that TensorBoard reads: TFRecord frames of Event messages, encoded by hand.
//
// A frame is the length (8 bytes), its masked CRC-32C, the message, its masked CRC-32C; numbers are
// little-endian. The message types are Event, Summary and SessionLog of tensorflow/core/util
// (event.proto, summary.proto); TensorBoard's own description is the README of
// tensorboard/summary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "engine/bundle/format.h"
#include "engine/core/file.h"

namespace trainscope {

// CRC-32C (Castagnoli).
std::uint32_t crc32c(std::span<const std::byte> bytes);

// Each of these is a whole frame. `seconds` are since 1970.
std::string event_file_header(double seconds);
// Tells readers to forget events of this step and later ones in earlier files.
std::string event_session_start(double seconds, std::int64_t step);
// Scalars train/loss, train/learning_rate, ...; what is NaN because it was not measured is left
// out.
std::string event_of(double seconds, const StepRecord& step);
// Scalars validation/...
std::string event_of(double seconds, const EvaluationRecord& evaluation);

// All metrics of a run as one file's content; `start_seconds` is when it began.
std::string event_file(const Metrics& metrics, double start_seconds);

// "events.out.tfevents.SECONDS.HOST.PROCESS": TensorBoard looks for "tfevents" in the name and
// reads a folder's files in the order of their names.
std::string event_file_name(double seconds);

// A file that frames are added to while a run goes on.
class EventWriter {
 public:
  // A new file in `folder` that goes on after `from_step`.
  EventWriter(const Folder& folder, std::int64_t from_step);

  void add(const StepRecord& step);
  void add(const EvaluationRecord& evaluation);
  void sync();
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace trainscope
