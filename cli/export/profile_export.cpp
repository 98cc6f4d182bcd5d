// The newest session's plan and profile in a format of profiler/formats/formats.def.
#include "cli/export/profile_export.h"

#include <optional>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "profiler/analysis/profile.h"

namespace trainscope {

void export_profile(const Source& source, const Invocation& invocation,
                    const profiler::ProfileFormat& format, const std::string& out) {
  const Settings& settings = invocation.settings();
  require(source.is_run(), ErrorCode::kUsage, "--format {} needs the folder of a run", format.name);
  const RunReader& run = source.run();
  profiler::FormatInput input{.name = run.folder().path().string(),
                              .rank = settings.integer("rank"),
                              .ranks = settings.integer("ranks"),
                              .as_device = settings.on("as-device")};
  require(input.rank < input.ranks, ErrorCode::kUsage,
          "--rank {} of --ranks {}: ranks are counted from 0", input.rank, input.ranks);
  std::optional<profiler::Profile> profile;
  std::optional<StoredPlan> plan;
  if (format.needs_events) {
    profile = profiler::Profile::open(run);
    input.events = &profile->events();
    input.plan = profile->plan();
    if (const std::string note = profile->note(); !note.empty()) {
      invocation.log().warning("{}", note);
    }
  } else {
    plan = run.plan();
    require(plan.has_value(), ErrorCode::kBadInput, "the run '{}' has no plan yet",
            printable(input.name));
    input.plan = plan->view();
    require(!input.plan.buffers.empty(), ErrorCode::kUsage,
            "the plan of '{}' has no buffers: an imported profile knows nothing of memory",
            printable(input.name));
  }
  AtomicFile file(std::filesystem::path{out});
  write_format(format, input, out.ends_with(".gz"),
               [&file](std::string_view text) { file.write(text); });
  file.commit();
}

}  // namespace trainscope
