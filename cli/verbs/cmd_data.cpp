// data: lists, fetches and makes data sets.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/data/data_folder.h"
#include "cli/flags/invocation.h"
#include "datasets/catalog.h"
#include "datasets/fetch.h"
#include "datasets/make/make.h"
#include "datasets/sha256.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

constexpr Flag kDataFlags[] = {
    {.name = "dir",
     .value = "DIR",
     .help = "list, get: folder of all sets; default TRAINSCOPE_DATA_DIR, else trainscope/data in "
             "the user's cache. make: where the files go"},
    {.name = "from-dir",
     .value = "DIR",
     .help = "get: copy the files from there and use no network"},
    {.name = "url",
     .type = FlagType::kTexts,
     .value = "URL",
     .help = "get: address below which the files are, in place of the set's own"},
    {.name = "timeout",
     .type = FlagType::kInteger,
     .value = "SECONDS",
     .fallback = "30",
     .help = "get: give a server up that sends nothing for so long",
     .minimum = 1,
     .maximum = 86400},
    {.name = "examples",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "make: how many images, lines, tokens or rows",
     .minimum = 1,
     .maximum = 1 << 24},
    {.name = "vocab",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "make tokens, make bpe: size of the vocabulary",
     .minimum = 2,
     .maximum = 1 << 16},
};

fs::path folder_of(const Settings& settings) {
  return settings.has("dir") ? fs::path(settings.text("dir")) : data_folder();
}

// "absent", "present", "damaged".
std::string_view state_of(const CatalogFile& file, const fs::path& path) {
  if (!path_exists(path)) return "absent";
  return sha256_of_file(path) == file.sha256 ? "present" : "damaged";
}

Json list_file(const CatalogFile& file, const fs::path& path, std::string& text) {
  const std::string_view state = state_of(file, path);
  text += fmt::format("  {:<28}{:>10}  {}  {}\n", file.name, human_bytes(file.size_bytes),
                      file.sha256, state);
  return Json::object({{"name", file.name},
                       {"part", file.part},
                       {"size_bytes", file.size_bytes},
                       {"sha256", file.sha256},
                       {"urls", Json::list(file.urls)},
                       {"path", path.string()},
                       {"state", state}});
}

Outcome list_sets(const Invocation& invocation) {
  const fs::path folder = folder_of(invocation.settings());
  Outcome outcome;
  Json sets = Json::array();
  for (const CatalogSet& set : catalog()) {
    outcome.text += fmt::format("{}: {}\n  licence: {}\n  use: --data catalog:{}\n", set.name,
                                set.about, set.licence, set.name);
    Json files = Json::array();
    std::uint64_t size_bytes = 0;
    for (const CatalogFile& file : set.files) {
      files.push_back(list_file(file, set_folder(folder, set) / file.name, outcome.text));
      size_bytes += file.size_bytes;
    }
    sets.push_back(Json::object({{"name", set.name},
                                 {"kind", set.format},
                                 {"about", set.about},
                                 {"licence", set.licence},
                                 {"size_bytes", size_bytes},
                                 {"files", std::move(files)}}));
  }
  outcome.text += fmt::format("folder: {}\n", printable(folder.string(), 400));
  outcome.facts.set("folder", folder.string());
  outcome.facts.set("sets", std::move(sets));
  return outcome;
}

Outcome get_set(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const CatalogSet& set = find_set(invocation.argument(1));
  require(!settings.has("url") || !settings.has("from-dir"), ErrorCode::kUsage,
          "--url and --from-dir: which of them?");
  const fs::path folder = set_folder(folder_of(settings), set);
  const FetchOptions options{
      .base_urls = settings.texts("url"),
      .from_folder = settings.text_or_empty("from-dir"),
      .stall_seconds = settings.integer("timeout"),
      .report = [&](const std::string& line) { invocation.log().info("{}", line); }};
  Outcome outcome;
  Json files = Json::array();
  for (const CatalogFile& file : set.files) {
    const std::string_view what = name_of(fetch_file(file, folder, options));
    const std::string path = (folder / file.name).string();
    outcome.text += fmt::format("{:<8} {}\n", what, printable(path, 400));
    files.push_back(Json::object({{"path", path}, {"outcome", what}}));
  }
  outcome.text += fmt::format("use it:  --data catalog:{}\n", set.name);
  outcome.facts = Json::object({{"name", set.name},
                                {"licence", set.licence},
                                {"folder", folder.string()},
                                {"files", std::move(files)},
                                {"source", fmt::format("catalog:{}", set.name)}});
  return outcome;
}

Outcome make_set(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const std::string& kind = invocation.argument(1);
  require(settings.has("dir"), ErrorCode::kUsage, "data make needs --dir DIR");
  const MadeData made = make_data(kind, {.folder = settings.text("dir"),
                                         .examples = settings.find_integer("examples").value_or(0),
                                         .vocabulary = settings.find_integer("vocab").value_or(0),
                                         .seed = invocation.seed()});
  Outcome outcome;
  Json files = Json::array();
  for (const fs::path& file : made.files) {
    outcome.text += fmt::format("made     {}\n", printable(file.string(), 400));
    files.push_back(file.string());
  }
  outcome.text += fmt::format("use it:  --data {}\n", printable(made.source, 2000));
  outcome.facts =
      Json::object({{"kind", kind}, {"files", std::move(files)}, {"source", made.source}});
  return outcome;
}

struct Action {
  std::string_view name;
  bool takes_name;
  std::string_view flags;  // those that mean something to it, each between blanks
  Outcome (*run)(const Invocation&);
};

constexpr Action kActions[] = {
    {"list", false, " dir ", list_sets},
    {"get", true, " dir from-dir url timeout ", get_set},
    {"make", true, " dir examples vocab ", make_set},
};

// A flag that would do nothing is a mistake.
void check_call(const Action& action, const Invocation& invocation) {
  const std::string& name = invocation.argument(1);
  require(name.empty() || action.takes_name, ErrorCode::kUsage,
          "data {} takes no further argument: '{}'", action.name, printable(name));
  require(!name.empty() || !action.takes_name, ErrorCode::kUsage, "data {} needs {}", action.name,
          action.name == "get" ? "the NAME of a set" : "a KIND");
  for (const Flag& flag : kDataFlags) {
    const bool takes = action.flags.find(fmt::format(" {} ", flag.name)) != std::string_view::npos;
    require(takes || !invocation.settings().given(flag.name), ErrorCode::kUsage,
            "--{} means nothing with data {}", flag.name, action.name);
  }
}

Outcome run_data(const Invocation& invocation) {
  const std::string& wanted = invocation.argument(0);
  std::vector<std::string_view> names;
  for (const Action& action : kActions) {
    names.push_back(action.name);
    if (action.name != wanted) continue;
    check_call(action, invocation);
    return action.run(invocation);
  }
  throw Error(ErrorCode::kUsage, fmt::format("data cannot '{}'", printable(wanted)))
      .hint(nearest_hint(wanted, names))
      .hint("it can list, get NAME and make KIND");
}

}  // namespace

Command data_command() {
  return {
      .name = "data",
      .summary = "List and fetch public data sets, or make synthetic ones.",
      .arguments = {{.name = "list|get|make", .help = "what to do"},
                    {.name = "NAME|KIND",
                     .help = "get: tinyshakespeare, mnist; make: mnist, text, bpe, tokens, csv, "
                             "tensors",
                     .required = false}},
      .flags = join_flags({kDataFlags}),
      .examples = {"trainscope data get mnist", "trainscope data make mnist --dir digits"},
      .run = run_data};
}

}  // namespace trainscope
