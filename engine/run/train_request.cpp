// Ways to give a request its data.
#include "engine/run/train_request.h"

#include <utility>

namespace trainscope {

std::unique_ptr<BatchSource> direct_batches(std::shared_ptr<const Dataset> data,
                                            const BatchOrder& order, const BatchRange& range) {
  return std::make_unique<DirectBatches>(std::move(data), order, range);
}

OpenData opened(std::shared_ptr<const Dataset> data) {
  return [data = std::move(data)](const Compiled&) { return data; };
}

}  // namespace trainscope
