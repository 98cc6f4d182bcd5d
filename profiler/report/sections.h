// The sections of a report, each markup with its heading; empty where there is nothing to say.
#pragma once

#include <string>
#include <string_view>

#include "profiler/report/report.h"

namespace trainscope::profiler {

std::string section(std::string_view id, std::string_view heading, std::string_view content);

std::string summary_section(const ReportInput& input);
std::string curves_section(const ReportInput& input);
std::string numbers_section(const ReportInput& input);
std::string time_section(const ReportInput& input);
std::string threads_section(const ReportInput& input);
std::string steps_section(const ReportInput& input);
std::string roofline_section(const ReportInput& input);
std::string memory_section(const ReportInput& input);
std::string stages_section(const ReportInput& input);
std::string near_misses_section(const ReportInput& input);
std::string environment_section(const ReportInput& input);
std::string pictures_section(const ReportInput& input);

// An SVG document as an element of the page, its ids with that prefix, so that no two pictures
// have one name; empty where it is none, or has other elements than shapes and text.
std::string inline_svg(std::string_view document, std::string_view prefix);

}  // namespace trainscope::profiler
