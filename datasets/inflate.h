// Decompression a piece at a time, so that its result is as large as its reader wants and no
// larger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/core/shared_bytes.h"

namespace trainscope {

enum class CompressedForm : std::uint8_t { kGzip, kDeflate };

// Deflate makes at most 1032 bytes of one: what claims to hold more is no honest file.
inline constexpr std::uint64_t kMaxInflation = 1032;

class Inflater {
 public:
  // `name` is for messages.
  Inflater(SharedBytes compressed, CompressedForm form, std::string name);
  Inflater(Inflater&&) noexcept;
  Inflater& operator=(Inflater&&) noexcept;
  ~Inflater();

  // Fills `into`; fewer bytes only at the end of the stream. Throws kBadInput where the stream is
  // damaged or cut short, and when something follows its end.
  std::size_t read(std::span<std::byte> into);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// CRC-32 as gzip and zip use it.
std::uint32_t crc32_of(std::span<const std::byte> bytes);

}  // namespace trainscope
