// import: a profile that PyTorch or ONNX Runtime recorded becomes the folder of a run.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/source.h"
#include "engine/bundle/writer.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "profiler/import/imported_profile.h"

namespace trainscope {
namespace {

using profiler::ImportedProfile;

constexpr std::size_t kShownRest = 10;
constexpr std::size_t kChunkEvents = 16'384;

constexpr Flag kImportFlags[] = {
    {.name = "out",
     .value = "RUN",
     .help = "The folder that becomes a run; it must be absent or empty",
     .letter = 'o'},
    {.name = "model",
     .value = "MODEL.onnx",
     .help = "The model that was profiled: time counts as attributed where it is tied to one of "
             "its nodes; without it, where the op is known"},
};

std::set<std::string, std::less<>> node_names(const std::string& path) {
  std::set<std::string, std::less<>> names;
  const Graph graph = import_graph(OnnxModel::read(path), {});
  for (NodeId id = graph.first(); id != kNoNode; id = graph.node(id).next) {
    for (const std::string& source : graph.node(id).provenance.sources) names.insert(source);
  }
  return names;
}

ImportedProfile read_profile(const std::string& path, const profiler::ImportOptions& options) {
  SharedBytes file(MappedFile::open(path));
  try {
    return import_profile(profiler::byte_source(std::move(file)), options);
  } catch (Error& error) {
    error.at("'" + printable(path) + "'");
    throw;
  }
}

void write_events(const ImportedProfile& profile, const FolderEntry& entry) {
  AppendFile file(entry);
  profiler::EventWriter writer(profile.facts, [&file](std::span<const std::byte> bytes) {
    file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  });
  const std::span<const profiler::Event> events(profile.events);
  for (std::size_t i = 0; i < events.size(); i += kChunkEvents) {
    writer.add(events.subspan(i, std::min(kChunkEvents, events.size() - i)), 0);
  }
  file.sync();
}

// What other verbs want of a run and a trace does not have is absent: they say so.
void write_run(const ImportedProfile& profile, const Invocation& invocation) {
  const std::string& source = invocation.argument(0);
  RunSession session{.command = invocation.words(),
                     .program_version = TRAINSCOPE_VERSION,
                     .device = "imported",
                     .threads = profile.facts.threads};
  Json data =
      Json::object({{"kind", "imported"}, {"tool", profile.tool}, {"file", printable(source)}});
  if (!profile.threads.empty()) data.set("threads", Json::list(profile.threads));
  RunManifest manifest{.data = std::move(data), .sessions = {std::move(session)}};
  RunWriter writer = RunWriter::create(invocation.settings().text("out"), std::move(manifest));
  writer.write_plan(profile.plan);
  write_events(profile, writer.events_file());
  writer.finish(RunStatus::kFinished, 0);
}

double share_of(std::int64_t part, std::int64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
}

Json facts_of(const ImportedProfile& profile, const std::string& out) {
  Json rest = Json::array();
  for (const profiler::Unattributed& row : profile.rest) {
    rest.push_back(Json::object({{"name", row.name}, {"ns", row.ns}}));
  }
  return Json::object({{"run", out},
                       {"tool", profile.tool},
                       {"steps", Json::list(profile.steps)},
                       {"step_ns", profile.step_ns},
                       {"op_ns", profile.op_ns},
                       {"attributed_ns", profile.attributed_ns},
                       {"attributed", share_of(profile.attributed_ns, profile.op_ns)},
                       {"device_ns", profile.work_ns},
                       {"device_attributed_ns", profile.attributed_work_ns},
                       {"not_attributed", std::move(rest)}});
}

std::string text_of(const ImportedProfile& profile, const std::string& out, bool by_node) {
  std::string text = fmt::format(
      "{}: {} steps of {}, {:.3f} ms in all; {:.3f} ms of them in ops, {:.2f}% attributed to {}\n",
      printable(out), profile.steps.size(), profile.tool,
      static_cast<double>(profile.step_ns) / 1e6, static_cast<double>(profile.op_ns) / 1e6,
      100.0 * share_of(profile.attributed_ns, profile.op_ns),
      by_node ? "nodes of the model" : "ONNX ops");
  if (profile.work_ns > 0) {
    text += fmt::format("{:>12.4f} ms  of devices, {:.2f}% launched by these ops\n",
                        static_cast<double>(profile.work_ns) / 1e6,
                        100.0 * share_of(profile.attributed_work_ns, profile.work_ns));
  }
  for (std::size_t i = 0; i < std::min(kShownRest, profile.rest.size()); ++i) {
    text += fmt::format("{:>12.4f} ms  {}\n", static_cast<double>(profile.rest[i].ns) / 1e6,
                        printable(profile.rest[i].name));
  }
  if (profile.rest.size() > kShownRest) {
    text += fmt::format("{:>15}  and {} more names, see --json\n", "",
                        profile.rest.size() - kShownRest);
  }
  return text;
}

Outcome run_import(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  require(settings.has("out"), ErrorCode::kUsage, "import needs -o RUN");
  profiler::ImportOptions options;
  const bool by_node = settings.has("model");
  if (by_node) options.nodes = node_names(settings.text("model"));
  const ImportedProfile profile = read_profile(invocation.argument(0), options);
  write_run(profile, invocation);
  const std::string& out = settings.text("out");
  return {.facts = facts_of(profile, out), .text = text_of(profile, out, by_node)};
}

}  // namespace

Command import_command() {
  return {
      .name = "import",
      .summary =
          "Make a run of a profile that PyTorch or ONNX Runtime recorded, to query and compare.",
      .arguments = {{.name = "TRACE",
                     .help = "what torch.profiler's export_chrome_trace or ONNX Runtime's "
                             "enable_profiling wrote, .json or .json.gz"}},
      .flags = join_flags({kImportFlags}),
      .examples = {"trainscope import trace.json.gz -o runs/pytorch",
                   "trainscope import onnxruntime_profile.json --model model.onnx -o runs/ort"},
      .run = run_import};
}

}  // namespace trainscope
