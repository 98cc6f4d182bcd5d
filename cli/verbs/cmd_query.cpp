// query: where the time of a run's profiled steps went, as a table, JSON or CSV.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/print/profile_tables.h"
#include "cli/session_machine.h"
#include "engine/bundle/reader.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/buffer_overlaps.h"
#include "profiler/analysis/counter_ranges.h"
#include "profiler/analysis/profile.h"
#include "profiler/analysis/roof.h"

namespace trainscope {
namespace {

using profiler::Breakdown;
using profiler::BreakdownRow;

constexpr std::size_t kShownOverlaps = 8;
constexpr std::size_t kMostOverlapBytes = 600;  // of a line

constexpr Flag kQueryFlags[] = {
    {.name = "by",
     .type = FlagType::kChoice,
     .value = "call|kernel|op|node|layer|phase|pass|thread|step",
     .fallback = "node",
     .help = "What rows are: node is the ONNX node that a call stems from, layer the scope of its "
             "name, pass the one that made it; thread: what each was at, and why it was idle; "
             "step: how long they took, and why some took longer"},
    {.name = "sort",
     .type = FlagType::kChoice,
     .value =
         "name|ms|median_ms|share|count|busy_ms|flops|direct_flops|bytes|gflops|gbs|intensity|roof",
     .fallback = "ms",
     .help = "The column that rows are sorted by, the greatest first"},
    {.name = "top",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "The first N rows alone",
     .minimum = 1},
    {.name = "range",
     .value = "FROM:TO",
     .help = "Instead of whole steps: from one nanosecond of the profile to another, of the thread "
             "that drives the steps"},
    {.name = "csv", .type = FlagType::kSwitch, .help = "Comma-separated values"},
    {.name = "machine",
     .value = "FILE.json",
     .help = "The machine that trained, as `doctor --roofs` wrote it, for the share of its roof; "
             "default: the run's own --machine"},
    {.name = "session",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Of runs that were resumed: the profile of their Nth session; default: the newest",
     .minimum = 1},
};

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string csv_of(const Breakdown& table) {
  std::string text;
  for (std::string_view column : profiler::column_names()) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", column);
  }
  text += '\n';
  for (const BreakdownRow& row : table.rows) {
    text += csv_cell(row.name);
    for (std::string_view column : profiler::column_names().subspan(1)) {
      text += fmt::format(",{:.9g}", profiler::column_of(table, row, column));
    }
    text += '\n';
  }
  return text;
}

// "learning rate": {"values": 3, "least": 0.01, "greatest": 0.1}.
Json counters_json(const profiler::Profile& profile) {
  Json counters = Json::object();
  for (const profiler::CounterRange& range : profiler::counter_ranges(profile.events())) {
    counters.set(
        std::string(profiler::name_of(range.kind)),
        Json::object(
            {{"values", range.values}, {"least", range.least}, {"greatest", range.greatest}}));
  }
  return counters;
}

// Null where the machine is not known. What has no "gbs" is of arithmetic.
Json roofs_json(const profiler::Profile& profile, const std::optional<Machine>& machine) {
  if (!machine) return {};
  Json roofs = Json::array();
  for (const profiler::Roof& roof : profiler::roofs_of(*machine, profile.plan().facts().threads)) {
    Json facts = Json::object({{"name", roof.name}, {"gflops", roof.gflops}});
    if (roof.gbs > 0.0) facts.set("gbs", roof.gbs);
    roofs.push_back(std::move(facts));
  }
  return roofs;
}

// Work of a device that met in bytes which the plan gives to one call after the other.
std::vector<std::string> overlap_texts(const profiler::Profile& profile) {
  std::vector<std::string> texts;
  const PlanView plan = profile.plan();
  for (const profiler::BufferOverlap& each : profiler::buffer_overlaps(profile.events(), plan)) {
    texts.push_back(printable(profiler::text_of(each, plan), kMostOverlapBytes));
  }
  return texts;
}

Json facts_of(const Breakdown& table, const profiler::Profile& profile,
              const std::optional<Machine>& machine, const std::string& note,
              const std::vector<std::string>& overlaps) {
  Json rows = Json::array();
  std::int64_t shown_ns = 0;
  for (const BreakdownRow& row : table.rows) {
    shown_ns += row.ns;
    Json facts = Json::object({{"name", row.name}, {"is_call", row.is_call}, {"ns", row.ns}});
    for (std::string_view column : profiler::column_names().subspan(1)) {
      facts.set(std::string(column), profiler::column_of(table, row, column));
    }
    rows.push_back(std::move(facts));
  }
  return Json::object({{"steps", table.steps},
                       {"events", profile.events().events},
                       {"step_ms", table.ms(table.total_ns)},
                       {"shown_ms", table.ms(shown_ns)},
                       {"total_ns", table.total_ns},
                       {"note", note},
                       {"outside_life", Json::list(overlaps)},
                       {"counters", counters_json(profile)},
                       {"roofs", roofs_json(profile, machine)},
                       {"rows", std::move(rows)}});
}

// Blank where a row has none of it.
std::string cell(double value, int width, int digits) {
  return value == 0.0 ? std::string(static_cast<std::size_t>(width), ' ')
                      : fmt::format("{:>{}.{}f}", value, width, digits);
}

std::string text_of(const Breakdown& table, std::size_t all_rows, const std::string& by) {
  std::string text = fmt::format("{} steps of {:.3f} ms; time is that of {}\n", table.steps,
                                 table.ms(table.total_ns), whose_time(table.is_of_device));
  text += fmt::format(
      "{:>10} {:>10} {:>7} {:>8} {:>10} {:>10} {:>10} {:>9} {:>8} {:>7} {:>7}  {}\n", "ms",
      "median", "share", "count", "MFLOP", "direct", "MB", "GFLOP/s", "GB/s", "FLOP/B", "roof", by);
  double ms = 0.0;
  double share = 0.0;
  for (const BreakdownRow& row : table.rows) {
    ms += table.ms(row.ns);
    share += table.share(row);
    text += fmt::format(
        "{:>10.4f} {:>10.4f} {:>6.2f}% {} {} {} {} {} {} {} {}  {}\n", table.ms(row.ns),
        row.median_ns / 1e6, 100.0 * table.share(row),
        cell(profiler::column_of(table, row, "count"), 8, 1),
        cell(profiler::column_of(table, row, "flops") / 1e6, 10, 3),
        cell(profiler::column_of(table, row, "direct_flops") / 1e6, 10, 3),
        cell(profiler::column_of(table, row, "bytes") / 1e6, 10, 3), cell(row.gflops(), 9, 2),
        cell(row.gbs(), 8, 2), cell(row.intensity(), 7, 2),
        row.roof() == 0.0 ? std::string(7, ' ') : fmt::format("{:>6.1f}%", 100.0 * row.roof()),
        row.is_call ? printable(row.name) : "(" + row.name + ")");
  }
  text += fmt::format("{:>10.4f} {:>10} {:>6.2f}%  in {} of {} rows\n", ms, "", 100.0 * share,
                      table.rows.size(), all_rows);
  return text;
}

// Tables of their own, of all that was profiled.
std::optional<Outcome> other_table(const Settings& settings, const std::string& expression,
                                   const profiler::Profile& profile,
                                   const profiler::StepTimes& times) {
  const std::string& by = settings.text("by");
  if (profiler::group_named(by)) return std::nullopt;
  const bool of_calls = !expression.empty() || settings.given("sort") || settings.given("top") ||
                        settings.given("csv") || settings.given("machine");
  require(!of_calls, ErrorCode::kUsage,
          "--by {} is of all that was profiled: EXPR, --sort, --top, --csv and --machine are of "
          "calls",
          by);
  return by == "thread" ? thread_table(profile, times) : step_table(profile, times);
}

// "1200:3400".
std::pair<std::int64_t, std::int64_t> range_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto from = parse_int(text.substr(0, colon));
  const auto to =
      colon == std::string_view::npos ? std::nullopt : parse_int(text.substr(colon + 1));
  if (from && to && *from < *to) return {*from, *to};
  throw Error(ErrorCode::kUsage, fmt::format("--range '{}' is no range", printable(text)))
      .hint("--range 1200:3400: from nanosecond 1200 of the profile to before 3400");
}

