// Training on batches of several sizes: a program for each, and one state that goes from one to the
// next.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/session.h"

namespace trainscope {

class SizedSessions {
 public:
  SizedSessions(OnnxModel model, CompileOptions options)
      : model_(std::move(model)), options_(std::move(options)) {}

  // The executor for batches of this one's sizes, made when first asked for, with parameters and
  // states as the last step left them. Fails as bind_batch_sizes() and require_inputs() do.
  const std::shared_ptr<Executor>& executor_of(const Batch& batch);
  // All that were made so far.
  std::span<const std::unique_ptr<Session>> sessions() const { return sessions_; }

 private:
  Session& session_of(const ImportOptions& import);

  OnnxModel model_;
  CompileOptions options_;
  std::vector<ImportOptions> sizes_;  // by session
  std::vector<std::unique_ptr<Session>> sessions_;
  std::shared_ptr<Executor> current_;  // holds the newest state
};

}  // namespace trainscope
