// What the window shows of a run or of a model: its manifest, metrics, stages, plan and profile,
// each read when it is there, else a message that says what is missing and what would write it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/bundle/reader.h"
#include "engine/core/error.h"
#include "engine/machine/machine.h"
#include "engine/stage_history.h"
#include "gui/data/model_opening.h"  // IWYU pragma: export
#include "gui/data/read_ahead.h"     // IWYU pragma: export
#include "gui/data/sources.h"        // IWYU pragma: export
#include "gui/data/stage_facts.h"    // IWYU pragma: export
#include "profiler/analysis/measured_memory.h"

namespace trainscope::gui {

// What a message is about.
enum class Topic : std::uint8_t { kSource, kMetrics, kStages, kPlan, kProfile, kMachine };
inline constexpr std::size_t kTopics = 6;

// An error in a line: what, where, and what to do about it.
std::string line_of(const Error& error);

// Why a topic is not shown, or what of it is not.
struct Message {
  std::string text = {};     // empty: nothing is wrong
  std::string command = {};  // the command line that would write what is missing; empty: none would

  bool empty() const { return text.empty(); }
};

// Of one session of a run, or of a model as it would be trained. No function throws: what cannot be
// read is null or empty, and message() says why. Pointers and spans hold until refresh() or
// show_session() says that something changed. Of one thread.
class RunData {
 public:
  // What the path cannot be read as is a source with a message and nothing else.
  // `sizes` are those of a model.
  static std::unique_ptr<RunData> open(const std::filesystem::path& path, SizeRequest sizes = {});
  // The same, but a model is not there yet: it is compiled meanwhile, and message(Topic::kSource)
  // says how far that is; refresh() takes it when it is done.
  static std::unique_ptr<RunData> begin(const std::filesystem::path& path, SizeRequest sizes = {});
  ~RunData();
  RunData(const RunData&) = delete;
  RunData& operator=(const RunData&) = delete;

  SourceKind kind() const { return kind_; }
  const std::filesystem::path& path() const { return path_; }
  const std::string& name() const { return name_; }  // the last name of the path
  const SizeRequest& sizes() const { return sizes_; }
  // The path, and of a model its sizes, as words of a shell.
  std::string words() const;
  const Message& message(Topic topic) const { return messages_[static_cast<std::size_t>(topic)]; }
  // Raised when anything that a view has read may have changed.
  std::uint64_t version() const { return version_; }
  // Raised when the source was read: another session that is shown raises version() alone.
  std::uint64_t reading() const { return reading_; }

  // Of a model: compiles it anew with other sizes, meanwhile as begin() does.
  void compile_with(SizeRequest sizes);
  // Of a model: it is not compiled, since sizes of it are open or do not fit.
  bool wants_sizes() const { return wants_sizes_; }
  bool is_opening() const { return opening_ != nullptr; }
  void stop_opening();
  void wait();  // until it is open

  // Reads what has been written since; true where something was. Cheap where nothing was.
  bool refresh();

  const RunManifest* manifest() const { return manifest_ ? &*manifest_ : nullptr; }
  // Position from 1 in the manifest's sessions; 0 of a model.
  std::int64_t session() const { return session_; }
  std::int64_t session_count() const;  // 0 of a model
  bool shows_newest() const { return session_ == session_count(); }
  const RunSession* session_record() const;  // of the session that is shown; null of a model
  // " --session N" where an older one is shown: command lines are of the newest without it.
  std::string session_flag() const;
  // One of those that there are; any other changes nothing.
  void show_session(std::int64_t session);
  const Metrics& metrics() const { return metrics_; }
  std::span<const StageFacts> stages() const { return stages_; }
  const PlanView* plan() const { return plan_ ? &*plan_ : nullptr; }
  // Whether the plan says what is where in memory: one that was imported has calls alone.
  bool has_memory_plan() const { return plan_ && !plan_->buffers.empty(); }
  const profiler::EventView* events() const { return events_ ? &*events_ : nullptr; }
  // Of the profile's threads, by their numbers: empty for threads of the host, and beyond the last
  // that has a name. Streams of devices have names.
  std::vector<std::string> thread_names() const;
  // That planned the session with the machine's measured rates; null: nobody measured it.
  const Machine* machine() const { return machine_ ? &*machine_ : nullptr; }

  // Begins to read what takes long and is asked for with the first selection, on threads of their
  // own: see StagesAhead and TimesAhead. Once of the stages of a session.
  void read_ahead();
  bool has_begun_to_read_ahead() const { return has_read_ahead_; }
  // Takes what has been read ahead; true while some of it is still being read, which whoever asks
  // for it waits for.
  bool is_reading_ahead();
  // Begins to read the graphs of two stages and what is different between them, on a thread, where
  // that has not been done; true while it is on its way: diff() would wait for it.
  bool reads_diff(std::size_t from, std::size_t to);

