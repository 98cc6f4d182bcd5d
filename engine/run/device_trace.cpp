// Buffers of the library to events: read, tied, given threads.
#include "engine/run/device_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/exec/device_work.h"
#include "profiler/cupti/activity_decoder.h"

namespace trainscope {
namespace {

using profiler::EventKind;

static_assert(kOutsideTracedCalls == profiler::kOutsideCalls);

constexpr std::uint32_t kExternalKind = 3;  // CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0

constexpr std::size_t kLeastPlainSteps = 3;

double ms_of(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::unique_ptr<DeviceTrace> DeviceTrace::make(TraceLevel level, bool may_launch_singly,
                                               std::shared_ptr<Executor> executor,
                                               std::shared_ptr<Logger> log) {
  if (level == TraceLevel::kOff) return nullptr;
  Device& device = executor->memory().device();
  const MadeTracer made = device_tracer(device);
  if (made.tracer == nullptr) {
    log->info("profile: what {} does is not recorded, only what the host does: {}",
              device.facts().name, made.why_not);
    return nullptr;
  }
  const TraceWishes wishes{.level = level, .ties_launches = may_launch_singly};
  return std::unique_ptr<DeviceTrace>(
      new DeviceTrace(wishes, *made.tracer, std::move(executor), std::move(log)));
}

DeviceTrace::DeviceTrace(const TraceWishes& wishes, DeviceTracer& tracer,
                         std::shared_ptr<Executor> executor, std::shared_ptr<Logger> log)
    : tracer_(tracer),
      executor_(std::move(executor)),
      log_(std::move(log)),
      wishes_(wishes),
      join_(kExternalKind, 0) {
  executor_->trace(&tracer_);
}

void DeviceTrace::hear(const DeviceStatus& status) {
  if (status.done() || std::exchange(has_complained_, true)) return;
  log_->warning("profile: what the device does is not recorded, or not all of it: {}",
                printable(status.message));
}

void DeviceTrace::begin(std::uint16_t first_thread, const profiler::Recorder& recorder) {
  wishes_.ties_launches = wishes_.ties_launches || !executor_->replays();
  join_.set_launches_tied(wishes_.ties_launches || wishes_.level >= TraceLevel::kLaunches);
  join_.set_offset(-recorder.origin_ns());
  if (events_ == nullptr) events_ = std::make_unique<profiler::DeviceEvents>(first_thread);
  wait();
  const DeviceStatus status = tracer_.start(wishes_);
  is_on_ = status.done();
  hear(status);
}

void DeviceTrace::records(std::span<const std::byte> bytes) {
  const profiler::ActivityReading reading = profiler::decode_activities(bytes, join_);
  if (reading.fault.empty()) return;
  join_.note_unread(bytes.size() - reading.read_bytes);
  if (std::exchange(has_told_unread_, true)) return;
  log_->warning("profile: records of the device are left out: {}", reading.fault);
}

void DeviceTrace::read() {
  hear(tracer_.take(*this));
  events_->add(join_.take());
}

std::vector<profiler::Event> DeviceTrace::take() {
  if (!is_on_) return {};
  wait();
  read();
  record_all_calls_if_needed();
  return events_->take(false);
}

// On an H200 CUPTI 13.0.1 kept neither records of single calls nor their correlations, which its
// manual promises: without any, work that was launched is tied to nothing. The device is idle, so
// that nothing is lost while kinds are disabled and enabled.
void DeviceTrace::record_all_calls_if_needed() {
  const bool ties = wishes_.ties_launches || wishes_.level >= TraceLevel::kLaunches;
  const bool lacks = ties && !join_.has_correlations() && join_.losses().untied > 0;
  if (!lacks || std::exchange(wishes_.has_all_api_calls, true)) return;
  log_->info(
      "profile: the device's library ties no launches to calls: all of the API are recorded");
  hear(tracer_.start(wishes_));
}

DeviceStatus DeviceTrace::drain() {
  Device& device = executor_->memory().device();
  DeviceStatus status = device.synchronize(device.record(kTransferStream));
  return status.done() ? device.synchronize(device.record(kComputeStream)) : status;
}

void DeviceTrace::wait() { check(drain()); }

std::vector<profiler::Event> DeviceTrace::end() {
  if (!is_on_) return {};
  hear(drain());
  read();
  hear(tracer_.stop());
  is_on_ = false;
  return events_->take(true);
}

void DeviceTrace::note_step(double milliseconds) {
  if (std::exchange(is_first_step_, false)) return;
  (is_on_ ? recorded_ms_ : plain_ms_).push_back(milliseconds);
}

void DeviceTrace::count(profiler::Recorder& recorder, std::uint32_t step) const {
  const profiler::ActivityLosses& losses = join_.losses();
  const auto count = [&](EventKind kind, auto value) {
    recorder.count(kind, step, static_cast<double>(value));
  };
  count(EventKind::kTraceLevel, wishes_.level);
  count(EventKind::kTiedWork, join_.tied());
  count(EventKind::kOutsideWork, join_.outside());
  count(EventKind::kUntiedWork, losses.untied);
  count(EventKind::kUntimedWork, losses.untimed);
  count(EventKind::kDroppedRecords, losses.dropped);
  count(EventKind::kUnreadBytes, losses.unread_bytes);
  if (wishes_.level >= TraceLevel::kLaunches) {
    count(EventKind::kTraceOverhead, join_.overhead_ns());
    count(EventKind::kRuntimeCallTime, join_.host().runtime_ns);
    count(EventKind::kDriverCallTime, join_.host().driver_ns);
    count(EventKind::kDeviceWaitTime, join_.host().wait_ns);
  }
  if (wishes_.level >= TraceLevel::kAll) count(EventKind::kAllocations, join_.host().allocations);
}

std::string DeviceTrace::report() const {
  const profiler::ActivityLosses& losses = join_.losses();
  std::string text = fmt::format(
      "trace level {}: {} kernels, copies and sets of calls, {} outside of calls, {} of unknown "
      "calls, {} without times; {} records dropped, {} bytes unread",
      static_cast<int>(wishes_.level), join_.tied(), join_.outside(), losses.untied, losses.untimed,
      losses.dropped, losses.unread_bytes);
  if (wishes_.level >= TraceLevel::kLaunches) {
    const profiler::HostActivity& host = join_.host();
    text += fmt::format(
        "; the host was {:.3f} ms in calls of the runtime, {:.3f} ms of the driver, and waited "
        "{:.3f} ms; recording took {:.3f} ms, as the library tells",
        ms_of(host.runtime_ns), ms_of(host.driver_ns), ms_of(host.wait_ns),
        ms_of(join_.overhead_ns()));
  }
  if (wishes_.level >= TraceLevel::kAll) {
    text += fmt::format("; {} allocations", join_.host().allocations);
  }
  if (plain_ms_.size() >= kLeastPlainSteps && !recorded_ms_.empty()) {
    text += fmt::format("; a profiled step takes {:.3f} times another (medians of {} and {})",
                        median(recorded_ms_) / median(plain_ms_), recorded_ms_.size(),
                        plain_ms_.size());
  }
  return text;
}

}  // namespace trainscope
