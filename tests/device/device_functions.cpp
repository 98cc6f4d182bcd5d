// Memory, copies, fills, streams, events, lists of work.
#include "tests/device/device_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>

#include "tests/device/device_run.h"

namespace trainscope::test {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 22;

using Bytes = std::vector<std::byte>;

// Asks one device; the first fault of a promise is kept.
class Questions {
 public:
  explicit Questions(Device& device) : device_(device) {}
  std::vector<Promise> take() { return std::move(promises_); }

  template <typename F>
  void ask(std::string name, F question) {
    promises_.push_back({.name = std::move(name)});
    std::byte* memory = nullptr;
    std::byte* host = nullptr;
    expect(device_.allocate(Space::kDevice, kBytes, &memory));
    expect(device_.allocate(Space::kHost, kBytes, &host));
    if (promises_.back().fault.empty()) question(memory, host);
    expect(wait_for_all(device_));
    if (memory != nullptr) device_.release(Space::kDevice, memory, kBytes);
    if (host != nullptr) device_.release(Space::kHost, host, kBytes);
  }
  void expect(const DeviceStatus& status) {
    if (!status.done()) fault(status.message);
  }
  void expect(bool holds, std::string_view what) {
    if (!holds) fault(std::string(what));
  }
  Bytes read(const std::byte* from, Stream stream = kComputeStream) {
    Bytes bytes(kBytes);
    expect(device_.copy(stream, bytes.data(), from, kBytes));
    expect(device_.synchronize(device_.record(stream)));
    return bytes;
  }
  void write(std::byte* to, const Bytes& bytes) {
    expect(device_.copy(kComputeStream, to, bytes.data(), bytes.size()));
    expect(device_.synchronize(device_.record(kComputeStream)));
  }
  Device& device() { return device_; }

 private:
  void fault(std::string text) {
    if (promises_.back().fault.empty()) promises_.back().fault = std::move(text);
  }

  Device& device_;
  std::vector<Promise> promises_;
};

Bytes counting_bytes() {
  Bytes bytes(kBytes);
  std::uint64_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56U);
  }
  return bytes;
}

bool all_are(const Bytes& bytes, std::byte value) {
  return std::ranges::all_of(bytes, [value](std::byte byte) { return byte == value; });
}

void ask_memory(Questions& q) {
  q.ask("allocate: zeros, at least a page's alignment", [&](std::byte* memory, std::byte* host) {
    q.expect(reinterpret_cast<std::uintptr_t>(memory) % 4096 == 0, "memory is not aligned");
    q.expect(reinterpret_cast<std::uintptr_t>(host) % 4096 == 0, "host memory is not aligned");
    q.expect(all_are(q.read(memory), std::byte{0}), "memory is not zeroed");
    q.expect(all_are(q.read(host), std::byte{0}), "host memory is not zeroed");
  });
  q.ask("copy: the program's memory, there and back", [&](std::byte* memory, std::byte*) {
    const Bytes bytes = counting_bytes();
    q.write(memory, bytes);
    q.expect(q.read(memory) == bytes, "other bytes come back");
  });
  q.ask("copy: within the device, and through its host memory",
        [&](std::byte* memory, std::byte* host) {
          const Bytes bytes = counting_bytes();
          q.write(memory, bytes);
          q.expect(q.device().copy(kComputeStream, host, memory, kBytes));
          q.expect(q.device().fill(kComputeStream, memory, std::byte{0}, kBytes));
          q.expect(q.device().copy(kComputeStream, memory, host, kBytes));
          q.expect(q.read(memory) == bytes, "other bytes come back");
        });
  q.ask("fill: of parts, at odd addresses", [&](std::byte* memory, std::byte*) {
    q.expect(q.device().fill(kComputeStream, memory + 3, std::byte{0x5A}, 1021));
    Bytes want(kBytes, std::byte{0});
    std::fill_n(want.begin() + 3, 1021, std::byte{0x5A});
    q.expect(q.read(memory) == want, "other bytes are filled");
  });
  q.ask("fill: the device's host memory", [&](std::byte*, std::byte* host) {
    q.expect(q.device().fill(kComputeStream, host + 1, std::byte{0xC3}, 4096));
    Bytes want(kBytes, std::byte{0});
    std::fill_n(want.begin() + 1, 4096, std::byte{0xC3});
    q.expect(q.read(host) == want, "other bytes are filled");
  });
}

