// Malformed configuration files: each with its message, all with exit code 2.
#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

using std::string_literals::operator""s;  // for texts with a NUL in them

struct BadConfig {
  std::string text;
  std::string error;  // what follows "error: "
};

void check_refused(const TemporaryFolder& folder, const BadConfig& bad) {
  std::ofstream(folder / "c.toml", std::ios::binary) << bad.text;
  const Finished finished = run({"config", "validate", "c.toml"}, {}, folder.path());
  INFO(bad.text.substr(0, 200));
  CHECK(finished.exit_code == 2);
  CHECK(finished.err == "error: " + bad.error + "\n");
  CHECK(finished.out.empty());
}

std::string repeated(std::string_view piece, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

TEST_CASE("bad configuration files: exit code 2, with line and column") {
  const TemporaryFolder folder;
  const std::vector<BadConfig> cases = {
      {"stepz = 1\n", "c.toml:1:1: there is no key 'stepz'\n  try: did you mean 'steps'?"},
      {"learn-rate = 1\n", "c.toml:1:1: there is no key 'learn-rate'\n  try: did you mean 'lr'?"},
      {"something_else = 1\n",
       "c.toml:1:1: there is no key 'something_else'\n  try: `trainscope config schema` lists the "
       "keys"},
      {"run_dir = \"x\"\n",
       "c.toml:1:1: there is no key 'run_dir'\n  try: did you mean 'run-dir'?"},
      {"Steps = 1\n", "c.toml:1:1: there is no key 'Steps'\n  try: did you mean 'steps'?"},
      {"\"\" = 1\n",
       "c.toml:1:1: there is no key ''\n  try: `trainscope config schema` lists the keys"},
      {"\"a b\" = 1\n",
       "c.toml:1:1: there is no key 'a b'\n  try: `trainscope config schema` lists the keys"},
      {"\"\\u001b[31m\" = 1\n",
       "c.toml:1:1: there is no key '\\x1b[31m'\n  try: `trainscope config schema` lists the keys"},
      {"completely-else = true\n",
       "c.toml:1:1: there is no key 'completely-else'\n  try: `trainscope config schema` lists the "
       "keys"},
      {"no-bias = true\n",
       "c.toml:1:1: there is no key 'no-bias'\n  try: `trainscope config schema` lists the keys"},
      {"capacity = 4\n",
       "c.toml:1:1: there is no key 'capacity' at the top level\n  try: it is a flag of place: put "
       "it under [place]"},
      {"config = \"other.toml\"\n",
       "c.toml:1:1: 'config' cannot stand in a configuration file\n  try: give --config on the "
       "command line"},
      {"set = \"a=b\"\n",
       "c.toml:1:1: 'set' cannot stand in a configuration file\n  try: give --set on the command "
       "line"},
      {"json = true\n",
       "c.toml:1:1: 'json' cannot stand in a configuration file\n  try: give --json on the command "
       "line"},
      {"color = \"always\"\n",
       "c.toml:1:1: 'color' cannot stand in a configuration file\n  try: give --color on the "
       "command line"},
      {"dry-run = true\n",
       "c.toml:1:1: 'dry-run' cannot stand in a configuration file\n  try: give --dry-run on the "
       "command line"},
      {"[trian]\nlr = 1\n",
       "c.toml:1:2: there is no verb 'trian' for this table\n  try: did you mean 'train'?"},
      {"[train]\nlr = 1\n[train]\nclip = 1\n",
       "c.toml:3:1: Error while parsing table header: cannot redefine existing table 'train'"},
      {"[train.deeper]\nlr = 1\n",
       "c.toml:1:8: train has no flag 'deeper'\n  try: `trainscope config schema` lists the keys"},
      {"train.deeper.lr = 1\n",
       "c.toml:1:7: train has no flag 'deeper'\n  try: `trainscope config schema` lists the keys"},
      {"[[train]]\nlr = 1\n",
       "c.toml:1:1: train holds something else than strings: expected a string or an array of "
       "strings"},
      {"train = 1\n",
       "c.toml:1:9: train is a whole number: expected a string or an array of strings"},
      {"[kernels]\nlr = 1\n", "c.toml:1:2: kernels is a table: expected a value"},
      {"[lr]\n", "c.toml:1:2: lr is a table: expected a value"},
      {"[plan]\nsteps = 3\n",
       "c.toml:2:1: plan has no flag 'steps'\n  try: `trainscope config schema` lists the keys"},
      {"[doctor]\nlr = 1\n",
       "c.toml:2:1: doctor has no flag 'lr'\n  try: `trainscope config schema` lists the keys"},
      {"[export]\nstag = \"x\"\n",
       "c.toml:2:1: export has no flag 'stag'\n  try: did you mean 'stage'?"},
      {"[train]\nmodell = \"x\"\n",
       "c.toml:2:1: train has no flag 'modell'\n  try: did you mean 'model'?"},
      {"[doctor]\nmodel = \"x\"\n",
       "c.toml:2:1: doctor has no flag 'model'\n  try: `trainscope config schema` lists the keys"},
      {"model = 3\n", "c.toml:1:9: model is a whole number: expected a string"},
      {"model = \"\"\n", "c.toml:1:9: model is empty"},
      {"[place]\ncapacity = \"all\"\n",
       "c.toml:2:12: capacity is a string: expected a whole number of 0 or more"},
      {"[config]\norigin = 1\n", "c.toml:2:10: origin is a whole number: expected true or false"},
      {"[train]\norigin = true\n",
       "c.toml:2:1: train has no flag 'origin'\n  try: `trainscope config schema` lists the keys"},
      {"steps = \"10\"\n", "c.toml:1:9: steps is a string: expected a whole number of 1 or more"},
      {"steps = 1.5\n",
       "c.toml:1:9: steps is a number with a fraction: expected a whole number of 1 or more"},
      {"steps = 10.0\n",
       "c.toml:1:9: steps is a number with a fraction: expected a whole number of 1 or more"},
      {"steps = true\n", "c.toml:1:9: steps is a boolean: expected a whole number of 1 or more"},
      {"steps = [10]\n", "c.toml:1:9: steps is an array: expected a whole number of 1 or more"},
      {"steps = {a = 1}\n", "c.toml:1:1: steps is a table: expected a value"},
      {"steps = 2026-11-21\n",
       "c.toml:1:9: steps is a date or time: expected a whole number of 1 or more"},
      {"steps = 07:30:00\n",
       "c.toml:1:9: steps is a date or time: expected a whole number of 1 or more"},
      {"lr = \"1e-3\"\n", "c.toml:1:6: lr is a string: expected a number of 0 or more"},
      {"lr = true\n", "c.toml:1:6: lr is a boolean: expected a number of 0 or more"},
      {"lr = [1e-3]\n", "c.toml:1:6: lr is an array: expected a number of 0 or more"},
      {"kernels = 1\n",
       "c.toml:1:11: kernels is a whole number: expected a string: fastest, direct, reference"},
      {"kernels = [\"fastest\"]\n",
       "c.toml:1:11: kernels is an array: expected a string: fastest, direct, reference"},
      {"data = 3\n", "c.toml:1:8: data is a whole number: expected a string"},
      {"data = [\"synthetic\"]\n", "c.toml:1:8: data is an array: expected a string"},
      {"betas = [0.9, 0.95]\n", "c.toml:1:9: betas is an array: expected a string"},
      {"quiet = 1\n", "c.toml:1:9: quiet is a whole number: expected true or false"},
      {"quiet = \"true\"\n", "c.toml:1:9: quiet is a string: expected true or false"},
      {"quiet = \"on\"\n", "c.toml:1:9: quiet is a string: expected true or false"},
      {"group = 1\n",
       "c.toml:1:9: group is a whole number: expected a string or an array of strings"},
      {"group = [1]\n",
       "c.toml:1:9: group holds something else than strings: expected a string or an array of "
       "strings"},
      {"group = [[\"a\"]]\n",
       "c.toml:1:9: group holds something else than strings: expected a string or an array of "
       "strings"},
      {"group = [{a = 1}]\n",
       "c.toml:1:9: group holds something else than strings: expected a string or an array of "
       "strings"},
      {"train = [\"*\"]\n[plan]\ntrain = 1\n",
       "c.toml:3:9: train is a whole number: expected a string or an array of strings"},
      {"freeze = [true]\n",
       "c.toml:1:10: freeze holds something else than strings: expected a string or an array of "
       "strings"},
      {"steps = 0\n", "c.toml:1:9: steps is '0': expected a whole number of 1 or more"},
      {"steps = -1\n", "c.toml:1:9: steps is '-1': expected a whole number of 1 or more"},
      {"steps = 9223372036854775808\n",
       "c.toml:1:28: Error while parsing decimal integer: '9223372036854775808' is not "
       "representable in 64 bits"},
      {"steps = 99999999999999999999999\n",
       "c.toml:1:32: Error while parsing decimal integer: '99999999999999999999999' is not "
       "representable in 64 bits"},
      {"steps = 0x8000000000000000\n",
       "c.toml:1:27: Error while parsing hexadecimal integer: '0x8000000000000000' is not "
       "representable in 64 bits"},
      {"lr = -1\n", "c.toml:1:6: lr is '-1': expected a number of 0 or more"},
      {"lr = inf\n", "c.toml:1:6: lr is 'inf': expected a number of 0 or more"},
      {"lr = nan\n", "c.toml:1:6: lr is 'nan': expected a number of 0 or more"},
      {"lr = -0.5e-3\n", "c.toml:1:6: lr is '-0.0005': expected a number of 0 or more"},
      {"lr = 1e999\n",
       "c.toml:1:11: Error while parsing floating-point: '1e999' could not be interpreted as a "
       "value"},
      {"momentum = 1.5\n", "c.toml:1:12: momentum is '1.5': expected a number from 0 to 1"},
      {"threads = 0\n", "c.toml:1:11: threads is '0': expected a whole number from 1 to 1024"},
      {"threads = 5000\n",
       "c.toml:1:11: threads is '5000': expected a whole number from 1 to 1024"},
      {"seed = -1\n", "c.toml:1:8: seed is '-1': expected a whole number of 0 or more"},
      {"accumulate = 0\n",
       "c.toml:1:14: accumulate is '0': expected a whole number from 1 to 1048576"},
      {"keep = 0\n", "c.toml:1:8: keep is '0': expected a whole number from 1 to 1048576"},
      {"kernels = \"fast est\"\n",
       "c.toml:1:11: kernels is 'fast est': expected fastest, direct, reference\n  try: did you "
       "mean "
       "'fastest'?"},
      {"kernels = \"referenc\"\n",
       "c.toml:1:11: kernels is 'referenc': expected fastest, direct, reference\n  try: did you "
       "mean "
       "'reference'?"},
      {"log-level = \"loud\"\n",
       "c.toml:1:13: log-level is 'loud': expected debug, info, warning, error"},
      {"progress = \"\"\n", "c.toml:1:12: progress is '': expected auto, plain, none"},
      {"data = \"\"\n", "c.toml:1:8: data is empty"},
      {"group = \"\"\n", "c.toml:1:9: group is empty"},
      {"group = [\"a:lr_scale=1\", \"\"]\n", "c.toml:1:9: group is empty"},
      {"device = \"\"\n", "c.toml:1:10: device is empty"},
      {"steps\n", "c.toml:1:6: Error while parsing key-value pair: expected '=', saw '\\n'"},
      {"steps =\n", "c.toml:1:8: Error while parsing key-value pair: expected value, saw '\\n'"},
      {"= 1\n",
       "c.toml:1:1: Error while parsing root table: expected keys, tables, whitespace or comments, "
       "saw '='"},
      {"steps = 1 2\n",
       "c.toml:1:11: Error while parsing key-value pair: expected a comment or whitespace, saw "
       "'2'"},
      {"steps == 1\n", "c.toml:1:8: Error while parsing value: could not determine value type"},
      {"steps: 1\n", "c.toml:1:6: Error while parsing key-value pair: expected '=', saw ':'"},
      {"{\"steps\": 1}\n",
       "c.toml:1:1: Error while parsing root table: expected keys, tables, whitespace or comments, "
       "saw '{'"},
      {"<xml/>\n",
       "c.toml:1:1: Error while parsing root table: expected keys, tables, whitespace or comments, "
       "saw '<'"},
      {"[train\nlr = 1\n", "c.toml:1:7: Error while parsing table header: expected ']', saw '\\n'"},
      {"[]\n",
       "c.toml:1:2: Error while parsing table header: tables with blank bare keys are explicitly "
       "prohibited"},
      {"[train]]\n",
       "c.toml:1:8: Error while parsing table header: expected a comment or whitespace, saw ']'"},
      {"lr = 1e\n",
       "c.toml:1:8: Error while parsing floating-point: expected decimal digit, saw '\\n'"},
      {"lr = .5\n",
       "c.toml:1:6: Error while parsing floating-point: expected decimal digit, saw '.'"},
      {"lr = 5.\n",
       "c.toml:1:8: Error while parsing floating-point: expected decimal digit, saw '\\n'"},
      {"lr = 1_\n",
       "c.toml:1:7: Error while parsing key-value pair: expected a comment or whitespace, saw '_'"},
      {"lr = 01\n",
       "c.toml:1:8: Error while parsing decimal integer: leading zeroes are prohibited"},
      {"lr = 1,5\n",
       "c.toml:1:7: Error while parsing key-value pair: expected a comment or whitespace, saw ','"},
      {"data = synthetic\n",
       "c.toml:1:8: Error while parsing value: could not determine value type"},
      {"data = \"synthetic\n",
       "c.toml:1:18: Error while parsing string: unescaped control characters other than TAB "
       "(U+0009) are explicitly prohibited"},
      {"data = 'synthetic\n",
       "c.toml:1:18: Error while parsing literal string: control characters other than TAB "
       "(U+0009) are explicitly prohibited"},
      {"data = \"\"\"x\n", "c.toml:1:13: Error while parsing string: encountered end-of-file"},
      {"data = \"\\q\"\n",
       "c.toml:1:10: Error while parsing string: unknown escape sequence '\\q'"},
      {"data = \"\\ud800\"\n",
       "c.toml:1:15: Error while parsing unicode scalar sequence: unicode surrogates (U+D800 - "
       "U+DFFF) are explicitly prohibited"},
      {"data = \"\\U00110000\"\n",
       "c.toml:1:19: Error while parsing unicode scalar sequence: values greater than U+10FFFF are "
       "invalid"},
      {"group = [\"a\" \"b\"]\n",
       "c.toml:1:14: Error while parsing array: expected comma or closing ']', saw '\"'"},
      {"group = [\"a\",\n", "c.toml:1:15: Error while parsing array: encountered end-of-file"},
      {"quiet = TRUE\n", "c.toml:1:9: Error while parsing boolean: expected 'true', saw 'T'"},
      {"quiet = yes\n", "c.toml:1:9: Error while parsing value: could not determine value type"},
      {"steps = 1; lr = 2\n",
       "c.toml:1:10: Error while parsing decimal integer: expected digit, saw ';'"},
      {"lr = 1 lr = 2\n",
       "c.toml:1:8: Error while parsing key-value pair: expected a comment or whitespace, saw 'l'"},
      {"data = \"a\tb\x01\"\n",
       "c.toml:1:12: Error while parsing string: unescaped control characters other than TAB "
       "(U+0009) are explicitly prohibited"},
      {"steps = +\n", "c.toml:1:9: Error while parsing value: could not determine value type"},
      {"!steps = 1\n",
       "c.toml:1:1: Error while parsing root table: expected keys, tables, whitespace or comments, "
       "saw '!'"},
      {"day = 2026-13-01\n",
       "c.toml:1:14: Error while parsing date: expected month between 1 and 12 (inclusive), saw "
       "13"},
      {"steps = 1\nsteps = 2\n",
       "c.toml:2:9: Error while parsing key-value pair: cannot redefine existing integer 'steps'"},
      {"train.lr = 1\n[train]\nlr = 2\n",
       "c.toml:2:1: Error while parsing table header: cannot redefine existing table 'train'"},
      {"data = \"x\"\n[data]\n",
       "c.toml:2:1: Error while parsing table header: cannot redefine existing string 'data' as "
       "table"},
      {"export = \"x\"\n[export]\nformat = \"csv\"\n",
       "c.toml:2:1: Error while parsing table header: cannot redefine existing string 'export' as "
       "table"},
      {"group = {a = 1, a = 2}\n",
       "c.toml:1:21: Error while parsing key-value pair: cannot redefine existing integer 'a'"},
      {"\xff\xfes\x00t\x00"s, "c.toml:1:1: Encountered invalid utf-8 sequence"},
      {"data = \"\xff\"\n", "c.toml:1:8: Encountered invalid utf-8 sequence"},
      {"\xc3( = 1\n", "c.toml:1:1: Encountered invalid utf-8 sequence"},
      {"data = \"\xed\xa0\x80\"\n", "c.toml:1:8: Encountered invalid utf-8 sequence"},
      {"data = \"a\x00"
       "b\"\n"s,
       "c.toml:1:10: Error while parsing string: unescaped control characters other than TAB "
       "(U+0009) are explicitly prohibited"},
      {"\x00"s,
       "c.toml:1:1: Error while parsing root table: expected keys, tables, whitespace or comments, "
       "saw '\\u0000'"},
      {"\x7f"
       "ELF\x02\x01\x01",
       "c.toml:1:1: Error while parsing root table: expected keys, tables, whitespace or comments, "
       "saw '\\u007F'"},
      {"\x1f\x8b\x08\x00"s, "c.toml:1:1: Encountered invalid utf-8 sequence"},
      {"steps = 1\x0d",
       "c.toml:1:11: Error while parsing key-value pair: expected '\\n' after '\\r', saw EOF"},
      {"\xf0\x9f\x92\xa9 = 1\n",
       "c.toml:1:1: Error while parsing root table: expected keys, tables, whitespace or comments, "
       "saw '\xf0\x9f\x92\xa9'"},
  };
  CHECK(cases.size() == 132);
  for (const BadConfig& bad : cases) check_refused(folder, bad);
}

TEST_CASE("bad configuration files: deep and large ones") {
  const TemporaryFolder folder;
  const std::vector<BadConfig> cases = {
      {"group = " + repeated("[", 100'000), "c.toml:1:25: nested too deeply"},
      {"group = " + repeated("{a=", 100'000), "c.toml:1:57: nested too deeply"},
      {repeated("a.", 100'000) + "a = 1\n", "c.toml:1:34: nested too deeply"},
      {"[" + repeated("a.", 100'000) + "a]\n", "c.toml:1:35: nested too deeply"},
      {"[[" + repeated("a.", 100'000) + "a]]\n", "c.toml:1:36: nested too deeply"},
      {"group = " + repeated("[", 17) + repeated("]", 17), "c.toml:1:25: nested too deeply"},
      {"lr = 1\n" + repeated("#", 3 << 20),
       "'c.toml' has 3 MiB, more than the allowed 1 MiB\n"
       "  try: a configuration has at most 1 MiB"},
  };
  for (const BadConfig& bad : cases) check_refused(folder, bad);
}

TEST_CASE("bad configuration files: the verb that is given one does not start") {
  const TemporaryFolder folder;
  std::ofstream(folder / "c.toml") << "stepz = 1\n";
  const Finished finished = run({"train", test_model("mlp/model.onnx").string(), "--data",
                                 "synthetic", "--steps", "1", "--config", "c.toml"},
                                {}, folder.path());
  CHECK(finished.exit_code == 2);
  CHECK(finished.err ==
        "error: c.toml:1:1: there is no key 'stepz'\n  try: did you mean 'steps'?\n");
  CHECK(!std::filesystem::exists(folder / "runs"));
}

TEST_CASE("configuration files that cannot be read: exit code 6") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "folder");
  CHECK(run({"config", "validate", "nowhere.toml"}, {}, folder.path()).exit_code == 6);
  CHECK(run({"config", "validate", "folder"}, {}, folder.path()).exit_code == 6);
  CHECK(run({"config", "validate", "/dev/null"}, {}, folder.path()).exit_code == 6);
  CHECK(run({"doctor", "--config", "nowhere.toml"}, {}, folder.path()).exit_code == 6);
}

}  // namespace
}  // namespace trainscope::test
