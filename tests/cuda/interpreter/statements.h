// The statements of a kernel's text, without comments and braces that only open a scope.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainscope::ptx {

struct Statement {
  std::string text;  // without its ';' or ':', words set apart by one space each
  bool is_label = false;
  int line = 0;
};

std::vector<Statement> statements_of(std::string_view text, int line);

// What commas divide, outside of parentheses, brackets and braces.
std::vector<std::string_view> parts_of(std::string_view list);

}  // namespace trainscope::ptx
