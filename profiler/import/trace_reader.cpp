// Finds where each value ends, and lets the JSON parser have it alone.
#include "profiler/import/trace_reader.h"

#include <string_view>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope::profiler {
namespace {

constexpr int kEnd = -1;

// Characters one by one, with their position.
class Characters {
 public:
  explicit Characters(const ByteSource& source) : source_(source) { advance_piece(); }

  int peek() const { return at_ < piece_.size() ? static_cast<unsigned char>(piece_[at_]) : kEnd; }
  void skip() {
    if (piece_[at_] == '\n') ++line_;
    ++byte_;
    if (++at_ == piece_.size()) advance_piece();
  }
  void skip_blanks() {
    for (int c = peek(); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek()) skip();
  }

  std::uint64_t byte() const { return byte_; }
  std::uint64_t line() const { return line_; }

 private:
  void advance_piece() {
    piece_ = source_();
    at_ = 0;
  }

  const ByteSource& source_;
  std::string_view piece_;
  std::size_t at_ = 0;
  std::uint64_t byte_ = 0;
  std::uint64_t line_ = 1;
};

std::string shown(int c) {
  if (c == kEnd) return "the end of the file";
  const char text = static_cast<char>(c);
  return "'" + printable(std::string_view(&text, 1)) + "'";
}

class Reader {
 public:
  Reader(const ByteSource& source, const TakeEvent& take) : in_(source), take_(take) {}

  TraceFrame run() {
    in_.skip_blanks();
    if (in_.peek() == '[') {
      events();
    } else if (in_.peek() == '{') {
      object();
    } else {
      wrong("a trace begins with [ or {");
    }
    in_.skip_blanks();
    if (in_.peek() != kEnd) {
      throw Error(ErrorCode::kBadInput, "text behind the end of the trace, at " + place())
          .hint(
              "two sessions that wrote to one file do this: give each profiler a file of its own");
    }
    return std::move(frame_);
  }

 private:
  std::string place() const {
    return "byte " + std::to_string(in_.byte()) + " (line " + std::to_string(in_.line()) + ")";
  }
  [[noreturn]] void wrong(std::string_view expected) const {
    if (in_.peek() == kEnd) {
      throw Error(ErrorCode::kBadInput,
                  "the trace ends in the middle, at " + place() + ": " + std::string(expected))
          .hint("the file was cut short: let the profiler end, and export its trace again");
    }
    throw Error(ErrorCode::kBadInput, "no trace event JSON at " + place() + ": " +
                                          std::string(expected) + ", found " + shown(in_.peek()))
        .hint("import takes the traces of PyTorch's and ONNX Runtime's profilers");
  }
  void expect(char c, std::string_view otherwise) {
    in_.skip_blanks();
    if (in_.peek() != c) wrong(otherwise);
    in_.skip();
  }
  // Behind an item: true where another follows.
  bool goes_on(char end) {
    in_.skip_blanks();
    if (in_.peek() == ',') {
      in_.skip();
      return true;
    }
    if (in_.peek() != end) wrong(end == ']' ? "expected , or ]" : "expected , or }");
    in_.skip();
    return false;
  }
  bool is_empty(char end) {
    in_.skip_blanks();
    if (in_.peek() != end) return false;
    in_.skip();
    return true;
  }

  void put() {
    if (text_.size() >= kMostEventBytes) {
      fail(ErrorCode::kBadInput, "the value before {} is longer than {}", place(),
           human_bytes(kMostEventBytes));
    }
    text_ += static_cast<char>(in_.peek());
    in_.skip();
  }
  void string() {
    put();
    while (in_.peek() != '"') {
      if (in_.peek() == '\\') put();
      if (in_.peek() == kEnd) wrong("a string has no end");
      put();
    }
    put();
  }
  // Collects brackets and what is between them: their kinds are the parser's to check.
  void nested() {
    int depth = 0;
    do {
      const int c = in_.peek();
      if (c == kEnd) wrong("a value has no end");
      if (c == '"') {
        string();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      if (depth > Json::kMaxDepth) {
        fail(ErrorCode::kBadInput, "nested deeper than {} levels at {}", Json::kMaxDepth, place());
      }
      put();
    } while (depth > 0);
  }
  void plain() {
    for (int c = in_.peek(); c != kEnd && c != ',' && c != ']' && c != '}' && c != ' ' &&
                             c != '\n' && c != '\r' && c != '\t';
         c = in_.peek()) {
      put();
    }
  }

  // The next value, parsed.
  Json value() {
    in_.skip_blanks();
    text_.clear();
    const std::string begin = place();
    if (in_.peek() == '"') {
      string();
    } else if (in_.peek() == '{' || in_.peek() == '[') {
      nested();
    } else {
      plain();
    }
    if (text_.empty()) wrong("expected a value");
    try {
      return Json::parse(text_);
    } catch (const Error& error) {
      throw Error(ErrorCode::kBadInput, "the value at " + begin + ": " + error.message())
          .hint("the file is damaged: export the trace again");
    }
  }

  void events() {
    require(!frame_.has_events, ErrorCode::kBadInput, "traceEvents a second time, at {}", place());
    frame_.has_events = true;
    in_.skip();
    if (is_empty(']')) return;
    EventPlace at;
    do {
      in_.skip_blanks();
      at.byte = in_.byte();
      at.line = in_.line();
      const Json event = value();
      try {
        take_(event, at);
      } catch (Error& error) {
        error.at("event " + std::to_string(at.index) + " at byte " + std::to_string(at.byte) +
                 " (line " + std::to_string(at.line) + ")");
        throw;
      }
      ++at.index;
    } while (goes_on(']'));
  }

  void object() {
    frame_.is_object = true;
    in_.skip();
    if (is_empty('}')) return;
    do {
      in_.skip_blanks();
      if (in_.peek() != '"') wrong("expected a key");
      const std::string key = value().as_string();
      expect(':', "expected :");
      in_.skip_blanks();
      if (key == "traceEvents" && in_.peek() == '[') {
        events();
        continue;
      }
      frame_.members.set(key, value());
      require(frame_.members.size() <= kMostMembers, ErrorCode::kBadInput,
              "more than {} members beside the events, at {}", kMostMembers, place());
    } while (goes_on('}'));
  }

  Characters in_;
  const TakeEvent& take_;
  TraceFrame frame_;
  std::string text_;
};

}  // namespace

TraceFrame read_trace(const ByteSource& source, const TakeEvent& take) {
  return Reader(source, take).run();
}

}  // namespace trainscope::profiler
