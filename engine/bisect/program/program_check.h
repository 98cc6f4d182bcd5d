// A step of a program as it runs on its device, one call at a time: does each call read what its
// inputs were given, and make of it what its node is defined to make?
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/plan/program.h"

namespace trainscope {

enum class CallFaultKind : std::uint8_t {
  kReads,  // other bytes than its input was given: overwritten, of another place, or too early
  kMakes,  // another result of its inputs than its node's
  kKeeps,  // the state has other bytes after the step than its update
};
std::string_view name_of(CallFaultKind kind);

struct CallFault {
  CallFaultKind kind = CallFaultKind::kMakes;
  CallId call = kNoCall;
  std::int32_t tile = -1;  // of a tiled section; -1: outside
  Phase phase = Phase::kForward;
  std::string op = {};
  std::string node = {};        // in the program's graph
  std::string definition = {};  // the node that it is or computes once more, before program stages
  std::string source = {};      // in the model
  std::string kernel = {};
  std::string value = {};  // that is read, made or kept
  double error = 0.0;      // of a result, relative to the norm of the exact one
  double limit = 0.0;
};

struct ProgramCheck {
  std::vector<CallFault> faults = {};  // of the first call that has any
  std::int64_t calls = 0;              // that were looked at: all, or until then
  std::int64_t reads = 0;              // operands that were compared, byte by byte
  std::int64_t results = 0;            // nodes' results that were judged
  std::int64_t unjudged = 0;           // nodes that no reference kernel computes
  // The largest error over its limit of all results, and of which node.
  double most = 0.0;
  std::string most_of = {};
};

// `definition`: the graph before order, recompute and batch tiles, which nodes and values of the
// program's know by serial: what a node is made of is said there. Limits of results are those of
// judged_result(). `inputs` by name, of one micro-batch; parameters and states that are not in it
// begin as the graph has them. The step ends at the first fault. In memory are all its values.
ProgramCheck check_program(std::shared_ptr<const Program> program, const Graph& definition,
                           const std::map<std::string, Tensor>& inputs);

}  // namespace trainscope
