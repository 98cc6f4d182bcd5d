// One call of a verb: its settings and what goes with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/flags/settings.h"
#include "engine/core/log.h"

namespace trainscope {

class Invocation {
 public:
  // `words` are the whole command line without the program's name.
  Invocation(const Command& command, Settings settings, std::vector<std::string> arguments,
             std::vector<std::string> words);

  // The same call with the options of a run where it has none of its own.
  Invocation with_run(const Json& options) const {
    return Invocation(command_, settings_.with_run(options), arguments_, words_);
  }

  // ... with these flags in place of its own.
  Invocation with_flags(std::span<const GivenFlag> given) const {
    return Invocation(command_, settings_.with_flags(given), arguments_, words_);
  }

  // ... with another word for its first argument.
  Invocation with_argument(std::string first) const;

  const Command& command() const { return command_; }
  const Settings& settings() const { return settings_; }
  // The word that belongs to Command::arguments[i]; "" for an optional one that was left out.
  const std::string& argument(std::size_t i) const;
  const std::vector<std::string>& arguments() const { return arguments_; }

  const std::vector<std::string>& words() const { return words_; }

  bool json() const { return settings_.on("json"); }
  std::uint64_t seed() const { return static_cast<std::uint64_t>(settings_.integer("seed")); }
  int threads() const;  // --threads, or the cores this process may use
  // For people, on standard error; -q, -v and --log-level decide how much.
  Logger& log() const { return log_; }

 private:
  const Command& command_;
  Settings settings_;
  std::vector<std::string> arguments_;
  std::vector<std::string> words_;
  mutable Logger log_;
};

// -q, -v, --log-level and --log-format. Throws kUsage when they contradict each other.
LogLevel log_level(const Settings& settings);
LogOptions log_options(const Settings& settings);

// Throws kNoDevice or kUsage unless --device names a device that is there.
void check_device(const Settings& settings);

}  // namespace trainscope
