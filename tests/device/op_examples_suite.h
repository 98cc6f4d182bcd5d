// The op suite's examples on a device, a kernel and an example at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/exec/reference.h"
#include "engine/ir/op_def.h"
#include "kernels/api/device.h"
#include "tests/device/device_run.h"

namespace trainscope::test {

// One example in one float type.
struct SuiteCase {
  const OpDef* row = nullptr;
  std::string_view text;
  DType float_type = DType::kF32;
};
// Every example of every row, or of the rows of this name alone: type by type, first all rows'
// first examples, so that what is cut short has seen all rows.
std::vector<SuiteCase> suite_cases(const OpTable& ops, std::string_view only);

// What a kernel did on an example.
struct SuiteRow {
  std::string op;
  std::string kernel;
  std::string dtype;
  std::string example;
  double error = 0.0;  // of the worst output, relative
  double limit = 0.0;
  std::vector<std::string> faults = {};  // empty: all is well
  bool device_lost = false;              // nothing of this process will run there any more
};

class ExampleSuite {
 public:
  ExampleSuite(Device& device, const OpTable& ops);
  // A row for each kernel of the device that takes the case.
  std::vector<SuiteRow> run(const SuiteCase& suite_case);

 private:
  std::vector<Tensor> wanted(const SuiteCase& suite_case, const OpCase& op_case) const;
  void check_first_run(const OpCase& op_case, const Kernel& kernel, const std::vector<Tensor>& want,
                       SuiteRow& row);
  void check_repetitions(const OpCase& op_case, const Kernel& kernel, SuiteRow& row);
  DeviceRunResult run_once(const OpCase& op_case, const Kernel& kernel,
                           const DeviceRunOptions& options, std::string_view what, SuiteRow& row);
  void compare(const std::vector<Tensor>& got, const std::vector<Tensor>& want,
               std::string_view what, SuiteRow& row) const;

  DevicePool pool_;
  Evaluate reference_;
  std::vector<Tensor> first_;  // outputs of the run that others must repeat
};

}  // namespace trainscope::test
