// What is written is read again; what is cut short, damaged or of another version is refused or
// left out.
#include "profiler/numerics/trace.h"

#include "engine/core/error.h"
#include "tests/profiler/numerics/trace_tools.h"

namespace trainscope::profiler {
namespace {

TraceRow row_named(const std::string& value, std::int64_t step = 1) {
  return {.step = step, .kind = TraceKind::kActivation, .value = value, .op = "Gelu"};
}

void write_three(const TraceFolder& scratch) {
  TraceWriter writer(scratch.folder(), {.producer = "trainscope", .version = "1", .model = "ab"});
  add_row(writer, row_named("x"), {1.0F, 2.0F});
  add_row(writer, row_named("a\tb\\c\nd"), {3.0F});
  add_row(writer, row_named("z", 2), {4.0F});
  writer.write_names({{.value = "act:y", .fate = "inside", .row = "", .reason = "of a node"},
                      {.value = "act:v", .fate = "renamed", .row = "act:x"}});
  writer.write_noise({{.key = "act:x", .relative = 1e-7}});
  writer.sync();
}

std::string message_of(const TraceFolder& scratch) {
  try {
    Trace::open(scratch.path);
  } catch (const Error& error) {
    return std::string(error.message());
  }
  return {};
}

void replace_in(const std::filesystem::path& file, const std::string& from, const std::string& to) {
  std::string text = read_file(file, 1 << 20);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  write_file_atomic(file, std::string_view(text.replace(at, from.size(), to)));
}

TEST_CASE("trace: what is written is read again") {
  const TraceFolder scratch;
  write_three(scratch);
  const Trace trace = Trace::open(scratch.path);
  CHECK(trace.header().producer == "trainscope");
  CHECK(trace.header().model == "ab");
  REQUIRE(trace.rows().size() == 3);
  CHECK(trace.rows()[1].value == "a\tb\\c\nd");
  CHECK(trace.rows()[0].op == "Gelu");
  CHECK(trace.rows()[0].statistics.mean == 1.5);
  CHECK(trace.rows()[0].key() == "act:x");
  CHECK(trace.steps() == std::vector<std::int64_t>{1, 2});
  CHECK(estimated_norm(trace.sketch(2)) == 4.0);
  REQUIRE(trace.names().size() == 2);
  CHECK(trace.names()[0].reason == "of a node");
  CHECK(trace.noise()[0].relative == 1e-7);
  CHECK_FALSE(trace.oracle().has_value());
}

TEST_CASE("trace: steps of which the update alone is there are not of its steps") {
  const TraceFolder scratch;
  TraceWriter writer(scratch.folder(), {.producer = "test", .version = "1"});
  const TraceRow before{
      .step = 4, .phase = TracePhase::kUpdate, .kind = TraceKind::kParameter, .value = "w"};
  add_row(writer, before, {1.0F});
  add_row(writer, {.step = 5, .kind = TraceKind::kActivation, .value = "x"}, {2.0F});
  writer.sync();
  CHECK(Trace::open(scratch.path).steps() == std::vector<std::int64_t>{5});
}

TEST_CASE("trace: a row or sketch that was cut short is left out") {
  const TraceFolder scratch;
  write_three(scratch);
  const std::string rows = read_file(scratch.path / kTraceValuesFile, 1 << 20);
  write_file_atomic(scratch.path / kTraceValuesFile,
                    std::string_view(rows).substr(0, rows.size() - 5));
  CHECK(Trace::open(scratch.path).rows().size() == 2);
  const std::string sketches = read_file(scratch.path / kTraceSketchFile, 1 << 20);
  write_file_atomic(scratch.path / kTraceSketchFile,
                    std::string_view(sketches).substr(0, 32 + 1024 + 100));
  CHECK(Trace::open(scratch.path).rows().size() == 1);
}

TEST_CASE("trace: what is no trace is refused by name") {
  const TraceFolder none;
  CHECK(message_of(none).find("holds no trace") != std::string::npos);
  struct Damage {
    std::string_view file;
    std::string from;
    std::string to;
    std::string said;
  };
  const Damage damages[] = {
      {kTraceHeaderFile, "\"format\": 1", "\"format\": 9", "newer"},
      {kTraceHeaderFile, "\"producer\"", "\"prod\"", "producer"},
      {kTraceValuesFile, "step\tmicro_batch", "step\tmicro", "columns"},
      {kTraceValuesFile, "forward", "sideways", "phase is 'sideways'"},
      {kTraceValuesFile, "\nact", "\n1\tact", "columns"},
      {kTraceSketchFile, "TSSKETCH", "TSSKETCA", "sketches"},
      {kTraceNoiseFile, "1e-07", "-1", "noise is"},
  };
  for (const Damage& damage : damages) {
    CAPTURE(damage.to);
    const TraceFolder scratch;
    write_three(scratch);
    if (damage.from == "\nact") {
      const std::string rows = read_file(scratch.path / kTraceValuesFile, 1 << 20);
      write_file_atomic(scratch.path / kTraceValuesFile, std::string_view(rows + "1\t2\n"));
    } else {
      replace_in(scratch.path / damage.file, damage.from, damage.to);
    }
    const std::string message = message_of(scratch);
    CAPTURE(message);
    CHECK(message.find(damage.said) != std::string::npos);
  }
}

}  // namespace
}  // namespace trainscope::profiler
