// Reads a source topic by topic; what reading throws becomes the message of its topic.
#include "gui/data/run_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <span>
#include <system_error>

#include "engine/core/any_error.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/machine/machine_file.h"
#include "profiler/analysis/profile.h"

namespace trainscope::gui {
namespace {

namespace fs = std::filesystem;

std::string last_part(const fs::path& path) {
  const fs::path full = fs::path(path).lexically_normal();
  const fs::path last = full.has_filename() ? full.filename() : full.parent_path().filename();
  return last.empty() ? full.string() : last.string();
}

std::int64_t ticks_of(const fs::path& path) {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(path, error);
  return error ? -1 : static_cast<std::int64_t>(time.time_since_epoch().count());
}

// Two numbers of each file, in this order.
enum FileOfRun : std::size_t { kManifestPart, kMetricsPart, kStagesPart, kPlanPart, kEventsPart };

bool is_same(std::span<const std::int64_t> a, std::span<const std::int64_t> b, FileOfRun file) {
  return std::ranges::equal(a.subspan(2 * file, 2), b.subspan(2 * file, 2));
}

std::int64_t bytes_of(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  return error ? -1 : static_cast<std::int64_t>(bytes);
}

}  // namespace

std::string line_of(const Error& error) {
  std::string line = error.message();
  for (const std::string& where : error.context()) line += fmt::format(" (from {})", where);
  if (!error.hint().empty()) line += fmt::format("; {}", error.hint());
  return line;
}

RunData::RunData(fs::path path, SizeRequest sizes)
    : path_(std::move(path)), name_(last_part(path_)), sizes_(std::move(sizes)) {}
RunData::~RunData() = default;

std::unique_ptr<RunData> RunData::open(const fs::path& path, SizeRequest sizes) {
  std::unique_ptr<RunData> data = begin(path, std::move(sizes));
  data->wait();
  return data;
}

std::unique_ptr<RunData> RunData::begin(const fs::path& path, SizeRequest sizes) {
  std::unique_ptr<RunData> data(new RunData(path, std::move(sizes)));
  data->kind_ = kind_of(path);
  data->seen_ = data->fingerprint();
  data->read_all();
  return data;
}

bool RunData::guarded(Topic topic, const std::function<void()>& read) {
  try {
    read();
    return true;
  } catch (const std::exception& exception) {
    set_message(topic, line_of(error_of(exception)));
    return false;
  }
}

void RunData::set_message(Topic topic, std::string text, std::string command) {
  messages_[static_cast<std::size_t>(topic)] = {.text = std::move(text),
                                                .command = std::move(command)};
}

std::string RunData::words() const {
  std::vector<std::string> words = {path_.string()};
  if (kind_ == SourceKind::kModel) {
    for (std::string& word : words_of(sizes_)) words.push_back(std::move(word));
  }
  return shell_line(words);
}

std::vector<std::int64_t> RunData::fingerprint() const {
  if (kind_ != SourceKind::kRun) return {ticks_of(path_), bytes_of(path_)};
  std::vector<std::int64_t> seen;
  const fs::path stages = fs::path(kRunStagesFolder) / kRunStagesFile;
  for (const fs::path& file : {fs::path(kRunManifestFile), fs::path(kRunMetricsFile), stages,
                               fs::path(kRunPlanFile), fs::path(kRunEventsFile)}) {
    seen.push_back(ticks_of(path_ / file));
    seen.push_back(bytes_of(path_ / file));
  }
  return seen;
}

bool RunData::refresh() {
  if (opening_) return look_at_opening();
  std::vector<std::int64_t> now = fingerprint();
  if (now == seen_) return false;
  // While a run trains its metrics and its profile grow, and its stages stay.
  Unchanged unchanged = {};
  if (kind_ == SourceKind::kRun && now.size() == seen_.size()) {
    unchanged.stages = is_same(now, seen_, kStagesPart);
    unchanged.profile = is_same(now, seen_, kPlanPart) && is_same(now, seen_, kEventsPart);
  }
  seen_ = std::move(now);
  kind_ = kind_of(path_);
  read_all(shows_newest() ? 0 : session_, unchanged);
  return true;
}

void RunData::forget_stages() {
  has_read_ahead_ = false;  // those of another session are read ahead, too
  set_aside(stages_ahead_);
  set_aside(diff_ahead_);
  graphs_ahead_.clear();
  history_.reset();
  entries_.reset();
  fates_.reset();
  graphs_.clear();
  diffs_.clear();
}

void RunData::forget_times() {
  set_aside(times_ahead_);
  times_.reset();
  measured_memory_.reset();
  calls_by_.clear();
}

// Whoever asks for them is told again what is wrong.
void RunData::forget_unread_stages() {
  std::erase_if(graphs_, [](const auto& entry) { return entry.second == nullptr; });
  std::erase_if(diffs_, [](const auto& entry) { return entry.second == nullptr; });
  const bool has_history = history_ && *history_ != nullptr;
  if (!has_history) history_.reset();
  if (!has_history) entries_.reset();
  if (fates_ && fates_->all.empty()) fates_.reset();
}

void RunData::forget() {
  ++version_;
  messages_ = {};
  stages_.clear();
  plan_.reset();
  stored_plan_.reset();
  events_.reset();
  opening_.reset();
  wants_sizes_ = false;
  machine_.reset();
}

void RunData::read_all(std::int64_t session, Unchanged unchanged) {
  const std::int64_t session_before = session_;
  forget();
  ++reading_;
  reader_.reset();
  manifest_.reset();
  metrics_ = {};
  session_ = 0;
  const bool has_times = times_ahead_.valid() || (times_ && *times_ != nullptr);
  if (!unchanged.profile || !has_times) forget_times();
  if (unchanged.stages) {
    forget_unread_stages();
  } else {
    forget_stages();
  }
  if (measured_memory_ && *measured_memory_ == nullptr) measured_memory_.reset();
  if (kind_ == SourceKind::kRun) read_run(session);
  // What is there no more, and what is of another session.
  const bool is_other = session_ != session_before;
  if (is_other || stages_.empty()) forget_stages();
  if (is_other || !plan_ || !events_) forget_times();
  if (kind_ == SourceKind::kRun) return;
  if (kind_ == SourceKind::kModel) return begin_model();
  set_message(Topic::kSource,
              kind_ == SourceKind::kFolder
                  ? fmt::format("'{}' is a folder of runs: choose one", printable(path_.string()))
                  : fmt::format("there is no run or model '{}'", printable(path_.string())));
}

void RunData::read_run(std::int64_t session) {
  if (!guarded(Topic::kSource, [this] { reader_ = RunReader::open(path_); })) return;
  manifest_ = reader_->manifest();
  guarded(Topic::kMetrics, [this] { metrics_ = reader_->metrics(); });
  if (metrics_.steps.empty() && message(Topic::kMetrics).empty()) {
    const bool runs = manifest_->sessions.back().status == RunStatus::kRunning;
    set_message(Topic::kMetrics, runs ? "no step has been recorded yet"
                                      : "the run has no losses, and no times of whole steps");
  }
  const bool is_there = session > 0 && session <= session_count();
  session_ = is_there ? session : session_count();
  read_session();
}

std::int64_t RunData::session_count() const {
  return manifest_ ? static_cast<std::int64_t>(manifest_->sessions.size()) : 0;
}

const RunSession* RunData::session_record() const {
  return session_ > 0 ? &manifest_->sessions[static_cast<std::size_t>(session_ - 1)] : nullptr;
}

std::string RunData::session_flag() const {
  return shows_newest() ? std::string() : fmt::format(" --session {}", session_);
}

std::string RunData::command_to_go_on(std::string_view more) const {
  if (!shows_newest()) return {};
  return fmt::format("trainscope train --resume auto --run-dir {}{}", words(), more);
}

void RunData::show_session(std::int64_t session) {
  if (!reader_ || session == session_ || session < 1 || session > session_count()) return;
  const Message metrics = message(Topic::kMetrics);
  forget();
  forget_stages();
  forget_times();
  set_message(Topic::kMetrics, metrics.text, metrics.command);
  session_ = session;
  read_session();
}

void RunData::read_session() {
  read_stages();
  read_plan();
  read_profile();
  read_machine();
}

void RunData::read_stages() {
  guarded(Topic::kStages, [this] {
    std::vector<StageRecord> records = reader_->stages(session_);
    for (std::size_t i = 0; i < records.size(); ++i) {
      std::string label = fmt::format("{:02}-{}", i, records[i].name);
      stages_.push_back({.label = std::move(label), .record = std::move(records[i])});
    }
  });
  if (stages_.empty() && message(Topic::kStages).empty()) {
    set_message(Topic::kStages, "the session has no stages: it ended before it wrote any",
                command_to_go_on());
  }
}

void RunData::read_plan() {
  guarded(Topic::kPlan, [this] { stored_plan_ = reader_->plan(session_); });
  if (stored_plan_) {
    plan_ = stored_plan_->view();
    if (!has_memory_plan()) {
      set_message(Topic::kPlan, "the record has calls, but nothing of the memory that they use");
    }
  } else if (message(Topic::kPlan).empty()) {
    set_message(Topic::kPlan, "the session has no plan: it ended before it wrote one",
                command_to_go_on());
  }
}

void RunData::read_profile() {
  guarded(Topic::kProfile, [this] {
    std::optional<MappedFile> mapped = reader_->events(session_);
    if (!mapped) return;
    const auto file = std::make_shared<const MappedFile>(std::move(*mapped));
    profiler::EventReading reading = profiler::read_events(file->bytes(), file);
    require(reading.fault == profiler::ReadFault::kNone, ErrorCode::kBadInput, "'{}': {}",
            printable(file->path().string()), reading.message);
    events_ = std::move(reading.view);
    if (events_->events > 0) return;
    set_message(Topic::kProfile,
                fmt::format("no events yet: the {} bytes of '{}' are no whole chunk",
                            file->bytes().size(), printable(file->path().string())));
  });
  if (!events_ && message(Topic::kProfile).empty()) {
    set_message(Topic::kProfile, "the session was not profiled",
                command_to_go_on(" --profile steps=+6:25"));
  }
}

void RunData::read_machine() {
  guarded(Topic::kMachine, [this] {
    const Json& recorded = manifest_->sessions.at(static_cast<std::size_t>(session_ - 1)).machine;
    if (!recorded.is_null()) machine_ = machine_of(recorded);
  });
  if (!machine_ && message(Topic::kMachine).empty()) {
    set_message(Topic::kMachine,
                "the rates of the machine are not known: the session was planned with the built-in "
                "machine, which nobody measured",
                "trainscope doctor --roofs --out machine.json");
  }
}

std::vector<std::string> RunData::thread_names() const {
  std::vector<std::string> names;
  const bool has_data = manifest_ && manifest_->data.is_object();
  const Json* threads = has_data ? manifest_->data.find("threads") : nullptr;
  if (threads == nullptr || !threads->is_array()) return names;
  for (const Json& name : threads->as_array()) {
    names.push_back(name.is_string() ? name.as_string() : std::string());
  }
  return names;
}

const profiler::StepTimes* RunData::times() {
  if (!times_) take_times_ahead();
  if (!times_) {
    times_.emplace();
    if (events_ && plan_) {
      guarded(Topic::kProfile, [this] {
        *times_ =
            std::make_shared<const profiler::StepTimes>(profiler::step_times(*events_, *plan_));
      });
    }
  }
  return times_->get();
}

const CallTable* RunData::calls_by(profiler::GroupBy by) {
  if (times() == nullptr) return nullptr;
  if (!calls_by_.contains(by)) take_times_ahead();
  std::unique_ptr<const CallTable>& calls = calls_by_[by];
  if (calls == nullptr) {
    calls = std::make_unique<const CallTable>(CallTable::of(*times(), *plan_, by, machine()));
  }
  return calls.get();
}

const profiler::MeasuredMemory* RunData::measured_memory() {
  if (!measured_memory_) {
    measured_memory_.emplace();
    if (events_ && plan_) {
      guarded(Topic::kProfile, [this] {
        *measured_memory_ =
            std::make_unique<profiler::MeasuredMemory>(profiler::measured_memory(*events_, *plan_));
      });
    }
  }
  return measured_memory_->get();
}

}  // namespace trainscope::gui