Outcome query_range(const Settings& settings, const std::string& expression,
                    const profiler::Profile& profile) {
  const bool of_steps = !expression.empty() || settings.given("sort") || settings.given("csv") ||
                        settings.given("machine");
  require(!of_steps, ErrorCode::kUsage,
          "--range is not of whole steps: EXPR, --sort, --csv and --machine are");
  const std::string& by = settings.text("by");
  const std::optional<profiler::GroupBy> group = profiler::group_named(by);
  require(group.has_value(), ErrorCode::kUsage, "--by {} is of all steps: leave out --range", by);
  const auto [from, to] = range_of(settings.text("range"));
  return range_table(profiler::range_times(profile.events(), profile.plan(), from, to, *group), by,
                     static_cast<std::size_t>(settings.find_integer("top").value_or(0)));
}

Outcome run_query(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  require(!settings.on("csv") || !invocation.json(), ErrorCode::kUsage,
          "--csv and --json: give one");
  const std::string& expression = invocation.argument(1);
  profiler::Filter filter;
  if (!expression.empty()) filter = profiler::Filter::parse(expression, profiler::call_fields());
  const RunReader run = RunReader::open(invocation.argument(0));
  const auto profile =
      profiler::Profile::open(run, settings.find_integer("session").value_or(kNewestSession));
  if (settings.has("range")) return query_range(settings, expression, profile);
  const profiler::StepTimes times = profiler::step_times(profile.events(), profile.plan());
  require(!times.steps.empty(), ErrorCode::kUsage, "the profile has no whole step yet");
  std::string note = profile.note();
  if (!note.empty()) invocation.log().warning("{}", note);
  const std::vector<std::string> overlaps = overlap_texts(profile);
  for (std::size_t i = 0; i < std::min(kShownOverlaps, overlaps.size()); ++i) {
    invocation.log().warning("outside of a buffer's life: {}", overlaps[i]);
  }
  if (overlaps.size() > kShownOverlaps) {
    invocation.log().warning("... and {} more: --json has all", overlaps.size() - kShownOverlaps);
  }
  if (auto other = other_table(settings, expression, profile, times)) return std::move(*other);
  const std::string& by = settings.text("by");
  const std::optional<Machine> machine = machine_of_session(settings, run.manifest());
  if (machine && !note_of(*machine).empty()) {
    invocation.log().warning("{}", note_of(*machine));
    note += fmt::format("{}{}", note.empty() ? "" : "; ", note_of(*machine));
  }
  Breakdown table = profiler::breakdown(
      times, profile.plan(), *profiler::group_named(by),
      {.filter = expression.empty() ? nullptr : &filter, .machine = machine ? &*machine : nullptr});
  profiler::sort_rows(table, settings.text("sort"));
  const std::size_t all_rows = table.rows.size();
  const auto top = settings.find_integer("top");
  if (top && static_cast<std::size_t>(*top) < all_rows) {
    table.rows.resize(static_cast<std::size_t>(*top));
  }
  return {.facts = facts_of(table, profile, machine, note, overlaps),
          .text = settings.on("csv") ? csv_of(table) : text_of(table, all_rows, by)};
}

}  // namespace

Command query_command() {
  return {
      .name = "query",
      .summary = "Show where the time of a profiled run's steps went.",
      .arguments = {{.name = "RUN", .help = "the folder of a run that was profiled"},
                    {.name = "EXPR",
                     .help = "calls to look at alone: fields call, name, kernel, op, node, "
                             "layer, phase, pass, dtype, ms, busy_ms, share, count, flops, "
                             "direct_flops, bytes, gflops, gbs, intensity, roof; ==, !=, <, <=, >, "
                             ">=, &&, ||, !, "
                             "parentheses; * and ? in texts",
                     .required = false}},
      .flags = join_flags({kQueryFlags}),
      .examples = {"trainscope query runs/mlp-1 --by op",
                   "trainscope query runs/mlp-1 'op==*MatMul && ms>0.1 && phase==backward' --by "
                   "layer"},
      .run = run_query};
}

}  // namespace trainscope
