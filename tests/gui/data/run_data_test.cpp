// Runs, models and what is neither, as the window reads them; nothing throws.
#include "gui/data/run_data.h"

#include <doctest/doctest.h>

#include <fstream>
#include <utility>

#include "engine/core/file.h"
#include "gui/data/truncated_files.h"
#include "tests/gui/made_run.h"

namespace trainscope::gui {
namespace {

namespace fs = std::filesystem;
using test::compiled;
using test::MadeRun;

std::string bytes_of(const fs::path& path) { return read_file(path, std::uint64_t{1} << 30); }

// Reads every row.
std::int64_t bytes_in_rows(const PlanView& plan) {
  std::int64_t bytes = 0;
  for (const PlanBuffer& buffer : plan.buffers) bytes += buffer.bytes;
  for (const PlanValue& value : plan.values) bytes += value.bytes;
  for (const PlanCall& call : plan.calls) bytes += call.bytes_read + call.bytes_written;
  return bytes;
}

TEST_CASE("run_data: a run has its manifest, metrics, stages, plan, profile and times") {
  const MadeRun made("whole", *compiled("mlp"));
  const auto run = RunData::open(made.folder());
  CHECK(run->kind() == SourceKind::kRun);
  CHECK(run->message(Topic::kSource).empty());
  REQUIRE(run->manifest() != nullptr);
  CHECK(run->session() == 1);
  CHECK(run->metrics().steps.size() == 5);
  CHECK(run->stages().size() > 10);
  CHECK(run->stages().front().label == "00-imported");
  CHECK(run->stages().back().record.seconds_after > 0.0);
  CHECK(run->stages().back().record.live_bytes_after > 0);
  REQUIRE(run->plan() != nullptr);
  REQUIRE(run->times() != nullptr);
  CHECK(run->times()->steps.size() == 3);
  CHECK(run->machine() == nullptr);
  CHECK(!run->message(Topic::kMachine).command.empty());
}

TEST_CASE("run_data: stages are graphs with differences and fates") {
  const MadeRun made("stages", *compiled("gpt2", test::kSmallText));
  const auto run = RunData::open(made.folder());
  const std::size_t last = run->stages().size() - 1;
  const Graph* graph = run->graph(last);
  REQUIRE(graph != nullptr);
  CHECK(static_cast<std::int64_t>(graph->node_count()) == run->stages()[last].record.nodes_after);
  const StageDiff* diff = run->diff(last, 0);
  REQUIRE(diff != nullptr);
  CHECK(diff->nodes.at("added") > 0);
  CHECK(run->diff(0, last) == diff);
  const Graph* imported = run->graph(0);
  REQUIRE(imported != nullptr);
  const Node& first = imported->node(imported->first());
  const Fate* fate = run->node_fate(first.name);
  REQUIRE(fate != nullptr);
  CHECK(run->node_fate(static_cast<std::uint32_t>(first.serial)) == fate);
  CHECK(run->node_fate("no such node") == nullptr);
  CHECK(run->node_fate(0U) == nullptr);
  CHECK(run->graph(1000) == nullptr);
}

TEST_CASE("run_data: an older session has its own plan, stages, profile and device") {
  MadeRun made("sessions", *compiled("mlp"), 0);
  const auto deep = compiled("lenet");
  made.resume(*deep, 3, "Some GPU");
  made.resume(*compiled("mlp"), 0, "");
  const auto run = RunData::open(made.folder());
  REQUIRE(run->session_count() == 3);
  CHECK(run->session() == 3);
  CHECK(run->session_flag().empty());
  CHECK(run->events() == nullptr);
  CHECK(run->message(Topic::kProfile).command.find("--profile") != std::string::npos);
  const std::size_t calls = run->plan()->calls.size();
  const std::uint64_t version = run->version();
  const std::uint64_t reading = run->reading();
  run->show_session(2);
  CHECK(run->version() > version);
  CHECK(run->reading() == reading);
  CHECK(run->session_flag() == " --session 2");
  CHECK(run->session_record()->device_name == "Some GPU");
  CHECK(run->plan()->calls.size() == deep->program.calls.size());
  CHECK(run->plan()->calls.size() != calls);
  REQUIRE(run->times() != nullptr);
  CHECK(run->times()->steps.size() == 3);
  CHECK(run->graph(run->stages().size() - 1) != nullptr);
  CHECK(run->message(Topic::kProfile).empty());
  // None of a command line writes what an older one lacks.
  run->show_session(1);
  CHECK(run->plan()->calls.size() == calls);
  CHECK(run->message(Topic::kProfile).text == "the session was not profiled");
  CHECK(run->message(Topic::kProfile).command.empty());
  for (const std::int64_t other : {0, 4, -1}) {
    run->show_session(other);
    CHECK(run->session() == 1);
  }
  // It stays when the run grows; the newest is followed.
  made.resume(*compiled("mlp"), 0, "");
  CHECK(run->refresh());
  CHECK(run->session() == 1);
  CHECK(run->session_count() == 4);
  CHECK(run->reading() > reading);
  run->show_session(4);
  made.resume(*compiled("mlp"), 0, "");
  CHECK(run->refresh());
  CHECK(run->session() == 5);
}

TEST_CASE("run_data: without a profile the message says how one is made") {
  const MadeRun made("plain", *compiled("mlp"), 0);
  const auto run = RunData::open(made.folder());
  CHECK(run->events() == nullptr);
  CHECK(run->times() == nullptr);
  CHECK(run->message(Topic::kProfile).text == "the session was not profiled");
  CHECK(run->message(Topic::kProfile).command.find("--profile") != std::string::npos);
}

TEST_CASE("run_data: a plugin of the run that is not loaded is named where its op is not known") {
  const MadeRun made("plugin", *compiled("mlp"), 0);
  Json manifest = read_json_file(made.folder() / kRunManifestFile);
  Json model = manifest.at("model");
  model.set("plugins", Json::array({Json::object({{"file", "own.so"},
                                                  {"path", "/no/such/own.so"},
                                                  {"xxh3", "0123456789abcdef"},
                                                  {"name", "own"}})}));
  manifest.set("model", std::move(model));
  write_file_atomic(made.folder() / kRunManifestFile, manifest.dump());
  const fs::path stage = made.folder() / "stages" / "00-imported.onnx";
  std::string bytes = bytes_of(stage);
  const std::size_t op = bytes.find("Relu");
  REQUIRE(op != std::string::npos);
  bytes.replace(op, 4, "Rely");
  write_file_atomic(stage, bytes);
  const auto run = RunData::open(made.folder());
  CHECK(run->plan() != nullptr);
  CHECK(run->message(Topic::kStages).empty());
  CHECK(run->graph(0) == nullptr);
  const Message& message = run->message(Topic::kStages);
  INFO(message.text);
  CHECK(message.text.starts_with("the plugin '/no/such/own.so' of this run is not loaded: "));
  CHECK(message.text.find("Rely") != std::string::npos);
  CHECK(message.command == "trainscope gui " + made.folder().string());
}

TEST_CASE("run_data: a model is compiled as training would") {
  const fs::path file = fs::temp_directory_path() / ("trainscope-gui-model.onnx");
  write_file_atomic(file, onnx_bytes(build_model("mlp", {}, 1)));
  const auto model = RunData::open(file);
  CHECK(model->kind() == SourceKind::kModel);
  CHECK(model->message(Topic::kSource).text == "");
  CHECK(model->plan() != nullptr);
  CHECK(model->stages().size() > 10);
  CHECK(model->graph(0) != nullptr);
  CHECK(model->times() == nullptr);
  CHECK(model->message(Topic::kProfile).command.find("trainscope train") == 0);
  fs::remove(file);
}

TEST_CASE("run_data: what is no run or model is a message") {
  const auto missing = RunData::open("/no/such/run");
  CHECK(missing->kind() == SourceKind::kNothing);
  CHECK(!missing->message(Topic::kSource).empty());
  CHECK(missing->plan() == nullptr);
  const fs::path file = fs::temp_directory_path() / "trainscope-gui-noise.onnx";
  write_file_atomic(file, std::string_view("this is no model"));
  const auto noise = RunData::open(file);
  CHECK(!noise->message(Topic::kSource).empty());
  CHECK(noise->graph(0) == nullptr);
  fs::remove(file);
}

TEST_CASE("run_data: a folder of runs lists them, one that is damaged with its fault") {
  const fs::path folder = fs::temp_directory_path() / "trainscope-gui-folder";
  fs::remove_all(folder);
  fs::create_directories(folder / "b");
  fs::create_directories(folder / "none");
  write_file_atomic(folder / "b" / kRunManifestFile, std::string_view("{"));
  const MadeRun made("listed", *compiled("mlp"), 0);
  fs::copy(made.folder(), folder / "a", fs::copy_options::recursive);
  CHECK(kind_of(folder) == SourceKind::kFolder);
  const std::vector<RunListing> runs = runs_in(folder);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].name == "a");
  CHECK(runs[0].fault.empty());
  CHECK(runs[0].status == RunStatus::kFinished);
  CHECK(runs[0].last_step == 5);
  CHECK(!runs[1].fault.empty());
  fs::remove_all(folder);
}

