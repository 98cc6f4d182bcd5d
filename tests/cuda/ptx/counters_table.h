// The table of what kernels move and multiply by their PTX: tests/cuda/ptx/counters.tsv.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/api/dtype.h"
#include "tests/cuda/interpreter/counters.h"

namespace trainscope::test {

// Columns that are counted, in their order.
struct CountedColumns {
  std::int64_t model_bytes = 0;  // read and written, by the cost model
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  std::int64_t least_sectors = 0;
  std::int64_t sectors = 0;
  std::int64_t least_wavefronts = 0;
  std::int64_t wavefronts = 0;
  std::int64_t mmas = 0;

  CountedColumns() = default;
  CountedColumns(std::int64_t cost_bytes, const ptx::Counters& counters);
  bool operator==(const CountedColumns&) const = default;
};

// An example of an op on the kernel that is preferred for it.
struct CountersRow {
  // Written by hand.
  std::string kernel;
  std::string op;
  DType type = DType::kF32;
  bool is_aligned = false;  // sizes are whole multiples of packs, warps and tiles
  std::string example;
  std::string read;     // formulas (byte_formula.h) of the bytes that lanes ask for
  std::string written;  // ... and give
  std::string mma;      // ... and of MMAs
  std::string reason;   // why sectors or wavefronts are over the limits below; else empty

  CountedColumns counted;

  // More sectors than 1.05 times the fewest on an aligned shape, or more passes over the banks of
  // shared memory than 1.1 times.
  bool is_over_limits() const;
};

struct CountersTable {
  std::string compiler;  // of the PTX, "V13.0.88"
  std::vector<CountersRow> rows;

  // Throws std::runtime_error, with the line, for a table that is not understood.
  static CountersTable read(const std::filesystem::path& path);
  std::string text() const;
};

}  // namespace trainscope::test
