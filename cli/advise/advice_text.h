// Advice as text for people and as facts.
#pragma once

#include <string>
#include <vector>

#include "cli/advise/advice.h"
#include "engine/core/json.h"

namespace trainscope {

// Why the step needs what it does: three sentences each.
struct Reasons {
  std::vector<std::string> of_peak;
  std::vector<std::string> of_time;
};

std::string advice_text(const Advice& advice, const Reasons& reasons);
Json advice_json(const Advice& advice, const Reasons& reasons);

}  // namespace trainscope
