// XXH3 hashes (64 bits): to notice change and damage, not to resist an attacker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace trainscope {

std::uint64_t hash_bytes(std::span<const std::byte> bytes);
std::uint64_t hash_text(std::string_view text);

// A hash as 16 lower-case hexadecimal digits.
std::string hash_hex(std::uint64_t hash);

// Hashes pieces one after the other. `bytes` alone gives hash_bytes of the whole; `text` also
// takes the length in, so that "ab","c" differs from "a","bc".
class Hasher {
 public:
  Hasher();

  Hasher& bytes(std::span<const std::byte> bytes);
  Hasher& text(std::string_view text);
  // The bytes of a number or enumerator.
  template <typename T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) Hasher& value(T value) {
    return bytes(std::as_bytes(std::span<const T, 1>(&value, 1)));
  }
  // The hash of everything so far; more may follow.
  std::uint64_t digest() const;

 private:
  struct State;
  struct Free {
    void operator()(State* state) const;
  };
  std::unique_ptr<State, Free> state_;
};

}  // namespace trainscope
