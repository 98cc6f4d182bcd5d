// JSON values: building, looking up, writing. Parsing is in json_parse.cpp.
#include "engine/core/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// How many bytes from `i` on make one valid character, 0 for none.
std::size_t character_bytes(std::string_view text, std::size_t i) {
  for (std::size_t size = 1; size <= 4 && i + size <= text.size(); ++size) {
    if (is_valid_utf8(text.substr(i, size))) return size;
  }
  return 0;
}

// A control character or one with a meaning in JSON strings.
std::string escaped(char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
}

bool needs_escape(char c) {
  return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = character_bytes(text, i);
    if (size == 0) {
      out += kReplacement;
    } else if (needs_escape(text[i])) {
      out += escaped(text[i]);
    } else {
      out += text.substr(i, size);
    }
    i += size == 0 ? 1 : size;
  }
  out += '"';
}

void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const std::string text = fmt::format("{}", value);
  out += text;
  // 3 would read back as an integer.
  if (text.find_first_of(".e") == std::string::npos) out += ".0";
}

// Writes one value tree; recursion is bounded by Json::kMaxDepth.
class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  void value(const Json& json, int depth) {
    const bool container = json.is_array() || json.is_object();
    require(!container || depth < Json::kMaxDepth, ErrorCode::kBadInput,
            "JSON nested deeper than {} levels cannot be written", Json::kMaxDepth);
    switch (json.type()) {
      case JsonType::kNull:
        out_ += "null";
        break;
      case JsonType::kBool:
        out_ += json.as_bool() ? "true" : "false";
        break;
      case JsonType::kInt:
        out_ += std::to_string(json.as_int());
        break;
      case JsonType::kDouble:
        append_double(out_, json.as_number());
        break;
      case JsonType::kString:
        append_string(out_, json.as_string());
        break;
      case JsonType::kArray:
        array(json.as_array(), depth);
        break;
      case JsonType::kObject:
        object(json.as_object(), depth);
        break;
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void array(const JsonArray& items, int depth) {
    out_ += '[';
    for (const Json& item : items) {
      if (&item != items.data()) out_ += ',';
      new_line(depth + 1);
      value(item, depth + 1);
    }
    if (!items.empty()) new_line(depth);
    out_ += ']';
  }

  void object(const JsonObject& members, int depth) {
    out_ += '{';
    for (const JsonMember& member : members) {
      if (&member != members.begin()) out_ += ',';
      new_line(depth + 1);
      append_string(out_, member.key);
      out_ += indent_ > 0 ? ": " : ":";
      value(member.value, depth + 1);
    }
    if (!members.empty()) new_line(depth);
    out_ += '}';
  }

  void new_line(int depth) {
    if (indent_ <= 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_) * static_cast<std::size_t>(depth), ' ');
  }

  int indent_;
  std::string out_;
};

}  // namespace

std::string_view name_of(JsonType type) {
  switch (type) {
    case JsonType::kNull:
      return "null";
    case JsonType::kBool:
      return "true or false";
    case JsonType::kInt:
      return "an integer";
    case JsonType::kDouble:
      return "a number";
    case JsonType::kString:
      return "a string";
    case JsonType::kArray:
      return "an array";
    case JsonType::kObject:
      return "an object";
  }
  return "?";
}

JsonObject::JsonObject() = default;
JsonObject::JsonObject(const JsonObject& other) = default;
JsonObject::JsonObject(JsonObject&& other) noexcept = default;
JsonObject& JsonObject::operator=(const JsonObject& other) = default;
JsonObject& JsonObject::operator=(JsonObject&& other) noexcept = default;
JsonObject::~JsonObject() = default;

void JsonObject::set(std::string key, Json value) {
  if (Json* there = find(key)) {
    *there = std::move(value);
    return;
  }
  members_.push_back({std::move(key), std::move(value)});
  if (members_.size() <= kIndexFrom) return;
  for (std::size_t i = index_.size(); i < members_.size(); ++i) index_.emplace(members_[i].key, i);
}

const Json* JsonObject::find(std::string_view key) const {
  if (members_.size() > kIndexFrom) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &members_[found->second].value;
  }
  for (const JsonMember& member : members_) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Json* JsonObject::find(std::string_view key) {
  return const_cast<Json*>(std::as_const(*this).find(key));
}

