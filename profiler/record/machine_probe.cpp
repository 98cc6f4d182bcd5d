// A loop that only the clock limits, and one in which each thread updates what its neighbour did.
#include "profiler/record/machine_probe.h"

#include <algorithm>
#include <cstdint>
#include <new>

#include "profiler/record/clock.h"

namespace trainscope::profiler {
namespace {

constexpr std::size_t kThreadFloats = MachineProbe::kThreadBytes / sizeof(float);
constexpr std::align_val_t kAlignment{4096};
constexpr int kChained = 10'000;
// Both constants keep what they are applied to between 1/2 and 1: no denormal number slows them.
constexpr float kFactor = 0.75F;
constexpr float kAdded = 0.25F;

float chained(float value) {
  for (int i = 0; i < kChained; ++i) value = value * kFactor + kAdded;
  return value;
}

double ns_since(std::int64_t begin) {
  return static_cast<double>(std::max<std::int64_t>(1, Clock::monotonic_ns() - begin));
}

}  // namespace

void MachineProbe::Release::operator()(float* memory) const {
  ::operator delete[](memory, kAlignment);
}

MachineProbe::MachineProbe(int threads, Fork fork)
    : threads_(threads),
      fork_(fork),
      bytes_(static_cast<float*>(
          ::operator new[](kThreadBytes* static_cast<std::size_t>(threads), kAlignment))) {
  std::fill_n(bytes_.get(), kThreadFloats * static_cast<std::size_t>(threads), 1.0F);
}

// In each round the piece of the next thread.
void MachineProbe::update(void* probe, int thread) {
  const auto* self = static_cast<const MachineProbe*>(probe);
  const auto piece = static_cast<std::size_t>((thread + self->round_) % self->threads_);
  float* const values = self->bytes_.get() + piece * kThreadFloats;
  for (std::size_t i = 0; i < kThreadFloats; ++i) values[i] = values[i] * kFactor + kAdded;
}

MachineSpeed MachineProbe::measure() {
  double clock_ns = 0.0;
  double exchange_ns = 0.0;
  float value = bytes_[0];
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t chain_begin = Clock::monotonic_ns();
    value = chained(value);
    const double chain_ns = ns_since(chain_begin);
    round_ = (round_ + 1) % threads_;
    const std::int64_t begin = Clock::monotonic_ns();
    fork_(threads_, nullptr, this, &MachineProbe::update);
    const double ns = ns_since(begin);
    clock_ns = round == 0 ? chain_ns : std::min(clock_ns, chain_ns);
    // What the first one meets is where the program left it.
    exchange_ns = round <= 1 ? ns : std::min(exchange_ns, ns);
  }
  bytes_[0] = value;  // so that the chain is computed
  const auto bytes = static_cast<double>(kThreadBytes) * threads_;
  return {.clock = 1e3 * kChained / clock_ns, .exchange = bytes / exchange_ns};
}

}  // namespace trainscope::profiler
