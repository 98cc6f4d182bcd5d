// Which rows of a trace a request asks for, and of which all elements are kept: by patterns of
// names.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/compile.h"
#include "engine/run/numerics/traced_values.h"
#include "engine/run/train_request.h"
#include "profiler/numerics/trace.h"

namespace trainscope {

// Throws kUsage, with the nearest name, for a pattern of NumericsRequest::values that no value of
// the model has.
void check_values(const NumericsRequest& request, const Stages& stages);

class WantedRows {
 public:
  explicit WantedRows(const NumericsRequest& request)
      : values_(request.values), full_(request.full) {}

  // Rows may have another of the names that their elements have in the model: these are all.
  void know(const std::vector<profiler::TraceName>& names);

  // Inputs and the loss always, so that traces can be held against each other. Without patterns
  // all.
  bool has(const TracedAs& as) const;
  bool has_elements(const TracedAs& as) const;
  // The same names; where a row is not wanted they say so.
  std::vector<profiler::TraceName> recorded(std::vector<profiler::TraceName> names) const;

 private:
  std::vector<std::string> values_;  // patterns
  std::vector<std::string> full_;
  std::set<std::string> value_keys_;  // of rows that these mean by another name
  std::set<std::string> full_keys_;
};

}  // namespace trainscope
