// What pages of reports say.
#pragma once

#include <string_view>

namespace trainscope::profiler::test {

inline bool contains(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

}  // namespace trainscope::profiler::test
