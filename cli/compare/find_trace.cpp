// In the folder itself, or in the session of a run.
#include "cli/compare/find_trace.h"

#include "engine/bundle/format.h"
#include "engine/bundle/reader.h"

namespace trainscope {

std::optional<profiler::Trace> find_trace(const std::string& path) {
  const Folder folder = Folder::open(path);
  if (folder.has_file(profiler::kTraceHeaderFile)) return profiler::Trace::open(folder);
  if (!folder.has_file(kRunManifestFile)) {  // another engine's recorder made it
    if (!folder.has_folder(kRunNumericsFolder)) return std::nullopt;
    return profiler::Trace::open(folder.enter(kRunNumericsFolder));
  }
  const RunReader run = RunReader::open(folder);
  const std::optional<Folder> trace = run.numerics(std::ssize(run.manifest().sessions));
  if (!trace || !trace->has_file(profiler::kTraceHeaderFile)) return std::nullopt;
  return profiler::Trace::open(*trace);
}

}  // namespace trainscope
