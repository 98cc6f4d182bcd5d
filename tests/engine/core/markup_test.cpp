// Text that would be markup, and characters that XML does not have.
#include "engine/core/markup.h"

#include <doctest/doctest.h>

namespace trainscope {
namespace {

TEST_CASE("markup: what means something to XML is escaped, control characters are left out") {
  CHECK(markup_text("a < b && c > \"d\"") == "a &lt; b &amp;&amp; c &gt; &quot;d&quot;");
  CHECK(markup_text("it's") == "it&#39;s");
  CHECK(markup_text("\x1b[31m\tred\n") == "[31mred");
  CHECK(markup_text("\u00b5s") == "\u00b5s");
}

}  // namespace
}  // namespace trainscope
