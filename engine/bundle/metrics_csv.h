// Metrics as a table of comma-separated values: a row for each step and each evaluation.
#pragma once

#include <string>

#include "engine/bundle/format.h"

namespace trainscope {

// The names of the columns, with the line end.
std::string metrics_csv_header();
// A row without its line end; what a record does not have, and NaN, is an empty cell.
std::string metrics_csv_row(const StepRecord& step);
std::string metrics_csv_row(const EvaluationRecord& evaluation);

// The whole table; an evaluation comes after its step.
std::string metrics_csv(const Metrics& metrics);

}  // namespace trainscope
