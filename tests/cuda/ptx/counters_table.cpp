// Rows of tabs and words; the counted columns lie between the formulas and the reason.
#include "tests/cuda/ptx/counters_table.h"

#include <optional>
#include <stdexcept>

#include "engine/core/file.h"
#include "engine/core/text.h"

namespace trainscope::test {
namespace {

constexpr std::string_view kFirstLine = "# PTX of nvcc ";
constexpr std::string_view kDoc =
    "# Of one call: bytes that lanes ask of global memory, sectors of 32 bytes, passes over the "
    "banks of shared memory, MMAs [16, 8, 16]; formulas as in byte_formula.h. Written anew by "
    "TRAINSCOPE_UPDATE_DATA=1 cuda_ptx_test -tc='ptx counters*'.\n";
constexpr std::string_view kColumns =
    "kernel\top\ttype\tshape\texample\tread\twritten\tmma\tmodel_bytes\tbytes_read\tbytes_written\t"
    "least_sectors\tsectors\tleast_wavefronts\twavefronts\tmmas\treason\n";
constexpr std::size_t kColumnCount = 17;
constexpr std::size_t kFirstCounted = 8;

// In the order of the columns.
constexpr std::int64_t CountedColumns::*kCounted[] = {
    &CountedColumns::model_bytes,   &CountedColumns::bytes_read, &CountedColumns::bytes_written,
    &CountedColumns::least_sectors, &CountedColumns::sectors,    &CountedColumns::least_wavefronts,
    &CountedColumns::wavefronts,    &CountedColumns::mmas};

std::optional<DType> type_named(std::string_view name) {
  for (const DType type : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    if (name_of(type) == name) return type;
  }
  return std::nullopt;
}

CountersRow read_row(std::string_view line) {
  const auto fail = [&] {
    throw std::runtime_error("counters.tsv: a row that is not understood: " + std::string(line));
  };
  const std::vector<std::string_view> columns = split(line, '\t');
  if (columns.size() != kColumnCount) fail();
  const std::optional<DType> type = type_named(columns[2]);
  if (!type || (columns[3] != "aligned" && columns[3] != "ragged")) fail();
  CountersRow row{.kernel = std::string(columns[0]),
                  .op = std::string(columns[1]),
                  .type = *type,
                  .is_aligned = columns[3] == "aligned",
                  .example = std::string(columns[4]),
                  .read = std::string(columns[5]),
                  .written = std::string(columns[6]),
                  .mma = std::string(columns[7]),
                  .reason = std::string(columns[16]),
                  .counted = {}};
  for (std::size_t i = 0; i < std::size(kCounted); ++i) {
    const std::optional<std::int64_t> number = parse_int(columns[kFirstCounted + i]);
    if (!number) fail();
    row.counted.*kCounted[i] = *number;
  }
  return row;
}

}  // namespace

CountedColumns::CountedColumns(std::int64_t cost_bytes, const ptx::Counters& counters)
    : model_bytes(cost_bytes),
      bytes_read(counters.bytes_read),
      bytes_written(counters.bytes_written),
      least_sectors(counters.least_sectors),
      sectors(counters.sectors),
      least_wavefronts(counters.least_wavefronts),
      wavefronts(counters.wavefronts),
      mmas(counters.multiplies) {}

bool CountersRow::is_over_limits() const {
  return (is_aligned && 20 * counted.sectors > 21 * counted.least_sectors) ||
         10 * counted.wavefronts > 11 * counted.least_wavefronts;
}

CountersTable CountersTable::read(const std::filesystem::path& path) {
  const std::string text = read_file(path, std::uint64_t{1} << 20U);
  CountersTable table;
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with(kFirstLine)) table.compiler = line.substr(kFirstLine.size());
    if (line.empty() || line.starts_with('#') || line.starts_with("kernel\t")) continue;
    table.rows.push_back(read_row(line));
  }
  return table;
}

std::string CountersTable::text() const {
  std::string text = std::string(kFirstLine) + compiler + "\n";
  text += kDoc;
  text += kColumns;
  for (const CountersRow& row : rows) {
    for (const std::string_view column :
         {std::string_view(row.kernel), std::string_view(row.op), name_of(row.type),
          std::string_view(row.is_aligned ? "aligned" : "ragged"), std::string_view(row.example),
          std::string_view(row.read), std::string_view(row.written), std::string_view(row.mma)}) {
      text += column;
      text += '\t';
    }
    for (const auto column : kCounted) {
      text += std::to_string(row.counted.*column);
      text += '\t';
    }
    text += row.reason + '\n';
  }
  return text;
}

}  // namespace trainscope::test