TEST_CASE("run_data: a run that grows is read again, and not before") {
  const MadeRun made("grows", *compiled("mlp"), 0);
  const auto run = RunData::open(made.folder());
  CHECK(!run->refresh());
  const std::uint64_t version = run->version();
  std::ofstream(made.folder() / kRunMetricsFile, std::ios::app)
      << R"({"kind":"step","step":6,"loss":0.5,"learning_rate":0.1,"gradient_norm":null,)"
      << R"("step_ms":2.0,"samples":8,"tokens":0})" << '\n';
  CHECK(run->refresh());
  CHECK(run->version() > version);
  CHECK(run->metrics().steps.size() == 6);
}

TEST_CASE("run_data: fates are of the stages that were read, though more are written meanwhile") {
  const MadeRun made("more-stages", *compiled("gpt2", test::kSmallText), 0);
  const fs::path file = made.folder() / kRunStagesFolder / kRunStagesFile;
  const std::string whole = bytes_of(file);
  Json fewer = Json::parse(whole);
  JsonArray stages = fewer.at("stages").as_array();
  const std::size_t count = stages.size();
  stages.resize(count / 2);
  fewer.set("stages", std::move(stages));
  write_file_atomic(file, fewer.dump());
  const auto run = RunData::open(made.folder());
  REQUIRE(run->stages().size() == count / 2);
  REQUIRE(run->graph(count / 2 - 1) != nullptr);
  write_file_atomic(file, whole);
  CHECK(run->fates().empty());
  CHECK(run->diff(0, count / 2 - 1) == nullptr);
  CHECK(run->refresh());
  CHECK_FALSE(run->fates().empty());
  CHECK(run->diff(0, count - 1) != nullptr);
}