  // The next are read or computed when they are first asked for, and kept.
  // Null where there is no profile, or it does not fit the plan.
  const profiler::StepTimes* times();
  // Of these times; null as above.
  const CallTable* calls_by(profiler::GroupBy by);
  // What of memory was measured while the session was profiled; null as above.
  const profiler::MeasuredMemory* measured_memory();
  // Of the stage at this position; null where its file cannot be read.
  const Graph* graph(std::size_t stage);
  // What became of the stages' nodes and values; null without rewrite logs.
  const StageHistory* history();
  // The entries of all logs that are of a node, or name it beside another one, stage by stage.
  std::span<const LogEntry> entries_of(std::uint32_t serial);
  // From the earlier to the later of two stages; null where one of them cannot be read.
  const StageDiff* diff(std::size_t from, std::size_t to);
  // Of the ONNX model's nodes and values to the last stage; empty without rewrite logs.
  std::span<const Fate> fates();
  // Of a node of the model, by its name there, or by its serial; null: there is none.
  const Fate* node_fate(std::string_view name);
  const Fate* node_fate(std::uint32_t serial);

  // The folder of the run, for notes and checkpoints; null of a model.
  const RunReader* reader() const { return reader_ ? &*reader_ : nullptr; }

 private:
  RunData(std::filesystem::path path, SizeRequest sizes);

  // Shows this session, or the newest: where it is 0, or there is none of it any more.
  // What of a run is as it was when it was read: what has been made of it stays.
  struct Unchanged {
    bool stages;   // graphs and logs of rewrites
    bool profile;  // and the plan: times
  };
  void read_all(std::int64_t session = 0, Unchanged unchanged = {});
  void read_run(std::int64_t session);
  void begin_model();
  bool look_at_opening();
  void read_stages();
  void read_plan();
  void read_profile();
  void read_machine();
  void read_session();
  void forget();
  void forget_stages();
  void forget_unread_stages();
  void forget_times();
  // Waits for what is read ahead, and keeps it.
  void begin_to_read_ahead();
  void take_stages_ahead();
  void take_times_ahead();
  void take_diff_ahead();
  // What a thread needs to read the graphs of two stages.
  StagesToRead stages_to_read(StagePair pair) const;
  // What it reads is not wanted any more, and nobody waits for it.
  template <typename Ahead>
  void set_aside(std::future<Ahead>& ahead) {
    if (!ahead.valid()) return;
    unwanted_.push_back([kept = std::make_shared<std::future<Ahead>>(std::move(ahead))] {
      return kept->wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
  }
  // Whether something that is not wanted any more is still being read; what has ended is dropped.
  bool reads_unwanted();
  // Position of the stage that has the graph of this one: a stage that changed nothing has none.
  std::size_t stage_of_graph(std::size_t stage) const;
  // Runs `read`; what it throws becomes the topic's message. False where it threw.
  bool guarded(Topic topic, const std::function<void()>& read);
  void set_message(Topic topic, std::string text, std::string command = {});
  // Says of a graph that cannot be read which plugin of the run is not loaded.
  void tell_of_plugins();
  // The command line that trains on, which writes what the newest session lacks; none writes what
  // an older one lacks.
  std::string command_to_go_on(std::string_view more = {}) const;
  // Sizes and times of the files that refresh() looks at.
  std::vector<std::int64_t> fingerprint() const;

  std::filesystem::path path_;
  std::string name_;
  SizeRequest sizes_;
  SourceKind kind_ = SourceKind::kNothing;
  std::uint64_t version_ = 1;
  std::uint64_t reading_ = 1;
  std::array<Message, kTopics> messages_ = {};
  std::int64_t session_ = 0;
  std::vector<std::int64_t> seen_;

  std::optional<RunReader> reader_;
  std::optional<RunManifest> manifest_;
  Metrics metrics_;
  std::vector<StageFacts> stages_;
  std::optional<StoredPlan> stored_plan_;
  std::optional<PlanView> plan_;
  std::optional<profiler::EventView> events_;
  std::optional<Machine> machine_;

  std::unique_ptr<ModelOpening> opening_;  // of a model; null when it has ended
  bool wants_sizes_ = false;

  bool has_read_ahead_ = false;
  std::vector<std::size_t> graphs_ahead_;  // positions of those that are being read
  std::future<StagesAhead> stages_ahead_;
  std::future<TimesAhead> times_ahead_;
  std::future<DiffAhead> diff_ahead_;
  StagePair diff_ahead_pair_ = {};
  std::vector<std::function<bool()>> unwanted_;  // set aside; each says whether it has ended

  // Kept results; an empty pointer of a key that is there: it was tried and cannot be read.
  std::optional<std::shared_ptr<const profiler::StepTimes>> times_;
  std::optional<std::unique_ptr<profiler::MeasuredMemory>> measured_memory_;
  std::optional<std::shared_ptr<const StageHistory>> history_;
  std::map<profiler::GroupBy, std::unique_ptr<const CallTable>> calls_by_;
  std::optional<LogEntries> entries_;
  std::optional<FateTable> fates_;
  StageGraphs graphs_;
  std::map<StagePair, std::unique_ptr<const StageDiff>> diffs_;
};

}  // namespace trainscope::gui
