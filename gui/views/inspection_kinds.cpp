// What each number of an inspection is, with its unit.
#include "gui/views/inspection.h"

namespace trainscope::gui {

std::string_view meaning_of(InspectionKind kind) {
  switch (kind) {
    case InspectionKind::kFlops:
      return "Floating-point operations in a step, by the definition of the op";
    case InspectionKind::kBytesRead:
      return "Bytes of the inputs that are read in a step";
    case InspectionKind::kBytesWritten:
      return "Bytes of the results that are written in a step";
    case InspectionKind::kWorkspace:
      return "Bytes that the kernel needs beside inputs and results: of the call that needs most";
    case InspectionKind::kValueBytes:
      return "Bytes of the elements of the tensor";
    case InspectionKind::kBuffer:
      return "Number of the buffer in the plan";
    case InspectionKind::kOffset:
      return "Bytes from the begin of its memory space to its first byte";
    case InspectionKind::kBufferBytes:
      return "Bytes that the buffer takes";
    case InspectionKind::kBirth:
      return "Position in the step, in calls, where it is written first";
    case InspectionKind::kDeath:
      return "Position in the step, in calls, from which on nobody needs it";
    case InspectionKind::kLife:
      return "Calls from the first write to the last use";
    case InspectionKind::kCall:
      return "Number of the call in the step, from 0";
    case InspectionKind::kCallCount:
      return "Calls of a step that the kernel computes";
    case InspectionKind::kTime:
      return "Milliseconds of a step, of the thread that drives it: mean of the profiled steps";
    case InspectionKind::kShare:
      return "Percent of the time of the profiled steps";
    case InspectionKind::kGigaflops:
      return "10^9 floating-point operations that the kernel executes, per second";
    case InspectionKind::kGigabytes:
      return "10^9 bytes that are read and written, each operand once, per second";
    case InspectionKind::kRoof:
      return "Percent: the time that it would take at the rates measured of the machine, of the "
             "time that it took";
    case InspectionKind::kHeading:
    case InspectionKind::kText:
    case InspectionKind::kLink:
    case InspectionKind::kNote:
      break;
  }
  return {};
}

}  // namespace trainscope::gui
