// Memory straight from the system, in huge pages where there is much of it.
#pragma once

#include <cstddef>

namespace trainscope::cpu {

// Zeroed pages for `bytes` bytes, which cost memory only once touched; null where the system
// refuses, with errno. Of four huge pages and more whole ones: then which bytes lie in one does not
// depend on where the system happens to map them, and steps of two processes take the same time.
std::byte* map_pages(std::size_t bytes);
// What map_pages() gave for as many bytes.
void unmap_pages(std::byte* pages, std::size_t bytes);

}  // namespace trainscope::cpu
