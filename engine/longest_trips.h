// How many trips the data ask of a model's loops.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/compile.h"
#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"
#include "kernels/api/kernel.h"

namespace trainscope {

// The part of a model that counts trips from its inputs: of the loops in its own graph whose number
// of trips is known only when a step runs. Where parameters have a part in it, it is empty.
class TripCounts {
 public:
  // Reads the model anew, with `import` but for its max_trips.
  TripCounts(const OnnxModel& model, const ImportOptions& import);

  // The inputs that are read, with their types in a batch; empty: the data count no trips.
  const std::map<std::string, TensorType>& inputs() const { return inputs_; }
  // The most trips of a loop in a batch that holds these inputs. Of a loop that a condition may end
  // it is the number that it may not pass: a loop without such a number asks for more than
  // kMostTripsUnasked. None where counting them takes too long, or needs results of another loop
  // whose trips are counted.
  std::optional<std::int64_t> of(const std::map<std::string, Tensor>& batch) const;

 private:
  std::shared_ptr<const OpTable> ops_;
  std::shared_ptr<const KernelTable> kernels_;
  Graph graph_;
  std::vector<ValueId> counts_;
  std::map<std::string, TensorType> inputs_;
};

}  // namespace trainscope
