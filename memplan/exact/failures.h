// Remembers sub-problems that were found impossible, so that they are not searched twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainscope::memplan {

// A fingerprint of everything that decides a sub-problem. 128 bits: two different sub-problems
// with one key are less likely than a fault of the machine.
struct FailureKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  // Independent of the order in which facts are added.
  void add(std::uint64_t a, std::uint64_t b) {
    std::uint64_t x = a * 0x9e3779b97f4a7c15U + b;  // a and b are small; finalised as splitmix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    x ^= x >> 31;
    low += x;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93U;
    high += x ^ (x >> 29);
  }
  bool operator==(const FailureKey&) const = default;
};

// Grows up to a fixed number of entries; a newer one may replace an older one.
class FailureTable {
 public:
  void insert(const FailureKey& key) {
    if (++inserted_ > keys_.size() / 2 && keys_.size() < kMostEntries) grow();
    keys_[key.low % keys_.size()] = key;
  }
  [[nodiscard]] bool contains(const FailureKey& key) const {
    return keys_[key.low % keys_.size()] == key;
  }

 private:
  static constexpr std::size_t kFirstEntries = 64;  // powers of two
  static constexpr std::size_t kMostEntries = std::size_t{1} << 16;

  void grow() {
    std::vector<FailureKey> old(4 * keys_.size());
    old.swap(keys_);
    for (const FailureKey& key : old) keys_[key.low % keys_.size()] = key;
  }

  std::size_t inserted_ = 0;
  std::vector<FailureKey> keys_ = std::vector<FailureKey>(kFirstEntries);
};

}  // namespace trainscope::memplan
