// What a reader may do with bytes of strangers: accept them, or refuse them as documented.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "engine/core/error.h"

namespace trainscope::test {

[[noreturn]] inline void report(const std::string& what) {
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::abort();
}

// An error of the given code with a message, and nothing in it that moves a terminal's cursor.
inline void check_refusal(const Error& error, bool documented_code) {
  std::string text = error.message();
  for (const std::string& line : error.context()) text += "\n" + line;
  text += "\n" + error.hint();
  if (!documented_code) report("undocumented code: " + text);
  if (error.message().empty()) report("no message");
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n') || byte == 0x7f) report("control character in: " + text);
  }
}

}  // namespace trainscope::test
