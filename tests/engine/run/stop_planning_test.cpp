// A stop while a plan within a budget is searched for: another thread asks, the search ends soon.
#include <doctest/doctest.h>

#include <chrono>
#include <span>
#include <string>
#include <thread>

#include "engine/models/models.h"
#include "engine/session.h"

namespace trainscope::test {
namespace {

using Clock = std::chrono::steady_clock;

// Many small layers: within 1 byte there is no plan, which takes many seconds to find out.
OnnxModel deep_model() {
  const ModelArguments arguments = {
      {"layers", 24}, {"heads", 2}, {"embedding", 16}, {"vocab", 50}, {"context", 16}};
  const std::string bytes = onnx_bytes(build_model("gpt2", arguments, 1));
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

CompileOptions within_one_byte() {
  CompileOptions options;
  options.import.dims = {{"batch", 2}, {"sequence", 16}};
  options.training.loss = {.output = "logits"};
  options.recompute = {.mode = RecomputeMode::kAuto, .budget_bytes = 1};
  options.passes.keep = KeepGraphs::kLast;
  options.lower.threads = 2;
  return options;
}

}  // namespace

TEST_CASE("stop: a search for a plan within a budget ends soon after it is asked to") {
  const OnnxModel model = deep_model();
  for (const int delay_ms : {0, 150, 600, 1500}) {
    CAPTURE(delay_ms);
    std::stop_source stop;
    Clock::time_point asked;
    std::thread asking;
    CompileOptions options = within_one_byte();
    options.watch = {.stop = stop.get_token(), .progress = [&](const Progress& moment) {
                       if (moment.work != "recompute" || asking.joinable()) return;
                       asking = std::thread([&] {
                         std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
                         asked = Clock::now();
                         stop.request_stop();
                       });
                     }};
    CHECK_THROWS_AS(compile(model, options), Stopped);
    const Clock::time_point ended = Clock::now();
    asking.join();
    const double seconds = std::chrono::duration<double>(ended - asked).count();
    MESSAGE(delay_ms << " ms: ended " << seconds << " s after it was asked to");
    CHECK(seconds < 2.0);  // half a second on an idle machine
  }
}

}  // namespace trainscope::test
