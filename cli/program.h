// The program without its process: words in, text and exit code out.
#pragma once

#include <exception>
#include <span>
#include <string>

#include "cli/flags/settings.h"
#include "engine/core/error.h"

namespace trainscope {

// What the words ask for, done. `text` is for standard output, complete with line ends.
struct ProgramResult {
  std::string text;
  int exit_code = 0;
};

// `words` are the command line without the program's name. Throws what the verb throws.
ProgramResult run_program(std::span<const std::string> words, const Environment& environment);

// An error as text for people: error, at, try; one line each.
std::string error_text(const Error& error, bool color);
// {"schema_version":1,"error":{...}}
std::string error_json(const Error& error);

// The same as a line of --log-format json.
std::string error_log_line(const Error& error);

// How errors are shown is decided before the command line is understood.
struct ErrorStyle {
  bool json = false;
  bool color = false;
  bool log_json = false;
};
ErrorStyle error_style(std::span<const std::string> words, const Environment& environment,
                       bool terminal);

}  // namespace trainscope
