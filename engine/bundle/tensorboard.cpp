// Event files: CRC-32C, frames, and the few fields of the messages that scalars need.
#include "engine/bundle/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>

namespace trainscope {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

constexpr std::uint32_t kCastagnoli = 0x82F63B78;  // bits reversed
constexpr std::uint32_t kMaskDelta = 0xA282EAD8;   // TFRecord's, against CRCs of CRCs

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table = {};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) * kCastagnoli);
    table[i] = value;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kCrcTable = make_crc_table();

// Fields of protobuf's wire format: a key (number and wire type), then the value.
enum class Wire : std::uint32_t { kVarint = 0, k64Bits = 1, kBytes = 2, k32Bits = 5 };

void add_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

void add_key(std::string& out, std::uint32_t field, Wire wire) {
  add_varint(out, (field << 3) | static_cast<std::uint32_t>(wire));
}

template <typename T>
void add_raw(std::string& out, T value) {
  const auto bytes = std::bit_cast<std::array<char, sizeof(T)>>(value);
  out.append(bytes.data(), bytes.size());
}

void add_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  add_key(out, field, Wire::kBytes);
  add_varint(out, bytes.size());
  out += bytes;
}

// Fields of Event: wall_time 1, step 2, file_version 3, summary 5, session_log 7.
std::string event_begin(double seconds, std::int64_t step) {
  std::string event;
  add_key(event, 1, Wire::k64Bits);
  add_raw(event, seconds);
  add_key(event, 2, Wire::kVarint);
  add_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

std::uint32_t masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(bytes)));
  return std::rotr(crc, 15) + kMaskDelta;
}

std::string frame(std::string_view message) {
  std::string length;
  add_raw(length, static_cast<std::uint64_t>(message.size()));
  std::string result = length;
  add_raw(result, masked_crc(length));
  result += message;
  add_raw(result, masked_crc(message));
  return result;
}

// Summary: repeated value 1 {tag 1, simple_value 2}.
std::string scalars(std::string_view group, const Json& record) {
  std::string summary;
  for (const JsonMember& member : record.as_object()) {
    if (member.key == "step" || !member.value.is_number()) continue;
    const double number = member.value.as_number();
    if (!std::isfinite(number)) continue;
    std::string value;
    add_bytes(value, 1, fmt::format("{}/{}", group, member.key));
    add_key(value, 2, Wire::k32Bits);
    add_raw(value, static_cast<float>(number));
    add_bytes(summary, 1, value);
  }
  return summary;
}

std::string scalar_event(double seconds, std::int64_t step, std::string_view summary) {
  std::string event = event_begin(seconds, step);
  add_bytes(event, 5, summary);
  return frame(event);
}

double now_seconds() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since_1970).count();
}

std::string host_name() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "host";
  std::string text(name.data());
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '/'; }, '_');
  return text.empty() ? "host" : text;
}

// A name that no file of the folder has: a file that is there is never added to.
FolderEntry new_file(const Folder& folder, double seconds) {
  const std::string first = event_file_name(seconds);
  std::string name = first;
  for (int i = 1; folder.has(name); ++i) name = fmt::format("{}.{}", first, i);
  return folder / name;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (std::byte byte : bytes) {
    crc = kCrcTable[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFF] ^ (crc >> 8);
  }
  return ~crc;
}

std::string event_file_header(double seconds) {
  std::string event = event_begin(seconds, 0);
  add_bytes(event, 3, "brain.Event:2");
  return frame(event);
}

std::string event_session_start(double seconds, std::int64_t step) {
  std::string log;
  add_key(log, 1, Wire::kVarint);
  add_varint(log, 1);  // SessionLog.status = START
  std::string event = event_begin(seconds, step);
  add_bytes(event, 7, log);
  return frame(event);
}

std::string event_of(double seconds, const StepRecord& step) {
  return scalar_event(seconds, step.step, scalars("train", to_json(step)));
}

std::string event_of(double seconds, const EvaluationRecord& evaluation) {
  return scalar_event(seconds, evaluation.step, scalars("validation", to_json(evaluation)));
}

std::string event_file(const Metrics& metrics, double start_seconds) {
  std::string text = event_file_header(start_seconds);
  double seconds = start_seconds;
  auto evaluation = metrics.evaluations.begin();
  const auto add_evaluations_before = [&](std::int64_t step) {
    for (; evaluation != metrics.evaluations.end() && evaluation->step < step; ++evaluation) {
      seconds += evaluation->milliseconds / 1000.0;
      text += event_of(seconds, *evaluation);
    }
  };
  for (const StepRecord& step : metrics.steps) {
    add_evaluations_before(step.step);
    seconds += step.step_ms / 1000.0;
    text += event_of(seconds, step);
  }
  if (!metrics.evaluations.empty()) {
    add_evaluations_before(metrics.evaluations.back().step + 1);
  }
  return text;
}

std::string event_file_name(double seconds) {
  return fmt::format("events.out.tfevents.{}.{}.{}", static_cast<std::int64_t>(seconds),
                     host_name(), getpid());
}

EventWriter::EventWriter(const Folder& folder, std::int64_t from_step)
    : file_(new_file(folder, now_seconds())) {
  const double seconds = now_seconds();
  file_.write(event_file_header(seconds));
  file_.write(event_session_start(seconds, from_step + 1));
}

void EventWriter::add(const StepRecord& step) { file_.write(event_of(now_seconds(), step)); }

void EventWriter::add(const EvaluationRecord& evaluation) {
  file_.write(event_of(now_seconds(), evaluation));
}

void EventWriter::sync() { file_.sync(); }

}  // namespace trainscope
