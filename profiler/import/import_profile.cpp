// Tells whose trace it is by the events themselves.
#include <array>

#include "engine/core/error.h"
#include "profiler/import/importers.h"

namespace trainscope::profiler {

ImportedProfile import_profile(const ByteSource& source, const ImportOptions& options) {
  const std::array importers = {kineto_importer(), ort_importer()};
  std::array<bool, importers.size()> known = {};
  const TraceFrame frame = read_trace(source, [&](const Json& event, const EventPlace& /*at*/) {
    require(event.is_object(), ErrorCode::kBadInput, "an event is {}, expected an object",
            name_of(event.type()));
    for (std::size_t i = 0; i < importers.size(); ++i) {
      known[i] = importers[i]->take(event) || known[i];
    }
  });
  for (std::size_t i = 0; i < importers.size(); ++i) {
    if (known[i]) return importers[i]->finish(frame, options);
  }
  throw Error(ErrorCode::kBadInput, "the trace has no op of PyTorch or ONNX Runtime")
      .hint(
          "import takes what torch.profiler's export_chrome_trace and ONNX Runtime's "
          "enable_profiling write");
}

}  // namespace trainscope::profiler