std::size_t JsonObject::size() const { return members_.size(); }
const JsonMember* JsonObject::begin() const { return members_.data(); }
const JsonMember* JsonObject::end() const { return members_.data() + members_.size(); }

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> keys;
  keys.reserve(members_.size());
  for (const JsonMember& member : members_) keys.push_back(member.key);
  return keys;
}

bool JsonObject::operator==(const JsonObject& other) const {
  return std::equal(begin(), end(), other.begin(), other.end(),
                    [](const JsonMember& a, const JsonMember& b) {
                      return a.key == b.key && a.value == b.value;
                    });
}

Json::Json(JsonArray value) : value_(std::move(value)) {}
Json::Json(JsonObject value) : value_(std::move(value)) {}

Json Json::array(std::initializer_list<Json> items) { return {JsonArray(items)}; }

Json Json::object() { return {JsonObject()}; }

Json Json::object(std::initializer_list<JsonMember> members) {
  JsonObject object;
  for (const JsonMember& member : members) object.set(member.key, member.value);
  return {std::move(object)};
}

bool Json::as_bool() const { return convert<bool>(""); }
std::int64_t Json::as_int() const { return convert<std::int64_t>(""); }

double Json::as_number() const {
  if (const auto* v = std::get_if<double>(&value_)) return *v;
  if (const auto* v = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*v);
  fail_type("a number", "");
}

const std::string& Json::as_string() const {
  if (const auto* v = std::get_if<std::string>(&value_)) return *v;
  fail_type("a string", "");
}

const JsonArray& Json::as_array() const {
  if (const auto* v = std::get_if<JsonArray>(&value_)) return *v;
  fail_type("an array", "");
}

const JsonObject& Json::as_object() const {
  if (const auto* v = std::get_if<JsonObject>(&value_)) return *v;
  fail_type("an object", "");
}

const Json* Json::find(std::string_view key) const { return as_object().find(key); }

const Json& Json::at(std::string_view key) const {
  if (const Json* value = find(key)) return *value;
  const std::vector<std::string> keys = as_object().keys();
  throw Error(ErrorCode::kBadInput, fmt::format("key '{}' is missing", printable(key)))
      .hint(nearest_hint(key, keys));
}

const Json& Json::at(std::size_t index) const {
  const JsonArray& items = as_array();
  require(index < items.size(), ErrorCode::kBadInput, "item {} is missing: the array has {}", index,
          items.size());
  return items[index];
}

const JsonArray& Json::array_at(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_array()) value.fail_type("an array", key);
  return value.as_array();
}

const JsonObject& Json::object_at(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_object()) value.fail_type("an object", key);
  return value.as_object();
}

std::size_t Json::size() const {
  if (is_array()) return as_array().size();
  return is_object() ? as_object().size() : 0;
}

Json& Json::set(std::string key, Json value) {
  if (is_null()) value_ = JsonObject();
  CHECK_INVARIANT(is_object());
  std::get<JsonObject>(value_).set(std::move(key), std::move(value));
  return *this;
}

Json& Json::push_back(Json item) {
  if (is_null()) value_ = JsonArray();
  CHECK_INVARIANT(is_array());
  std::get<JsonArray>(value_).push_back(std::move(item));
  return *this;
}

std::string Json::dump(int indent) const {
  Writer writer(indent);
  writer.value(*this, 0);
  return writer.take();
}

bool Json::operator==(const Json& other) const { return value_ == other.value_; }

void Json::fail_type(std::string_view expected, std::string_view key) const {
  const std::string where = key.empty() ? "" : fmt::format("key '{}': ", printable(key));
  const bool show = !is_array() && !is_object() && !is_null();
  const std::string found = show ? fmt::format("{} ({})", name_of(type()), printable(dump(), 60))
                                 : std::string(name_of(type()));
  fail(ErrorCode::kBadInput, "{}expected {}, found {}", where, expected, found);
}

void Json::fail_range(std::int64_t value, std::string_view key) {
  const std::string where = key.empty() ? "" : fmt::format("key '{}': ", printable(key));
  fail(ErrorCode::kBadInput, "{}{} is out of range", where, value);
}

}  // namespace trainscope
