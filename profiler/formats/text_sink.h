// Where a format's text goes, piece by piece; and the same compressed.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

namespace trainscope::profiler {

// Puts a piece behind those before, or throws.
using WriteText = std::function<void(std::string_view)>;

// A gzip stream of what it is given. finish() is its end: without it the stream is cut short.
class GzipText {
 public:
  explicit GzipText(WriteText write);
  ~GzipText();
  GzipText(const GzipText&) = delete;
  GzipText& operator=(const GzipText&) = delete;

  void add(std::string_view text);
  void finish();

 private:
  struct Stream;
  void run(int flush);

  WriteText write_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace trainscope::profiler
