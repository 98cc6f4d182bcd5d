// Texts of any characters in places where some have a meaning.
#pragma once

#include <string>
#include <string_view>

namespace trainscope::gui {

// '%' and the characters of `special` as in addresses: '%' and two hexadecimal digits (RFC
// 3986, 2.1).
std::string escaped(std::string_view text, std::string_view special);
// What is no such escape stays as it is.
std::string unescaped(std::string_view text);

}  // namespace trainscope::gui
