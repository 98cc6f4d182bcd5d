// Sessions by size, and the way of the state between them.
#include "engine/check/sized_sessions.h"

#include "engine/check/batch_inputs.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// Parameters, statistics, moments: everything that a step leaves for the next.
void copy_state(const Executor& from, Executor& to) {
  const Graph& graph = to.program().graph;
  for (ValueKind kind : {ValueKind::kParameter, ValueKind::kState}) {
    for (ValueId id : graph.values_of(kind)) {
      const std::string& name = graph.value(id).name;
      if (!to.has(name)) continue;
      require_supported(from.has(name),
                        "batches of other sizes have other states: '{}' is of one of them alone",
                        printable(name));
      to.write(name, from.read(name));
    }
  }
}

}  // namespace

Session& SizedSessions::session_of(const ImportOptions& import) {
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    if (sizes_[i].shapes == import.shapes && sizes_[i].dims == import.dims) return *sessions_[i];
  }
  CompileOptions options = options_;
  options.import = import;
  sessions_.push_back(std::make_unique<Session>(model_, std::move(options)));
  sizes_.push_back(import);
  return *sessions_.back();
}

const std::shared_ptr<Executor>& SizedSessions::executor_of(const Batch& batch) {
  ImportOptions import = options_.import;
  bind_batch_sizes(model_, options_.training.loss, batch, import);
  const std::shared_ptr<Executor>& executor = session_of(import).shared_executor();
  require_inputs(*executor, model_, options_.training.loss, batch);
  if (current_ != nullptr && current_ != executor) copy_state(*current_, *executor);
  current_ = executor;
  return current_;
}

}  // namespace trainscope
