// What profiling costs by itself: a span recorded, and many events written, opened and queried.
//   profiler_bench [EVENTS]
// One JSON line for each question.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/measuring.h"
#include "profiler/record/recorder.h"
#include "profiler/store/event_file.h"

namespace trainscope::profiler {
namespace {

constexpr int kRounds = 21;

void measure_span(TickSource source, std::string_view name) {
  constexpr int kSpans = 50'000;
  Recorder recorder(1, Recorder::kLaneEvents, Clock(source));
  bench::Rounds span;
  bench::Rounds taken;
  for (int round = 0; round < kRounds; ++round) {
    span.times.push_back(bench::milliseconds([&] {
                           for (int i = 0; i < kSpans; ++i) {
                             recorder.begin(0, EventKind::kCall, static_cast<std::uint32_t>(i));
                             recorder.end(0);
                           }
                         }) *
                         1e6 / kSpans);
    std::uint64_t sum = 0;
    taken.times.push_back(bench::milliseconds([&] {
                            recorder.drain([&](std::span<const Event> events) {
                              for (const Event& event : events) sum += event.value;
                            });
                          }) *
                          1e6 / kSpans);
    if (sum == 0) std::puts("");
  }
  fmt::print(
      "{{\"what\":\"span\",\"clock\":\"{}\",\"median_ns\":{:.1f},\"least_ns\":{:.1f},"
      "\"drain_median_ns\":{:.1f},\"dropped\":{}}}\n",
      name, span.median(), span.least(), taken.median(), recorder.dropped());
}

std::vector<Event> made_events() {
  std::vector<Event> events;
  for (std::size_t i = 0; i < Recorder::kPiece; ++i) {
    events.push_back({.value = 900 + i % 100,
                      .id = static_cast<std::uint32_t>(i % 1000),
                      .kind = i % 16 == 0 ? EventKind::kWork : EventKind::kCall,
                      .thread = static_cast<std::uint16_t>(i % 2)});
  }
  return events;
}

double write_events(const char* path, std::size_t count) {
  const int file = ::open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  std::vector<Event> piece = made_events();
  const double ms = bench::milliseconds([&] {
    EventWriter writer({.threads = 2}, [&](std::span<const std::byte> bytes) {
      if (::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
        std::perror("write");
        std::exit(1);
      }
    });
    for (std::size_t done = 0; done < count; done += piece.size()) {
      const std::size_t now = std::min(piece.size(), count - done);
      for (std::size_t i = 0; i < now; ++i) {
        piece[i].begin_ns = 1000 * static_cast<std::int64_t>(done + i);
      }
      writer.add(std::span(piece).first(now), 0);
    }
  });
  ::close(file);
  return ms;
}

void measure_file(std::size_t count) {
  std::string path = "/tmp/profiler-bench-XXXXXX";
  const int made = ::mkstemp(path.data());
  if (made < 0) return std::perror("mkstemp");
  ::close(made);
  const double write_ms = write_events(path.c_str(), count);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto size = static_cast<std::size_t>(::lseek(file, 0, SEEK_END));
  void* map = nullptr;
  EventReading reading;
  const double open_ms = bench::milliseconds([&] {
    map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    reading = read_events({static_cast<const std::byte*>(map), size});
  });
  std::vector<std::uint64_t> sums(1000);
  const double query_ms = bench::milliseconds([&] {
    for (const EventChunk& chunk : reading.view.chunks) {
      for (std::size_t i = 0; i < chunk.size(); ++i) {
        if (chunk.kind[i] == EventKind::kCall) sums[chunk.id[i] % sums.size()] += chunk.value[i];
      }
    }
  });
  std::uint64_t all = 0;
  for (const std::uint64_t sum : sums) all += sum;
  fmt::print(
      "{{\"what\":\"file\",\"events\":{},\"bytes\":{},\"write_ms\":{:.0f},"
      "\"millions_a_second\":{:.1f},\"open_ms\":{:.0f},\"sum_by_call_ms\":{:.0f},\"sum_ns\":{}}}\n",
      reading.view.events, size, write_ms, static_cast<double>(count) / write_ms / 1e3, open_ms,
      query_ms, all);
  ::munmap(map, size);
  ::close(file);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace trainscope::profiler

int main(int argc, char** argv) {
  using namespace trainscope::profiler;
  if (best_tick_source() == TickSource::kTimeStampCounter) {
    measure_span(TickSource::kTimeStampCounter, "time stamp counter");
  }
  measure_span(TickSource::kMonotonicClock, "monotonic clock");
  measure_file(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000);
}
