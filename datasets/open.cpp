// From a kind of data to its reader.
#include "datasets/open.h"

#include "datasets/catalog.h"
#include "datasets/readers/bpe.h"
#include "datasets/readers/csv.h"
#include "datasets/readers/idx.h"
#include "datasets/readers/synthetic.h"
#include "datasets/readers/tensors.h"
#include "datasets/readers/text.h"
#include "datasets/readers/tokens.h"
#include "datasets/spec.h"
#include "engine/core/error.h"

namespace trainscope {

std::unique_ptr<Dataset> open_dataset(std::string_view source, const DatasetOptions& options) {
  DataSpec spec = parse_data_spec(source);
  if (spec.kind == DataKind::kCatalog) spec = resolve_catalog(spec, options.data_folder);
  switch (spec.kind) {
    case DataKind::kText:
      return open_text(spec, options);
    case DataKind::kBpe:
      return open_bpe(spec, options);
    case DataKind::kTokens:
      return open_tokens(spec, options);
    case DataKind::kIdx:
      return open_idx(spec, options);
    case DataKind::kCsv:
      return open_csv(spec, options);
    case DataKind::kTensors:
      return open_tensors(spec, options);
    case DataKind::kSynthetic:
      return make_synthetic(spec, options);
    case DataKind::kCatalog:
      break;  // has become another kind above
  }
  fail(ErrorCode::kUsage, "data '{}': no reader for this kind", spec.text);
}

}  // namespace trainscope
