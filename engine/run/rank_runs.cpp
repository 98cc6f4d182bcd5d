// Ranks of a run: they begin with the same request and the same parameters, and end together.
#include "engine/run/rank_runs.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/ranks/rank_calls.h"
#include "engine/ranks/ranked_device.h"
#include "engine/run/run_settings.h"
#include "engine/run/training_run.h"

namespace trainscope {
namespace {

void refuse_with_ranks(const TrainRequest& request) {
  require(!request.numerics, ErrorCode::kUsage,
          "the tensors of a run of {} ranks cannot be recorded yet: leave out --record-numerics",
          request.ranks->size());
}

// Of two objects.
std::vector<std::string> different_keys(const Json& a, const Json& b) {
  std::vector<std::string> keys;
  for (const JsonMember& member : a.as_object()) {
    const Json* other = b.find(member.key);
    if (other == nullptr || *other != member.value) keys.push_back(member.key);
  }
  for (const JsonMember& member : b.as_object()) {
    if (a.find(member.key) == nullptr) keys.push_back(member.key);
  }
  return keys;
}

}  // namespace

void require_settings_of_rank_0(Communicator& ranks, const Json& mine) {
  const std::string first = text_of_rank_0(ranks, mine.dump());
  if (first == mine.dump()) return;
  fail(ErrorCode::kDistributed, "rank {} has other settings than rank 0: {}", ranks.rank(),
       printable(join(different_keys(mine, Json::parse(first)), ", "), 400));
}

void note_channel_failure(const Communicator& ranks, Error& error) {
  const std::string failure = ranks.failure();
  if (failure.empty()) return;
  Error lost(ErrorCode::kDistributed, printable(failure, 400));
  for (const std::string& where : error.context()) lost.at(where);
  error = std::move(lost);
}

void TrainingRun::join_ranks() {
  if (!request_.ranks) return;
  refuse_with_ranks(request_);
  CompileOptions& compile = request_.compile;
  const DeviceHandle base = compile.device ? compile.device : cpu_device();
  device_channel_ = request_.connect ? request_.connect(base, request_.ranks) : request_.ranks;
  compile.training.ranks = request_.ranks->size();
  compile.device = ranked_device(base, device_channel_);
}

// All ranks go on from where rank 0 is, with its parameters and states.
void TrainingRun::share_beginning() {
  if (!request_.ranks) return;
  Communicator& ranks = *request_.ranks;
  require_settings_of_rank_0(ranks, run_settings(request_, data_->description()));
  const std::vector<std::int64_t> at = numbers_of_rank_0(ranks, {step_, samples_seen_});
  from_step_ = step_ = at[0];
  samples_seen_ = at[1];
  Executor& executor = session_->executor();
  for (const auto& tensors : {trainer_->model_tensors(), trainer_->optimizer_tensors()}) {
    for (const NamedTensor& each : tensors) {
      Tensor elements = executor.read(each.name);
      send_from_rank_0(ranks, elements);
      if (!leads()) executor.write(each.name, elements);
    }
  }
}

// What one rank alone knows of why they cannot go on together.
void TrainingRun::tell_other_ranks(const Error& error) {
  if (request_.ranks && error.code() == ErrorCode::kDistributed) {
    request_.ranks->give_up(error.message());
  }
}

// Another step begins on all ranks, or on none.
bool TrainingRun::goes_on() {
  const bool here = step_ < last_step() && !stop_requested() && !out_of_time() && !ended_early_;
  return request_.ranks ? true_on_all(*request_.ranks, here) : here;
}

}  // namespace trainscope
