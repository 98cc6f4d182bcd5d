// Parts of the command line that need no program: sampling, progress, resume, help.
#include <doctest/doctest.h>

#include "cli/cuda_driver.h"
#include "cli/exit_codes.h"
#include "cli/flags/duration.h"
#include "cli/flags/run_options.h"
#include "cli/print/help.h"
#include "cli/print/progress.h"
#include "engine/run/resume.h"
#include "engine/run/run_records.h"
#include "engine/run/sampling.h"

namespace trainscope {
namespace {

TEST_CASE("duration: numbers with units, and what is none") {
  const auto seconds = [](std::string_view text) {
    return parse_duration("time-limit", text).count();
  };
  CHECK(seconds("90") == 90.0);
  CHECK(seconds("90s") == 90.0);
  CHECK(seconds("1.5h") == 5400.0);
  CHECK(seconds("1h30m") == 5400.0);
  CHECK(seconds("2min5sec") == 125.0);
  CHECK(seconds("250ms") == 0.25);
  CHECK(seconds("1d") == 86'400.0);
  for (const char* text : {"", "s", "0", "0s", "-5s", "5 parsecs", "5m3", "1..5s", "nan", "inf",
                           "1e99", "90s ", "h1", "11y"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(seconds(text), Error);
  }
}

TEST_CASE("draw: follows the probabilities of softmax") {
  const std::vector<float> logits = {0.0F, std::log(3.0F)};  // 1/4 and 3/4
  CHECK(draw(logits, 1.0, 0.0) == 0);
  CHECK(draw(logits, 1.0, 0.2499) == 0);
  CHECK(draw(logits, 1.0, 0.2501) == 1);
  CHECK(draw(logits, 1.0, 0.9999999) == 1);
  CHECK(draw(logits, 0.5, 0.11) == 1);  // sharper: 1/10 and 9/10
  CHECK(draw(logits, 0.0, 0.0) == 1);   // always the likeliest
}

TEST_CASE("progress: the line says everything") {
  const StepRecord step{
      .step = 50, .loss = 2.5, .learning_rate = 1e-3, .samples = 12, .tokens = 768};
  const std::string line = progress_line(
      step,
      {.total_steps = 100, .planned_bytes = 3 << 20, .used_bytes = 3 << 20, .mean_step_ms = 100.0});
  CHECK(line ==
        "step 50/100  loss 2.5000  lr 1.00e-03  120 samples/s  7680 tokens/s  arena 3 MiB of 3 MiB"
        "  ETA 0:05");
}

TEST_CASE("progress: what does not fit into the columns gives way, the loss never") {
  const StepRecord step{
      .step = 50, .loss = 2.5, .learning_rate = 1e-3, .samples = 12, .tokens = 768};
  const ProgressFacts facts{
      .total_steps = 100, .planned_bytes = 3 << 20, .used_bytes = 3 << 20, .mean_step_ms = 100.0};
  const std::string whole = progress_line(step, facts);
  CHECK(progress_line(step, facts, whole.size()) == whole);
  CHECK(progress_line(step, facts, whole.size() - 1) ==
        "step 50/100  loss 2.5000  lr 1.00e-03  120 samples/s  arena 3 MiB of 3 MiB  ETA 0:05");
  CHECK(progress_line(step, facts, 60) ==
        "step 50/100  loss 2.5000  arena 3 MiB of 3 MiB  ETA 0:05");
  CHECK(progress_line(step, facts, 40) == "step 50/100  loss 2.5000  ETA 0:05");
  CHECK(progress_line(step, facts, 0) == "step 50/100  loss 2.5000");
}

TEST_CASE("progress: the first step is no measure of the others") {
  StepTimes times;
  times.add(1000.0);
  CHECK(times.mean_ms() == 0.0);
  times.add(10.0);
  CHECK(times.mean_ms() == 10.0);
  times.add(20.0);
  CHECK(times.mean_ms() == doctest::Approx(11.0));
}

TEST_CASE("resume: differences name the setting and both values") {
  const Json then = Json::object({{"batch", 8}, {"optimizer", Json::object({{"lr", 0.1}})}});
  CHECK(differences(then, then).empty());
  const Json now = Json::object({{"batch", 16}, {"optimizer", Json::object({{"eps", 1}})}});
  CHECK(differences(then, now) == std::vector<std::string>{"batch was 8, is 16",
                                                           "optimizer.lr was 0.1, is not set",
                                                           "optimizer.eps was not set, is 1"});
}

TEST_CASE("resume: a run that names passes as they were called before goes on") {
  const auto settings = [](const std::vector<std::string>& disabled, const std::string& last) {
    return Json::object({{"disable", Json::list(disabled)}, {"stop_after", last}});
  };
  Checkpoint checkpoint;
  checkpoint.state.settings = settings({"merge_products", "simplify"}, "summed_norms");
  CheckpointState now;
  now.settings = settings({"merge_matmuls", "simplify"}, "fuse_norm_grad_add");
  Logger log({.stream = nullptr});
  const auto check = [&](Continuation continuation) {
    check_settings(checkpoint, now, continuation, log);
  };
  CHECK_NOTHROW(check(Continuation::kSameRun));
  now.settings = settings({"merge_matmuls"}, "fuse_norm_grad_add");
  CHECK_THROWS_AS(check(Continuation::kSameRun), Error);
  now.settings = settings({"merge_matmuls", "simplify"}, "fuse_matmul_add");
  CHECK_THROWS_AS(check(Continuation::kSameRun), Error);
  checkpoint.state.settings.set("disable", 3);  // not a list: differs, and nothing else
  CHECK_THROWS_AS(check(Continuation::kSameRun), Error);
}

TEST_CASE(
    "resume: a new run may have another schedule, and a warning says so; the run itself not") {
  const auto settings = [](std::int64_t steps, int batch) {
    return Json::object({{"batch", batch},
                         {"schedule", Json::object({{"kind", "cosine"}, {"total_steps", steps}})}});
  };
  std::string warnings;
  Logger log({.stream = nullptr, .sink = [&](LogLevel level, std::string_view message) {
                if (level == LogLevel::kWarning) warnings += message;
              }});
  Checkpoint checkpoint;
  checkpoint.state.settings = settings(40, 8);
  CheckpointState now;
  now.settings = settings(60, 8);
  CHECK_THROWS_AS(check_settings(checkpoint, now, Continuation::kSameRun, log), Error);
  CHECK(warnings.empty());
  CHECK_NOTHROW(check_settings(checkpoint, now, Continuation::kNewRun, log));
  CHECK(warnings == "the new run has a schedule of its own: total_steps was 40, is 60");
  now.settings = settings(60, 16);
  CHECK_THROWS_AS(check_settings(checkpoint, now, Continuation::kNewRun, log), Error);
}

TEST_CASE("run name: from the model's file, or its folder when it is just called model") {
  CHECK(run_name("nets/gpt.onnx") == "gpt");
  CHECK(run_name("nets/mlp/model.onnx") == "mlp");
  CHECK(run_name("a b.onnx") == "a_b");
}

TEST_CASE("config.toml: one line for each option") {
  const Json options =
      Json::object({{"model", "a\"b"}, {"lr", 0.5}, {"group", Json::array({"x", "y"})}});
  CHECK(config_toml(options) ==
        "# The options of this run with their resolved values.\nmodel = \"a\\\"b\"\nlr = 0.5\n"
        "group = [\"x\",\"y\"]\n");
}

TEST_CASE("metrics forms: words with commas") {
  const auto forms = [](const std::string& text) {
    const Command command{
        .name = "try", .summary = "For tests.", .flags = {{.name = "metrics", .value = "FORMS"}}};
    const std::vector<GivenFlag> given = {{.name = "metrics", .texts = {text}}};
    return metrics_forms(Settings(command, given, [](const std::string&) { return std::nullopt; }));
  };
  CHECK(forms("csv").csv);
  CHECK(!forms("jsonl").csv);
  CHECK(forms("jsonl,tensorboard").tensorboard);
  CHECK_THROWS_WITH(forms("tensorbord"), "--metrics has no form 'tensorbord'");
  CHECK_THROWS_WITH(forms("csv,"), "--metrics has no form ''");
}

TEST_CASE("log level: -q, -v or --log-level") {
  const auto options = [](const std::vector<GivenFlag>& given) {
    const Command command{.name = "try", .summary = "For tests."};
    return log_options(Settings(command, given, [](const std::string&) { return std::nullopt; }));
  };
  CHECK((options({}).level == LogLevel::kInfo));
  CHECK((options({{"quiet", {"on"}}}).level == LogLevel::kWarning));
  CHECK((options({{"verbose", {"on"}}}).level == LogLevel::kDebug));
  CHECK((options({{"log-level", {"error"}}}).level == LogLevel::kError));
  CHECK((options({{"log-format", {"json"}}}).format == LogFormat::kJson));
  CHECK_THROWS_WITH(options({{"quiet", {"on"}}, {"verbose", {"on"}}}),
                    "--quiet and --verbose contradict each other");
  CHECK_THROWS_WITH(options({{"quiet", {"on"}}, {"log-level", {"error"}}}),
                    "--log-level error and --quiet: give one");
}

TEST_CASE("help: lists every verb and exit code") {
  const std::string general = general_help();
  for (const Command& command : all_commands()) {
    CHECK(general.find(std::string(command.summary)) != std::string::npos);
    const std::string help = command_help(command);
    for (const Flag& flag : command.flags) {
      CHECK(help.find(std::string(flag.name)) != std::string::npos);
    }
    for (std::string_view example : command.examples) {
      CHECK(help.find(std::string(example)) != std::string::npos);
    }
  }
  for (int code : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130, 143}) {
    CHECK(exit_codes_help().find(" " + std::to_string(code) + " ") != std::string::npos);
  }
}

TEST_CASE("device_name_of: what the driver calls the GPU that --device means") {
  const CudaDriver driver{.version = 13000, .devices = {"first", "second"}, .problem = {}};
  CHECK(device_name_of("cuda", driver) == "first");
  CHECK(device_name_of("cuda:0", driver) == "first");
  CHECK(device_name_of("cuda:1", driver) == "second");
  for (const char* other : {"cpu", "cuda:2", "cuda:-1", "cuda:x", ""}) {
    CHECK(device_name_of(other, driver).empty());
  }
}

TEST_CASE("error_of: an Error stays as it is, other exceptions get the nearest code") {
  Error given(ErrorCode::kNumeric, "a loss that is NaN");
  given.at("in step 3").hint("a lower --lr");
  const Error same = error_of(given);
  CHECK((same.code() == ErrorCode::kNumeric));
  CHECK(same.message() == "a loss that is NaN");
  CHECK(same.context() == std::vector<std::string>{"in step 3"});
  CHECK(same.hint() == "a lower --lr");
  CHECK((error_of(std::bad_alloc()).code() == ErrorCode::kOutOfMemory));
  CHECK((error_of(std::length_error("too long\n")).code() == ErrorCode::kRunFailed));
  CHECK(error_of(std::length_error("too long\n")).message() == "too long\\n");
}

}  // namespace
}  // namespace trainscope
