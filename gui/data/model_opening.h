// A model that is compiled as `train` would without flags, on a thread of its own.
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
#include "engine/stage_history.h"
#include "gui/data/stage_facts.h"

namespace trainscope::gui {

struct OpenedModel {
  StoredPlan plan;
  std::vector<StageFacts> stages = {};
  std::unique_ptr<StageHistory> history = {};
};

class ModelOpening {
 public:
  explicit ModelOpening(std::filesystem::path path);
  // Stops what is under way: within some milliseconds, or when the pass under way is done.
  ~ModelOpening() = default;
  ModelOpening(const ModelOpening&) = delete;
  ModelOpening& operator=(const ModelOpening&) = delete;

  void stop() { thread_.request_stop(); }
  // What is being done: "passes: fuse_gelu".
  std::string now() const;
  bool has_ended() const;
  void wait() const;
  // Once, when it has ended. Throws what the compilation threw, and Stopped.
  OpenedModel take();

 private:
  void run(const std::stop_token& stop);

  std::filesystem::path path_;
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_changed_;
  std::string now_ = "reading the model";
  bool ended_ = false;
  std::optional<OpenedModel> model_;
  std::exception_ptr fault_;
  std::jthread thread_;  // the last member: it ends before what it uses
};

}  // namespace trainscope::gui
