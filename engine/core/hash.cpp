// XXH3 hashes by the xxHash library.
#include "engine/core/hash.h"

#include <fmt/format.h>

#define XXH_STATIC_LINKING_ONLY  // for the state as a type whose size is known
#include <xxhash.h>

namespace trainscope {

struct Hasher::State {
  XXH3_state_t xxh;
};

std::uint64_t hash_bytes(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t hash_text(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

std::string hash_hex(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

void Hasher::Free::operator()(State* state) const { std::default_delete<State>()(state); }

Hasher::Hasher() : state_(std::make_unique<State>().release()) { XXH3_64bits_reset(&state_->xxh); }

Hasher& Hasher::bytes(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size());
  return *this;
}

Hasher& Hasher::text(std::string_view text) {
  value(std::uint64_t{text.size()});
  return bytes(std::as_bytes(std::span(text)));
}

std::uint64_t Hasher::digest() const { return XXH3_64bits_digest(&state_->xxh); }

}  // namespace trainscope
