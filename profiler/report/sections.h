// The sections of a report, each markup with its heading; empty where there is nothing to say.
#pragma once

#include <string>
#include <string_view>

#include "profiler/report/report.h"

namespace trainscope::profiler {

std::string section(std::string_view id, std::string_view heading, std::string_view content);

std::string summary_section(const ReportInput& input);
std::string curves_section(const ReportInput& input);
std::string time_section(const ReportInput& input);
std::string threads_section(const ReportInput& input);
std::string steps_section(const ReportInput& input);
std::string roofline_section(const ReportInput& input);
std::string memory_section(const ReportInput& input);
std::string stages_section(const ReportInput& input);
std::string near_misses_section(const ReportInput& input);
std::string environment_section(const ReportInput& input);

}  // namespace trainscope::profiler
