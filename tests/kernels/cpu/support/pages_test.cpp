// Pages: zeroed, writable, and in huge ones where there is much.
#include "kernels/cpu/support/pages.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

namespace trainscope::cpu {
namespace {

TEST_CASE("pages: of any size, zeroed, and all may be written") {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{4097}, (std::size_t{8} << 20) - 1,
        std::size_t{8} << 20, (std::size_t{8} << 20) + 1, std::size_t{13} << 20}) {
    CAPTURE(bytes);
    std::byte* const pages = map_pages(bytes);
    REQUIRE(pages != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(pages) % 4096 == 0);
    if (bytes >= std::size_t{8} << 20) {
      CHECK(reinterpret_cast<std::uintptr_t>(pages) % (std::size_t{2} << 20) == 0);
    }
    CHECK(std::all_of(pages, pages + bytes, [](std::byte each) { return each == std::byte{0}; }));
    std::fill_n(pages, bytes, std::byte{7});
    unmap_pages(pages, bytes);
  }
}

TEST_CASE("pages: more than there is gives none") {
  CHECK(map_pages(std::size_t{1} << 60) == nullptr);
}

}  // namespace
}  // namespace trainscope::cpu
