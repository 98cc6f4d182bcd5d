// Text within XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace trainscope {

// As the text of an element or the value of an attribute in quotes. Control characters, which XML
// does not have, are left out.
std::string markup_text(std::string_view text);

}  // namespace trainscope
