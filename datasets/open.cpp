// From a kind of data to its reader.
#include "datasets/open.h"

#include "datasets/readers/synthetic.h"
#include "datasets/readers/tensors.h"
#include "datasets/readers/text.h"
#include "datasets/spec.h"
#include "engine/core/error.h"

namespace trainscope {

std::unique_ptr<Dataset> open_dataset(std::string_view source, const DatasetOptions& options) {
  const DataSpec spec = parse_data_spec(source);
  switch (spec.kind) {
    case DataKind::kText:
      return open_text(spec, options);
    case DataKind::kTensors:
      return open_tensors(spec, options);
    case DataKind::kSynthetic:
      return make_synthetic(spec, options);
  }
  fail(ErrorCode::kUsage, "data '{}': no reader for this kind", spec.text);
}

}  // namespace trainscope
