// report: a run as one page of HTML.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/compare/find_trace.h"
#include "cli/compare/losses.h"
#include "cli/compare/sides.h"
#include "cli/flags/invocation.h"
#include "cli/report_pictures.h"
#include "cli/session_machine.h"
#include "engine/bundle/reader.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "profiler/analysis/profile.h"
#include "profiler/numerics/tensor_comparison.h"
#include "profiler/report/report.h"

namespace trainscope {
namespace {

constexpr std::string_view kReportFile = "report.html";

constexpr Flag kReportFlags[] = {
    {.name = "out",
     .value = "FILE.html",
     .help = "Where it goes; default: report.html in the run's folder",
     .letter = 'o'},
    {.name = "machine",
     .value = "FILE.json",
     .help = "The machine that trained, as `doctor --roofs` wrote it, for the rooflines; default: "
             "the run's own --machine"},
    {.name = "session",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Of runs that were resumed: the plan, stages and profile of their Nth session; "
             "default: the newest",
     .minimum = 1},
    {.name = "against",
     .value = "B[,C]",
     .help = "Other runs, or traces of other engines: their losses, and the errors of tensors that "
             "both recorded, as a picture of values by steps"},
};

std::string name_of_run(const std::filesystem::path& folder) {
  const std::filesystem::path full = std::filesystem::absolute(folder).lexically_normal();
  return full.has_filename() ? full.filename().string() : full.parent_path().filename().string();
}

// Why tensors are not compared is said in the page; the rest of it is there all the same.
profiler::ReportPeer peer_of(const std::string& folder, const std::optional<profiler::Trace>& own) {
  profiler::ReportPeer peer{.name = name_of_run(folder), .losses = read_losses(folder).curve};
  const std::optional<profiler::Trace> trace = find_trace(folder);
  if (!own || !trace) {
    peer.no_tensors = fmt::format("{} has no trace of its numbers", own ? peer.name : "this run");
    return peer;
  }
  try {
    peer.tensors = profiler::compare_tensors(*own, *trace);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
    peer.no_tensors = error.message();
  }
  return peer;
}

void add_numbers(const Settings& settings, const RunReader& run, profiler::ReportInput& input) {
  const std::optional<Folder> numerics = run.numerics(input.session);
  if (numerics && numerics->has_file(profiler::kTraceHeaderFile)) {
    input.trace = profiler::Trace::open(*numerics);
  }
  if (!settings.has("against")) return;
  for (const std::string& folder : folders_of(settings.text("against"))) {
    input.peers.push_back(peer_of(folder, input.trace));
  }
}

Json peers_json(const profiler::ReportInput& input) {
  Json peers = Json::array();
  for (const profiler::ReportPeer& peer : input.peers) {
    Json json = Json::object({{"name", peer.name}, {"losses", peer.losses.size()}});
    if (const auto& both = peer.tensors) {
      json.set("tensors", both->tensors.size());
      json.set("faults", both->faults());
      json.set("first", both->first ? Json(both->tensors[*both->first].key) : Json());
    } else {
      json.set("no_tensors", peer.no_tensors);
    }
    peers.push_back(std::move(json));
  }
  return peers;
}

Outcome run_report(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const std::filesystem::path folder = invocation.argument(0);
  const RunReader run = RunReader::open(folder);
  const std::int64_t session = settings.find_integer("session").value_or(kNewestSession);
  const auto sessions = std::ssize(run.manifest().sessions);
  profiler::ReportInput input{.name = name_of_run(folder),
                              .manifest = run.manifest(),
                              .session = session == kNewestSession ? sessions : session,
                              .metrics = run.metrics(),
                              .stages = run.stages(session)};
  const std::optional<StoredPlan> plan = run.plan(session);
  if (plan) input.plan = plan->view();
  if (run.events(session)) {
    const profiler::Profile profile = profiler::Profile::open(run, session);
    input.times = profiler::step_times(profile.events(), profile.plan());
    input.threads = profiler::thread_times(profile.events(), profile.plan());
    input.spread = profiler::step_spread(profile.events(), profile.plan(), *input.times);
    if (!profile.note().empty()) invocation.log().warning("{}", profile.note());
  }
  input.machine = machine_of_session(settings, run.manifest());
  add_numbers(settings, run, input);
  add_pictures(input, folder);
  const std::string page = profiler::html_report(input);
  const std::filesystem::path out =
      settings.has("out") ? std::filesystem::path(settings.text("out")) : folder / kReportFile;
  write_file_atomic(out, page);
  return {.facts = Json::object(
              {{"report", out.string()}, {"bytes", page.size()}, {"against", peers_json(input)}}),
          .text = fmt::format("report: {}\n", out.string())};
}

}  // namespace

Command report_command() {
  return {.name = "report",
          .summary = "Write a run as one page of HTML, for any browser, without network or script.",
          .arguments = {{.name = "RUN", .help = "the folder of a run"}},
          .flags = join_flags({kReportFlags}),
          .examples = {"trainscope report runs/mlp-1",
                       "trainscope report runs/mlp-1 --against runs/torch,runs/ort -o report.html"},
          .run = run_report};
}

}  // namespace trainscope
