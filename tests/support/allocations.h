// Counts every heap allocation of the process while it is switched on. Linking allocations.cpp into
// a test program puts malloc and its family under watch.
#pragma once

#include <cstdint>

namespace trainscope::test {

// Whether the counting works in this build: sanitizers have a malloc of their own.
bool can_count_allocations();

struct AllocationCount {
  std::int64_t calls = 0;        // of malloc, calloc, realloc, aligned allocations
  std::int64_t alive_bytes = 0;  // allocated and not freed since the start of the count
  std::int64_t peak_bytes = 0;   // the most that was alive
};

void start_counting_allocations();  // from zero
AllocationCount allocation_count();
void stop_counting_allocations();

}  // namespace trainscope::test
