// What the machine does by itself: speeds that a program could not exceed or fall short of by much.
#include "profiler/record/machine_probe.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

namespace trainscope::profiler {
namespace {

std::vector<int> forked;  // the tiles of each fork

void fork_on_threads(int tiles, const ThreadWatch* watch, void* context,
                     void (*body)(void* context, int tile)) {
  CHECK(watch == nullptr);  // no listener is told of it
  forked.push_back(tiles);
  std::vector<std::thread> others;
  for (int tile = 1; tile < tiles; ++tile) others.emplace_back(body, context, tile);
  body(context, 0);
  for (std::thread& other : others) other.join();
}

TEST_CASE("machine probe: one thread's clock and exchange, time and again") {
  forked.clear();
  MachineProbe probe(1, fork_on_threads);
  for (int i = 0; i < 3; ++i) {
    const MachineSpeed speed = probe.measure();
    // Two dependent instructions of a few cycles each, at 0.1 to 10 GHz.
    CHECK(speed.clock > 5.0);
    CHECK(speed.clock < 5000.0);
    CHECK(speed.exchange > 0.05);
    CHECK(speed.exchange < 5000.0);
  }
  CHECK(forked == std::vector<int>(3 * MachineProbe::kRounds, 1));
}

TEST_CASE("machine probe: several threads, each at a piece of its own") {
  forked.clear();
  MachineProbe probe(3, fork_on_threads);
  const MachineSpeed speed = probe.measure();
  CHECK(speed.clock > 0.0);
  CHECK(speed.exchange > 0.0);
  CHECK(forked == std::vector<int>(MachineProbe::kRounds, 3));
}

}  // namespace
}  // namespace trainscope::profiler
