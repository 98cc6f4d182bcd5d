// What to train: everything that a run depends on, said once.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bundle/writer.h"
#include "engine/compile.h"
#include "engine/core/json.h"
#include "engine/exec/execution_events.h"
#include "engine/onnx/import.h"
#include "engine/train/data.h"
#include "engine/train/schedule.h"
#include "kernels/api/communicator.h"
#include "kernels/api/device_tracer.h"

namespace trainscope {

// Opens the data once the model is compiled, so that their fields can be those that the program
// reads (datasets/open.h takes these). Not null. May throw any Error.
using OpenData = std::function<std::shared_ptr<const Dataset>(const Compiled& compiled)>;

// Batches of a range in the order given: read when asked for, or ahead of it. The source keeps the
// dataset. Not null.
using OpenBatches = std::function<std::unique_ptr<BatchSource>(
    std::shared_ptr<const Dataset> data, const BatchOrder& order, const BatchRange& range)>;

// Not null. May throw any Error. Every rank calls it once.
using ConnectDevices = std::function<std::shared_ptr<Communicator>(
    const DeviceHandle& device, std::shared_ptr<Communicator> hosts)>;

// Each batch is read when it is asked for, by the thread that trains.
std::unique_ptr<BatchSource> direct_batches(std::shared_ptr<const Dataset> data,
                                            const BatchOrder& order, const BatchRange& range);

// Open data for a request whose program reads the fields that they have.
OpenData opened(std::shared_ptr<const Dataset> data);

// In RunNotes::options of a run of several ranks: their number.
inline constexpr std::string_view kRanksOption = "ranks";

// What a run's manifest and config.toml keep for people and for `--config`; nothing depends on it.
struct RunNotes {
  Json options = Json::object();          // name -> value, with every default resolved
  std::string config = {};                // the same as TOML text, for config.toml
  std::vector<std::string> command = {};  // words of the command line, or the program's name
  std::string program_version = {};
  std::string device_name = {};  // of a GPU, as its driver has it
};

// When a run ends before its last step: after so many evaluations in a row whose loss was not below
// the lowest one by more than `least_gain`.
struct EarlyStop {
  std::int64_t patience = 1;
  double least_gain = 0.0;
};

// The steps that are profiled, from 1: of the run, or of its session where it begins later.
struct ProfileSteps {
  std::int64_t from = 1;
  std::int64_t to = 1;  // this one too
  bool of_session = false;
  // As many again so many steps after the last ones began, more than to - from; 0: these alone.
  std::int64_t every = 0;
  std::int64_t repeat = 0;  // with `every`: how often in all; 0: until the session ends

  bool has(std::int64_t step) const;
  std::int64_t last() const;  // none is profiled after it
  // How much of a device's own work is recorded, where threads of the host do not compute it.
  TraceLevel level = TraceLevel::kWork;
};

// Which numbers of a run are recorded, into its folder numerics/.
struct NumericsRequest {
  // Each value of the model and each gradient by itself, computed once more without fusions; else
  // the tensors that the step makes.
  bool all_values = false;
  // With all_values: patterns of the names that are recorded, besides inputs and the loss; none:
  // all.
  std::vector<std::string> values = {};
  // At the first of the steps the truth in f64, and what rounding makes of it, are computed too.
  bool oracle = true;
  std::vector<std::int64_t> steps = {};  // from 1; none: 1, 2, 5, 10, 20, 50 ... and the last
  std::vector<std::string> full = {};    // patterns of names: all elements of these are kept
};

// What a session begins with that neither a checkpoint nor the model says.
struct GivenStart {
  std::int64_t step = 0;                       // that is done; the next one's batches are read
  std::map<std::string, Tensor> tensors = {};  // parameters and states after it, all by name
};

struct TrainRequest {
  OnnxModel model;
  // import binds every size of the model; training.mode must be kTrain, training.micro_batches is
  // how many batches a step reads. The driver sets `watch`, and training.ranks.
  CompileOptions compile = {};
  // The channel to the other processes that train this model, each on batches of its own; null:
  // there are none. All have the same request. Rank 0 alone has a run's folder: it resumes, after
  // which all have its parameters, evaluates, and saves.
  std::shared_ptr<Communicator> ranks = nullptr;
  // Makes the channel between the ranks' devices from `ranks`, which connects their hosts; null:
  // that one does, since addresses of the device are the host's.
  ConnectDevices connect = nullptr;
  OpenData open_data = nullptr;
  OpenBatches open_batches = direct_batches;
  std::int64_t batch = 1;     // examples of a micro-batch, as `compile.import` has them
  BatchAxes batch_axes = {};  // of the model's inputs, where examples are not the first axis
  std::int64_t steps = 0;     // of the run, those of earlier sessions included
  // In place of `steps`: how often all the data are read. The driver settles `steps`, and how many
  // `schedule` has, when the data are open; 0: `steps` counts.
  std::int64_t epochs = 0;
  Shuffle shuffle = Shuffle::kEachEpoch;
  Schedule schedule = {};  // learning rate by step
  std::uint64_t seed = 0;  // of the order of the examples; dropout has compile.training.seed

  // The run's folder: empty for a new runs/NAME-N below the working folder. `resume`: empty for a
  // new run, "auto" to go on from the newest checkpoint of run_folder if it holds a run, or the
  // folder of a run or of a checkpoint.
  std::filesystem::path run_folder = {};
  std::string resume = {};
  std::optional<GivenStart> start = {};  // of a new run

  // False: only the steps count. At the end nothing is validated, and neither a checkpoint nor the
  // trained model is kept.
  bool keeps_result = true;
  std::int64_t save_every = 0;      // steps between checkpoints; 0: only at the end
  int keep = 3;                     // newest checkpoints that stay, 1 or more
  std::int64_t evaluate_every = 0;  // steps between evaluations; 0: only at the end
  bool keep_best = true;            // with evaluate_every: the best checkpoint stays too
  std::optional<EarlyStop> early_stop = {};
  MetricsForms metrics = {};
  std::filesystem::path export_file = {};  // another place for the trained model; empty: none

  // No step begins after it, but each session makes one.
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  // No more steps than so many in this session, 1 or more, which then ends as at a deadline.
  std::optional<std::int64_t> session_steps = {};
  // What the record of a session that was stopped notes as the exit code of its process, asked for
  // at its end; null: 130.
  std::function<int()> stop_exit_code = nullptr;
  // Are told of each call, copy and thread of the training steps, those of evaluations not.
  std::vector<std::shared_ptr<ExecutionEvents>> execution_events = {};
  std::optional<ProfileSteps> profile = {};
  std::optional<NumericsRequest> numerics = {};
  RunNotes notes = {};
};

}  // namespace trainscope
