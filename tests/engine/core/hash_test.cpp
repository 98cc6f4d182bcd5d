// Tests of the hashes.
#include "engine/core/hash.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

namespace trainscope {
namespace {

TEST_CASE("hash: known answers of XXH3 with seed 0") {
  // From the reference implementation: XXH3_64bits of no bytes.
  CHECK(hash_text("") == 0x2D06800538D394C2);
  CHECK(hash_hex(hash_text("")) == "2d06800538d394c2");
  CHECK(hash_hex(10) == "000000000000000a");
}

TEST_CASE("hash: pieces of bytes give the hash of the whole") {
  std::vector<std::byte> bytes(5000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37);
  const std::uint64_t whole = hash_bytes(bytes);
  for (const std::size_t cut : {0U, 1U, 240U, 1024U, 4999U}) {
    Hasher hasher;
    hasher.bytes(std::span(bytes).first(cut)).bytes(std::span(bytes).subspan(cut));
    CHECK(hasher.digest() == whole);
  }
}

TEST_CASE("hash: each byte counts") {
  std::vector<std::byte> bytes(3000);
  const std::uint64_t before = hash_bytes(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = std::byte{1};
    CHECK(hash_bytes(bytes) != before);
    bytes[i] = std::byte{0};
  }
}

TEST_CASE("hash: texts keep their borders, values their width") {
  CHECK(Hasher().text("ab").text("c").digest() != Hasher().text("a").text("bc").digest());
  CHECK(Hasher().value(1).digest() != Hasher().value(std::int64_t{1}).digest());
  CHECK(Hasher().value(1.5).text("x").digest() == Hasher().value(1.5).text("x").digest());
}

TEST_CASE("hash: digest may be asked for on the way") {
  Hasher hasher;
  hasher.text("a");
  const std::uint64_t first = hasher.digest();
  CHECK(hasher.digest() == first);
  hasher.text("b");
  CHECK(hasher.digest() == Hasher().text("a").text("b").digest());
}

}  // namespace
}  // namespace trainscope