void ask_streams(Questions& q) {
  q.ask("wait: a stream starts after the other's event", [&](std::byte* memory, std::byte* host) {
    for (int round = 1; round <= 50; ++round) {
      const auto value = static_cast<std::byte>(round);
      q.expect(q.device().fill(kComputeStream, memory, value, kBytes));
      q.expect(q.device().wait(kTransferStream, q.device().record(kComputeStream)));
      q.expect(q.device().copy(kTransferStream, host, memory, kBytes));
      const Event copied = q.device().record(kTransferStream);
      q.expect(q.device().wait(kComputeStream, copied));
      q.expect(q.device().fill(kComputeStream, memory, std::byte{0}, kBytes));
      q.expect(q.device().synchronize(copied));
      q.expect(all_are(q.read(host, kTransferStream), value), "the copy was early or late");
    }
  });
  q.ask("record: events that nobody asked for are forgotten, not confused",
        [&](std::byte* memory, std::byte* host) {
          const Event never{.stream = kTransferStream};
          q.expect(q.device().synchronize(never));
          q.expect(q.device().fill(kComputeStream, memory, std::byte{7}, kBytes));
          const Event filled = q.device().record(kComputeStream);
          for (int i = 0; i < 5000; ++i) (void)q.device().record(kComputeStream);
          q.expect(q.device().wait(kTransferStream, filled));
          q.expect(q.device().copy(kTransferStream, host, memory, kBytes));
          q.expect(all_are(q.read(host, kTransferStream), std::byte{7}), "the copy was early");
          q.expect(q.device().synchronize(filled));
        });
}

// Fills, copies to the host's memory on the other stream, and fills again.
void give_list(Questions& q, std::byte* memory, std::byte* host) {
  Device& device = q.device();
  q.expect(device.copy(kComputeStream, memory + kBytes / 2, memory, kBytes / 2));
  q.expect(device.wait(kTransferStream, device.record(kComputeStream)));
  q.expect(device.copy(kTransferStream, host, memory, kBytes));
  q.expect(device.wait(kComputeStream, device.record(kTransferStream)));
  q.expect(device.fill(kComputeStream, memory + kBytes / 2, std::byte{0xEE}, kBytes / 2));
}

void ask_lists(Questions& q) {
  q.ask("capture: nothing is done before a replay, all of it in each",
        [&](std::byte* memory, std::byte* host) {
          Device& device = q.device();
          const Event before = device.record(kTransferStream);
          std::unique_ptr<CapturedWork> work;
          q.expect(device.begin_capture());
          q.expect(device.wait(kComputeStream, before));
          give_list(q, memory, host);
          const Event inside = device.record(kTransferStream);
          q.expect(device.end_capture(&work));
          q.expect(work != nullptr, "no list");
          if (work == nullptr) return;
          q.expect(all_are(q.read(memory), std::byte{0}), "something is done already");
          for (int round = 1; round <= 20; ++round) {
            const auto value = static_cast<std::byte>(round);
            q.expect(device.fill(kComputeStream, memory, value, kBytes / 2));
            q.expect(device.replay(*work));
            q.expect(device.wait(kComputeStream, inside));
            q.expect(device.synchronize(inside));
            q.expect(all_are(q.read(host, kTransferStream), value), "the replay was not in order");
            const Bytes now = q.read(memory);
            q.expect(now[0] == value && now[kBytes - 1] == std::byte{0xEE}, "other results");
          }
          q.expect(wait_for_all(device));
        });
}

void ask_speed(Questions& q) {
  q.ask("replay: what a list of 200 small fills takes (told, not judged)", [&](std::byte* memory,
                                                                               std::byte*) {
    Device& device = q.device();
    std::unique_ptr<CapturedWork> work;
    q.expect(device.begin_capture());
    for (int i = 0; i < 200; ++i) {
      q.expect(device.fill(kComputeStream, memory, std::byte{1}, 64));
    }
    q.expect(device.end_capture(&work));
    if (work == nullptr) return;
    q.expect(device.replay(*work));
    q.expect(wait_for_all(device));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) q.expect(device.replay(*work));
    q.expect(wait_for_all(device));
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    fmt::print("     200 fills replayed in {:.1f} us\n", took.count() / 20);
  });
}

}  // namespace

std::vector<Promise> check_device_functions(Device& device) {
  Questions questions(device);
  ask_memory(questions);
  ask_streams(questions);
  ask_lists(questions);
  ask_speed(questions);
  return questions.take();
}

}  // namespace trainscope::test
