// JSON values of our own: parse with limits, build, look up with good errors, write.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "engine/core/error.h"

namespace trainscope {

class Json;
struct JsonMember;

enum class JsonType { kNull, kBool, kInt, kDouble, kString, kArray, kObject };

// "an integer", "a string": for messages.
std::string_view name_of(JsonType type);

struct JsonLimits {
  std::size_t max_bytes = std::size_t{256} << 20;
  int max_depth = 64;
};

using JsonArray = std::vector<Json>;

// Members in the order of insertion, keys distinct. Lookup is fast for large objects too.
class JsonObject {
 public:
  JsonObject();
  JsonObject(const JsonObject& other);
  JsonObject(JsonObject&& other) noexcept;
  JsonObject& operator=(const JsonObject& other);
  JsonObject& operator=(JsonObject&& other) noexcept;
  ~JsonObject();

  void set(std::string key, Json value);         // a key that is there keeps its place
  const Json* find(std::string_view key) const;  // null when absent
  Json* find(std::string_view key);
  std::size_t size() const;
  bool empty() const { return size() == 0; }
  const JsonMember* begin() const;
  const JsonMember* end() const;
  std::vector<std::string> keys() const;
  bool operator==(const JsonObject& other) const;

 private:
  std::vector<JsonMember> members_;
  // Position by key, kept once there are more than kIndexFrom members.
  static constexpr std::size_t kIndexFrom = 16;
  std::map<std::string, std::size_t, std::less<>> index_;
};

// A JSON value. Integers are int64; an integer beyond that range (in a file, or a uint64) becomes a
// double. Build: Json::object({{"steps", 10}, {"names", Json::array({"a", "b"})}}).
class Json {
 public:
  static constexpr int kMaxDepth = 64;

  // The implicit constructors are what makes building readable.
  // NOLINTBEGIN(google-explicit-constructor)
  Json() = default;
  Json(std::nullptr_t) {}
  Json(std::same_as<bool> auto value) : value_(value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T value) {
    if (std::in_range<std::int64_t>(value)) {
      value_ = static_cast<std::int64_t>(value);
    } else {
      value_ = static_cast<double>(value);
    }
  }
  Json(std::floating_point auto value) : value_(static_cast<double>(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(JsonArray value);
  Json(JsonObject value);
  // NOLINTEND(google-explicit-constructor)

  static Json array(std::initializer_list<Json> items = {});
  static Json object();
  static Json object(std::initializer_list<JsonMember> members);
  // An array of a range's elements: Json::list(names), Json::list(shape.span()).
  template <typename Range>
  static Json list(const Range& items) {
    Json result = array();
    for (const auto& item : items) result.push_back(Json(item));
    return result;
  }

  // Throws kBadInput with line and column: syntax, invalid UTF-8, too deep, too long, duplicate
  // key.
  static Json parse(std::string_view text, const JsonLimits& limits = {});

  JsonType type() const { return static_cast<JsonType>(value_.index()); }
  bool is_null() const { return type() == JsonType::kNull; }
  bool is_bool() const { return type() == JsonType::kBool; }
  bool is_int() const { return type() == JsonType::kInt; }
  bool is_number() const { return is_int() || type() == JsonType::kDouble; }
  bool is_string() const { return type() == JsonType::kString; }
  bool is_array() const { return type() == JsonType::kArray; }
  bool is_object() const { return type() == JsonType::kObject; }

  // Each throws kBadInput when the value is of another type: "expected an integer, found a string".
  bool as_bool() const;
  std::int64_t as_int() const;
  double as_number() const;  // integers too
  const std::string& as_string() const;
  const JsonArray& as_array() const;
  const JsonObject& as_object() const;

  // Of an object. `find`: null when absent; `at` throws, naming the key (and the nearest one).
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  const Json* find(std::string_view key) const;
  const Json& at(std::string_view key) const;
  // Of an array; throws beyond its end.
  const Json& at(std::size_t index) const;
  // Members of an object, items of an array, else 0.
  std::size_t size() const;

  // The member as an array or object; errors name it.
  const JsonArray& array_at(std::string_view key) const;
  const JsonObject& object_at(std::string_view key) const;
  // The member as a bool, an integer type (range checked), double or std::string; errors name it.
  template <typename T>
  T get(std::string_view key) const {
    return at(key).convert<T>(key);
  }
  // The same, `fallback` when the key is absent.
  template <typename T>
  T get_or(std::string_view key, T fallback) const {
    const Json* value = find(key);
    return value == nullptr ? std::move(fallback) : value->convert<T>(key);
  }
  std::string get_or(std::string_view key, const char* fallback) const {
    return get_or<std::string>(key, fallback);
  }

  // A null value becomes an object or array at the first `set` or `push_back`.
  Json& set(std::string key, Json value);
  Json& push_back(Json item);

  // One line, or indented lines when indent > 0. Doubles are written shortest so that they read
  // back equal, always with '.' or an exponent; NaN and infinities, which JSON lacks, as null.
  // Bytes that are not UTF-8 become U+FFFD. Throws beyond kMaxDepth.
  std::string dump(int indent = 0) const;

  bool operator==(const Json& other) const;

 private:
  [[noreturn]] void fail_type(std::string_view expected, std::string_view key) const;
  [[noreturn]] static void fail_range(std::int64_t value, std::string_view key);

  template <typename T>
  T convert(std::string_view key) const {
    if constexpr (std::same_as<T, bool>) {
      if (const auto* v = std::get_if<bool>(&value_)) return *v;
      fail_type("true or false", key);
    } else if constexpr (std::integral<T>) {
      const auto* v = std::get_if<std::int64_t>(&value_);
      if (v == nullptr) fail_type("an integer", key);
      if (!std::in_range<T>(*v)) fail_range(*v, key);
      return static_cast<T>(*v);
    } else if constexpr (std::floating_point<T>) {
      if (!is_number()) fail_type("a number", key);
      return static_cast<T>(as_number());
    } else {
      static_assert(std::same_as<T, std::string>, "bool, integer, floating or std::string");
      const auto* v = std::get_if<std::string>(&value_);
      if (v == nullptr) fail_type("a string", key);
      return *v;
    }
  }

  // In the order of JsonType.
  std::variant<std::monostate, bool, std::int64_t, double, std::string, JsonArray, JsonObject>
      value_;
};

struct JsonMember {
  std::string key;
  Json value;
};

// A whole file parsed; errors name the file.
Json read_json_file(const std::filesystem::path& path, const JsonLimits& limits = {});

}  // namespace trainscope
