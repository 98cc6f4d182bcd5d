// Ends the process when one of our own invariants does not hold.
#include "engine/core/error.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace trainscope {

void check_failed(std::string_view expression, std::string_view file, int line) {
  const std::string text =
      fmt::format("{}:{}: check failed: {}\nThis is a bug in trainscope, please report it.\n", file,
                  line, expression);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  std::abort();
}

}  // namespace trainscope
