// What checking programs call by call found, for people and as facts.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "engine/bisect/program/program_bisect.h"

namespace trainscope {

Json call_fault_json(const CallFault& fault);
// "backward, call 57, Relu '/1/Relu' by relu: reads other bytes than '/0/Gemm_output_0' was given".
std::string call_fault_text(const CallFault& fault);

// Of the parts that make a program of a graph.
Outcome print(const ProgramBisect& found, const std::string& run);
Outcome print(const std::vector<DeviceCheck>& devices, const std::string& run);

}  // namespace trainscope
