// A model that is compiled as `train` would with its sizes and no other flag, on a thread of its
// own.
#pragma once

#include <condition_variable>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "engine/bundle/plan_file.h"
#include "engine/size_words.h"  // IWYU pragma: export
#include "engine/stage_history.h"
#include "gui/data/stage_facts.h"

namespace trainscope::gui {

struct OpenedModel {
  StoredPlan plan;
  std::vector<StageFacts> stages = {};
  std::unique_ptr<StageHistory> history = {};
};

// Throws kUsage for sizes that do not fit the model, and where one is left open; and what reading
// it throws.
void check_sizes(const std::filesystem::path& path, const SizeRequest& sizes);

class ModelOpening {
 public:
  ModelOpening(std::filesystem::path path, SizeRequest sizes);
  // Stops what is under way: within some milliseconds, or when the pass under way is done.
  ~ModelOpening() = default;
  ModelOpening(const ModelOpening&) = delete;
  ModelOpening& operator=(const ModelOpening&) = delete;

  void stop() { thread_.request_stop(); }
  // What is being done: "passes: fuse_gelu".
  std::string now() const;
  bool has_ended() const;
  void wait() const;
  // Whether it ended because the sizes do not fit, or are not all there.
  bool wants_sizes() const;
  // Once, when it has ended. Throws what the compilation threw, and Stopped.
  OpenedModel take();

 private:
  void run(const std::stop_token& stop);

  std::filesystem::path path_;
  SizeRequest sizes_;
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_changed_;
  std::string now_ = "reading the model";
  bool ended_ = false;
  bool wants_sizes_ = false;
  std::optional<OpenedModel> model_;
  std::exception_ptr fault_;
  std::jthread thread_;  // the last member: it ends before what it uses
};

}  // namespace trainscope::gui
