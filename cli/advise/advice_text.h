// Advice as text for people and as facts.
#pragma once

#include <string>
#include <vector>

#include "cli/flags/settings.h"
#include "engine/advise/advice.h"
#include "engine/core/json.h"

namespace trainscope {

// Why the step needs what it does: three sentences each.
struct Reasons {
  std::vector<std::string> of_peak;
  std::vector<std::string> of_time;
};

// A lever as `train` takes it.
struct LeverWords {
  std::vector<GivenFlag> flags;
  std::string command;  // that trains so
};

struct ShownAdvice {
  Advice advice;
  Reasons reasons;
  std::vector<LeverWords> words;  // of each of advice.levers
};

std::string advice_text(const ShownAdvice& shown);
Json advice_json(const ShownAdvice& shown);

}  // namespace trainscope
