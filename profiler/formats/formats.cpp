// The table of formats.
#include "profiler/formats/formats.h"

#include <algorithm>
#include <vector>

namespace trainscope::profiler {

#define FORMAT(function, name, help) ProfileFormat function##_format();
#include "profiler/formats/formats.def"
#undef FORMAT

const ProfileFormat* format_named(std::string_view name) {
  static const std::vector<ProfileFormat> kFormats = {
#define FORMAT(function, name, help) function##_format(),
#include "profiler/formats/formats.def"
#undef FORMAT
  };
  const auto found = std::ranges::find(kFormats, name, &ProfileFormat::name);
  return found == kFormats.end() ? nullptr : &*found;
}

void write_format(const ProfileFormat& format, const FormatInput& input, bool compressed,
                  const WriteText& write) {
  if (!compressed && !format.always_compressed) return format.write(input, write);
  GzipText gzip(write);
  format.write(input, [&gzip](std::string_view text) { gzip.add(text); });
  gzip.finish();
}

}  // namespace trainscope::profiler
