// A row for each call of each thread, as it was recorded.
#include <string>

#include "engine/core/error.h"
#include "profiler/analysis/breakdown.h"
#include "profiler/formats/formats.h"

namespace trainscope::profiler {
namespace {

std::string cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

// What is the same in all rows of a call.
std::string facts_of(const PlanView& plan, const PlanCall& call) {
  const std::string_view node = onnx_node_of(plan, call);
  std::string text;
  for (const std::string_view word :
       {plan.name_of(call), node, layer_of(node), plan.op_of(call), plan.text(call.kernel),
        name_of(call.phase), name_of(call.kind), plan.text(call.dtype)}) {
    text += "," + cell(word);
  }
  return text + "," + std::to_string(call.flops) + "," + std::to_string(call.bytes_read) + "," +
         std::to_string(call.bytes_written) + "\n";
}

void write_calls(const FormatInput& input, const WriteText& write) {
  std::vector<std::string> facts;
  for (const PlanCall& call : input.plan.calls) facts.push_back(facts_of(input.plan, call));
  write(
      "call,thread,begin_ns,ns,name,node,layer,op,kernel,phase,kind,dtype,flops,bytes_read,"
      "bytes_written\n");
  for (const EventChunk& chunk : input.events->chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (chunk.kind[i] != EventKind::kCall) continue;
      require(chunk.id[i] < facts.size(), ErrorCode::kBadInput,
              "the profile names call {}, but the plan has {} calls: they are not of one session",
              chunk.id[i], facts.size());
      write(std::to_string(chunk.id[i]) + "," + std::to_string(chunk.thread[i]) + "," +
            std::to_string(chunk.begin_ns[i]) + "," + std::to_string(chunk.value[i]) +
            facts[chunk.id[i]]);
    }
  }
}

}  // namespace

ProfileFormat calls_csv_format() { return {.name = "calls-csv", .write = write_calls}; }

}  // namespace trainscope::profiler
