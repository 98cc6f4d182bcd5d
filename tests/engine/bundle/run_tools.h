// The records of a small run.
#pragma once

#include <cstdint>

#include "engine/bundle/format.h"

namespace trainscope {

inline RunSession small_session(std::int64_t from_step = 0) {
  return {.command = {"trainscope", "train", "m.onnx"},
          .program_version = "0.1.0",
          .device = "cpu",
          .threads = 2,
          .isa = "AVX2",
          .options = Json::object({{"steps", 20}, {"lr", 0.001}}),
          .from_step = from_step};
}

inline RunManifest small_manifest() {
  return {.seed = 0xFFFF'FFFF'FFFF'FFF1U,
          .model = Json::object({{"file", "m.onnx"}, {"xxh3", "00aa"}}),
          .data = Json::object({{"kind", "text"}}),
          .sessions = {small_session()}};
}

inline StepRecord step_record(std::int64_t step, double loss = 2.5) {
  return {.step = step,
          .loss = loss,
          .learning_rate = 0.001,
          .gradient_norm = 0.75,
          .step_ms = 12.5,
          .samples = 8,
          .tokens = 512};
}

}  // namespace trainscope
