// A reference model that is trained with recomputation.
#pragma once

#include <optional>
#include <string_view>

#include "tests/support/trained_model.h"

namespace trainscope::test {

struct Trained : TrainedModel {
  Trained(std::string_view name, const RecomputeOptions& recompute,
          std::optional<OptimizerOptions> optimizer = {})
      : TrainedModel(name, [&](CompileOptions& options) {
          if (optimizer) options.training.optimizer = *optimizer;
          options.recompute = recompute;
        }) {}
};

}  // namespace trainscope::test
