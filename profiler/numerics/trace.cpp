// Tables with tabs, and sketches beside them: row K of values.tsv has the sketch at 32 + 1024 K.
#include "profiler/numerics/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope::profiler {
namespace {

constexpr std::string_view kPhaseNames[] = {"input", "forward", "backward", "update"};
constexpr std::string_view kKindNames[kTraceKinds] = {"input", "act",   "loss",  "dact",
                                                      "grad",  "param", "state", "own"};
constexpr std::string_view kColumns[] = {"step", "micro_batch", "phase",  "order", "kind",  "value",
                                         "op",   "node",        "kernel", "dtype", "shape", "count",
                                         "nan",  "+inf",        "-inf",   "zeros", "mean",  "std",
                                         "min",  "max",         "l1",     "l2",    "hash"};
constexpr std::string_view kNameColumns[] = {"value", "fate", "row", "reason"};

constexpr std::string_view kNoiseColumns[] = {"value", "noise"};

struct SketchFileHeader {
  char magic[8] = {'T', 'S', 'S', 'K', 'E', 'T', 'C', 'H'};
  std::uint32_t version = 1;
  std::uint32_t buckets = kSketchBuckets;
  std::uint64_t seed = kSketchSeed;
  std::uint64_t unused = 0;
};
static_assert(sizeof(SketchFileHeader) == 32);

constexpr std::uint64_t kMostTableBytes = std::uint64_t{4} << 30;

// Names of models may hold anything: tabs, line ends and backslashes are written as \t, \n, \\.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\')
      result += "\\\\";
    else if (c == '\t')
      result += "\\t";
    else if (c == '\n')
      result += "\\n";
    else if (c == '\r')
      result += "\\r";
    else
      result += c;
  }
  return result;
}

std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    const char next = text[++i];
    result += next == 't' ? '\t' : next == 'n' ? '\n' : next == 'r' ? '\r' : next;
  }
  return result;
}

std::string line_of(const TraceRow& row) {
  const TensorStatistics& s = row.statistics;
  return fmt::format(
      "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t"
      "{}\t{}\t{}\t{}",
      row.step, row.micro_batch, name_of(row.phase), row.order, name_of(row.kind),
      escaped(row.value), escaped(row.op), escaped(row.node), escaped(row.kernel), row.dtype,
      row.shape, s.count, s.nan, s.positive_infinite, s.negative_infinite, s.zeros, s.mean,
      s.deviation, s.least, s.most, s.l1, s.l2, hash_hex(row.hash));
}

// The cells of one line, and where it is, for messages.
struct Cells {
  std::vector<std::string_view> cells;
  std::string where;

  std::int64_t integer(std::size_t column) const {
    const auto value = parse_int(cells[column]);
    require(value.has_value(), ErrorCode::kBadInput, "{}: {} is '{}': expected an integer", where,
            kColumns[column], printable(cells[column]));
    return *value;
  }
  double number(std::size_t column) const {
    const auto value = parse_number(cells[column]);
    require(value.has_value(), ErrorCode::kBadInput, "{}: {} is '{}': expected a finite number",
            where, kColumns[column], printable(cells[column]));
    return *value;
  }
  template <typename Names>
  std::size_t one_of(const Names& names, std::size_t column) const {
    const auto found = std::ranges::find(names, cells[column]);
    require(found != std::end(names), ErrorCode::kBadInput, "{}: {} is '{}'", where,
            kColumns[column], printable(cells[column]));
    return static_cast<std::size_t>(found - std::begin(names));
  }
  std::uint64_t hash(std::size_t column) const {
    std::uint64_t value = 0;
    const std::string_view text = cells[column];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    require(error == std::errc() && end == text.data() + text.size(), ErrorCode::kBadInput,
            "{}: {} is '{}': expected hexadecimal digits", where, kColumns[column],
            printable(text));
    return value;
  }
};

