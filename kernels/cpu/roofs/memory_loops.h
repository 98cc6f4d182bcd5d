// Passes over cache lines in the widest registers that the processor has.
#pragma once

#include <cstdint>

namespace trainscope::cpu {

// A cache line of floats.
using Line [[gnu::vector_size(64)]] = float;

// Lines of one turn of a loop: two loads a cycle, each added to a sum of its own for the four
// cycles that an addition takes. `lines` is a multiple.
inline constexpr std::int64_t kLinesTogether = 8;

void read_lines(const Line* from, std::int64_t lines);
void write_lines(Line* to, std::int64_t lines, float value);
void copy_lines(const Line* from, std::int64_t lines, Line* to);
// Reads each and writes it where it lies.
void update_lines(Line* lines, std::int64_t count);

// Bytes of the machine's memory.
std::int64_t memory_bytes();

}  // namespace trainscope::cpu
