// report: a run as one page of HTML.
#include <fmt/format.h>

#include <optional>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/report_pictures.h"
#include "cli/session_machine.h"
#include "engine/bundle/reader.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "profiler/analysis/profile.h"
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
};

std::string name_of_run(const std::filesystem::path& folder) {
  const std::filesystem::path full = std::filesystem::absolute(folder).lexically_normal();
  return full.has_filename() ? full.filename().string() : full.parent_path().filename().string();
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
  add_pictures(input, folder);
  const std::string page = profiler::html_report(input);
  const std::filesystem::path out =
      settings.has("out") ? std::filesystem::path(settings.text("out")) : folder / kReportFile;
  write_file_atomic(out, page);
  return {.facts = Json::object({{"report", out.string()}, {"bytes", page.size()}}),
          .text = fmt::format("report: {}\n", out.string())};
}

}  // namespace

Command report_command() {
  return {.name = "report",
          .summary = "Write a run as one page of HTML, for any browser, without network or script.",
          .arguments = {{.name = "RUN", .help = "the folder of a run"}},
          .flags = join_flags({kReportFlags}),
          .examples = {"trainscope report runs/mlp-1",
                       "trainscope report runs/mlp-1 --machine machine.json -o report.html"},
          .run = run_report};
}

}  // namespace trainscope