TraceRow row_of(const Cells& line) {
  TraceRow row{.step = line.integer(0),
               .micro_batch = line.integer(1),
               .phase = static_cast<TracePhase>(line.one_of(kPhaseNames, 2)),
               .order = line.integer(3),
               .kind = static_cast<TraceKind>(line.one_of(kKindNames, 4)),
               .value = unescaped(line.cells[5]),
               .op = unescaped(line.cells[6]),
               .node = unescaped(line.cells[7]),
               .kernel = unescaped(line.cells[8]),
               .dtype = std::string(line.cells[9]),
               .shape = std::string(line.cells[10])};
  row.statistics = {.count = line.integer(11),
                    .nan = line.integer(12),
                    .positive_infinite = line.integer(13),
                    .negative_infinite = line.integer(14),
                    .zeros = line.integer(15),
                    .mean = line.number(16),
                    .deviation = line.number(17),
                    .least = line.number(18),
                    .most = line.number(19),
                    .l1 = line.number(20),
                    .l2 = line.number(21)};
  row.hash = line.hash(22);
  return row;
}

// Calls f with the cells of each whole line after the first, which must have these columns.
template <typename Columns, typename F>
void for_each_line(const FolderEntry& entry, const Columns& columns, F f) {
  const std::string text = read_file(entry, kMostTableBytes);
  const std::string file = printable(entry.path().string());
  std::size_t begin = 0;
  std::size_t number = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) return;  // it is being written, or was cut short
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    Cells cells{.cells = split(line, '\t'), .where = fmt::format("{}, line {}", file, number)};
    require(cells.cells.size() == std::size(columns), ErrorCode::kBadInput,
            "{}: {} columns, expected {}", cells.where, cells.cells.size(), std::size(columns));
    if (number > 1) {
      f(cells);
    } else {
      require(std::ranges::equal(cells.cells, columns), ErrorCode::kBadInput,
              "{}: expected the columns {}", cells.where, join(columns, " "));
    }
  }
}

Json header_json(const TraceHeader& header) {
  Json json = Json::object({{"format", kTraceFormat},
                            {"producer", header.producer},
                            {"version", header.version},
                            {"model", header.model},
                            {"mode", header.mode},
                            {"micro_batches", header.micro_batches},
                            {"sketch_seed", fmt::format("{}", header.sketch_seed)}});
  json.set("more", header.more);
  return json;
}

TraceHeader header_of(const Json& json) {
  const auto format = json.get<std::int64_t>("format");
  require(format >= 1 && format <= kTraceFormat, ErrorCode::kBadInput,
          "trace format {} is newer than this program: it reads up to {}", format, kTraceFormat);
  TraceHeader header{.producer = json.get<std::string>("producer"),
                     .version = json.get<std::string>("version"),
                     .model = json.get<std::string>("model"),
                     .mode = json.get<std::string>("mode"),
                     .micro_batches = json.get<std::int64_t>("micro_batches")};
  const auto seed = json.get<std::string>("sketch_seed");
  const auto [end, error] =
      std::from_chars(seed.data(), seed.data() + seed.size(), header.sketch_seed);
  require(error == std::errc() && end == seed.data() + seed.size(), ErrorCode::kBadInput,
          "sketch_seed is '{}': expected an integer", printable(seed));
  if (const Json* more = json.find("more")) header.more = *more;
  return header;
}

}  // namespace