TEST_CASE("run_data: a model is compiled meanwhile, and can be given up") {
  const MadeRun made("opening", *compiled("mlp"));
  const fs::path file = made.folder() / "model.onnx";
  write_file_atomic(file, onnx_bytes(build_model("lenet", {}, 1)));
  const auto model = RunData::begin(file);
  const std::uint64_t version = model->version();
  REQUIRE(model->is_opening());
  CHECK(model->plan() == nullptr);
  CHECK_FALSE(model->message(Topic::kSource).empty());
  model->wait();
  CHECK_FALSE(model->is_opening());
  CHECK(model->message(Topic::kSource).empty());
  CHECK(model->plan() != nullptr);
  CHECK(model->version() > version);
  CHECK_FALSE(model->refresh());

  const auto stopped = RunData::begin(file);
  stopped->stop_opening();
  while (stopped->is_opening()) stopped->refresh();
  const bool is_there = stopped->plan() != nullptr;  // where it was quicker
  CHECK(is_there == stopped->message(Topic::kSource).empty());
  RunData::begin(file).reset();  // ends what is under way
}

TEST_CASE("run_data: files that are cut short while they are looked at are messages then") {
  survive_truncated_files();
  const MadeRun made("truncated", *compiled("gpt2", test::kSmallText), 200);
  const fs::path folder = made.folder();
  for (const char* name : {"plan.bin", "events.cols"}) {
    const std::string whole = bytes_of(folder / name);
    REQUIRE(whole.size() > 3 * 4096);
    const auto run = RunData::open(folder);
    fs::resize_file(folder / name, 4096);
    CHECK(bytes_in_rows(*run->plan()) >= 0);
    run->times();
    CHECK(run->refresh());
    if (std::string_view(name) == "plan.bin") {
      CHECK_FALSE(run->message(Topic::kPlan).empty());
    } else if (run->times() != nullptr) {  // a profile that grows is read as far as it is there
      CHECK(run->times()->steps.size() < 200);
    }
    write_file_atomic(folder / name, whole);
    CHECK(run->refresh());
    CHECK(run->times() != nullptr);
  }
}

// Files of the run, each cut at every sixteenth of it and with bits turned over.
TEST_CASE("run_data: damaged files are messages, whatever is asked for") {
  const MadeRun made("damaged", *compiled("mlp"));
  const fs::path folder = made.folder();
  std::size_t faults = 0;
  for (const char* name : {"manifest.json", "plan.bin", "events.cols", "metrics.jsonl",
                           "stages/stages.json", "stages/00-imported.onnx"}) {
    const std::string whole = bytes_of(folder / name);
    for (std::size_t i = 0; i < 32; ++i) {
      std::string damaged = whole;
      if (i < 16) {
        damaged.resize(whole.size() * i / 16);
      } else {
        damaged[whole.size() * (i - 16) / 16] ^= static_cast<char>(0x40);
      }
      write_file_atomic(folder / name, damaged);
      const auto run = RunData::open(folder);
      run->times();
      if (!run->stages().empty()) {
        run->graph(0);
        run->diff(0, run->stages().size() - 1);
      }
      for (const Topic topic :
           {Topic::kSource, Topic::kMetrics, Topic::kStages, Topic::kPlan, Topic::kProfile}) {
        if (!run->message(topic).empty()) {
          ++faults;
          break;
        }
      }
    }
    write_file_atomic(folder / name, whole);
  }
  CHECK(faults > 100);
  CHECK(RunData::open(folder)->times() != nullptr);
}

}  // namespace
}  // namespace trainscope::gui
