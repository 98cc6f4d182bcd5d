// The bytes of any file as ids below 256.
#include <cstdint>
#include <utility>
#include <vector>

#include "datasets/format.h"
#include "datasets/readers/windows.h"
#include "engine/core/file.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{8} << 30;

std::unique_ptr<Dataset> open_bytes(const DataSpec& spec, const DatasetOptions& options) {
  WindowPlan plan = plan_windows(spec, options);
  const std::string bytes = read_file(spec.file(), kMostBytes);
  std::vector<std::uint16_t> ids;
  for (const char byte : bytes) ids.push_back(static_cast<unsigned char>(byte));
  return make_windows(
      spec, options, std::move(plan),
      {.ids = std::make_unique<StoredIds<std::uint16_t>>(std::move(ids)),
       .unit = "bytes",
       .description = Json::object({{"kind", spec.format}, {"file", spec.file()}})});
}

}  // namespace

DataFormat bytes_format() {
  return {.name = "bytes", .form = "bytes:FILE[,validation=FRACTION]", .open = open_bytes};
}

}  // namespace trainscope