std::string_view name_of(TracePhase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }
std::string_view name_of(TraceKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::optional<TraceKind> trace_kind_named(std::string_view name) {
  const auto found = std::ranges::find(kKindNames, name);
  if (found == std::end(kKindNames)) return std::nullopt;
  return static_cast<TraceKind>(found - std::begin(kKindNames));
}

std::string TraceRow::key() const { return fmt::format("{}:{}", name_of(kind), value); }

TraceWriter::TraceWriter(const Folder& folder, const TraceHeader& header)
    : folder_(folder), values_(folder / kTraceValuesFile), sketches_(folder / kTraceSketchFile) {
  write_file_atomic(folder / kTraceHeaderFile, header_json(header).dump(2) + "\n");
  values_.write_line(join(kColumns, "\t"));
  const SketchFileHeader start{.seed = header.sketch_seed};
  sketches_.write({reinterpret_cast<const char*>(&start), sizeof(start)});
}

void TraceWriter::add(const TraceRow& row, const Sketch& sketch) {
  lines_ += line_of(row);
  lines_ += '\n';
  waiting_.push_back(sketch);
  ++rows_;
}

void TraceWriter::flush() {
  if (waiting_.empty()) return;
  const std::size_t bytes = waiting_.size() * sizeof(Sketch);
  sketches_.write({reinterpret_cast<const char*>(waiting_.data()), bytes});
  values_.write(lines_);
  bytes_ += bytes + lines_.size();
  waiting_.clear();
  lines_.clear();
}

void TraceWriter::sync() {
  flush();
  sketches_.sync();
  values_.sync();
}

void TraceWriter::write_names(const std::vector<TraceName>& names) {
  std::string text = join(kNameColumns, "\t") + "\n";
  for (const TraceName& name : names) {
    text += fmt::format("{}\t{}\t{}\t{}\n", escaped(name.value), name.fate, escaped(name.row),
                        escaped(name.reason));
  }
  write_file_atomic(folder_ / kTraceNamesFile, text);
}

void TraceWriter::write_noise(const std::vector<TraceNoise>& noise) {
  std::string text = join(kNoiseColumns, "\t") + "\n";
  for (const TraceNoise& row : noise) {
    text += fmt::format("{}\t{}\n", escaped(row.key), row.relative);
  }
  write_file_atomic(folder_ / kTraceNoiseFile, text);
}

Trace Trace::open(const Folder& folder) {
  require(folder.has_file(kTraceHeaderFile), ErrorCode::kBadInput, "'{}' holds no trace",
          printable(folder.path().string()));
  Trace trace(folder);
  constexpr std::uint64_t kMostHeaderBytes = 1 << 20;
  const FolderEntry header = folder / kTraceHeaderFile;
  try {
    trace.header_ = header_of(Json::parse(read_file(header, kMostHeaderBytes)));
  } catch (Error& error) {
    error.at(printable(header.path().string()));
    throw;
  }
  trace.read_rows();
  trace.read_names();
  trace.read_noise();
  return trace;
}

void Trace::read_rows() {
  const FolderEntry entry = folder_ / kTraceSketchFile;
  sketches_ = std::make_shared<const MappedFile>(MappedFile::open(entry));
  SketchFileHeader start;
  const SketchFileHeader expected{.seed = header_.sketch_seed};
  require(sketches_->size_bytes() >= sizeof(start), ErrorCode::kBadInput, "'{}' is no sketch file",
          printable(entry.path().string()));
  sketches_->read(0, std::as_writable_bytes(std::span(&start, 1)));
  require(std::memcmp(&start, &expected, sizeof(start)) == 0, ErrorCode::kBadInput,
          "'{}' is no file of sketches of {} buckets and the trace's seed",
          printable(entry.path().string()), kSketchBuckets);
  const std::uint64_t sketches = (sketches_->size_bytes() - sizeof(start)) / sizeof(Sketch);
  for_each_line(folder_ / kTraceValuesFile, kColumns, [&](const Cells& line) {
    if (rows_.size() < sketches) rows_.push_back(row_of(line));
  });
}

void Trace::read_names() {
  if (!folder_.has_file(kTraceNamesFile)) return;
  for_each_line(folder_ / kTraceNamesFile, kNameColumns, [&](const Cells& line) {
    names_.push_back({.value = unescaped(line.cells[0]),
                      .fate = std::string(line.cells[1]),
                      .row = unescaped(line.cells[2]),
                      .reason = unescaped(line.cells[3])});
  });
}

void Trace::read_noise() {
  if (!folder_.has_file(kTraceNoiseFile)) return;
  for_each_line(folder_ / kTraceNoiseFile, kNoiseColumns, [&](const Cells& line) {
    const auto noise = parse_number(line.cells[1]);
    require(noise && *noise >= 0.0, ErrorCode::kBadInput, "{}: noise is '{}'", line.where,
            printable(line.cells[1]));
    noise_.push_back({.key = unescaped(line.cells[0]), .relative = *noise});
  });
}

std::optional<Trace> Trace::oracle() const {
  if (!folder_.has_folder(kTraceOracleFolder)) return std::nullopt;
  return open(folder_.enter(kTraceOracleFolder));
}

Sketch Trace::sketch(std::size_t row) const {
  Sketch sketch;
  sketches_->read(sizeof(SketchFileHeader) + row * sizeof(Sketch),
                  std::as_writable_bytes(std::span(sketch)));
  return sketch;
}

std::vector<std::int64_t> Trace::steps() const {
  std::set<std::int64_t> steps;
  for (const TraceRow& row : rows_) {
    if (row.step > 0 && row.phase != TracePhase::kUpdate) steps.insert(row.step);
  }
  return {steps.begin(), steps.end()};
}

}  // namespace trainscope::profiler
