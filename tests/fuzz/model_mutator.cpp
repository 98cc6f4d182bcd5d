// Picks fields of the message tree at random and gives them other values.
#include "tests/fuzz/model_mutator.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx_pb.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace trainscope::test {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::array<std::int64_t, 22> kIntegers = {0,
                                                    1,
                                                    2,
                                                    3,
                                                    4,
                                                    7,
                                                    16,
                                                    17,
                                                    -1,
                                                    -2,
                                                    -3,
                                                    127,
                                                    255,
                                                    65536,
                                                    1LL << 31,
                                                    1LL << 32,
                                                    (1LL << 32) + 1,
                                                    1LL << 40,
                                                    -(1LL << 31),
                                                    1LL << 62,
                                                    std::numeric_limits<std::int64_t>::max(),
                                                    std::numeric_limits<std::int64_t>::min()};
constexpr std::array<double, 9> kNumbers = {0,
                                            1,
                                            -1,
                                            0.5,
                                            1e-45,
                                            1e38,
                                            std::numeric_limits<double>::quiet_NaN(),
                                            std::numeric_limits<double>::infinity(),
                                            -0.0};

struct Place {
  Message* message = nullptr;
  const FieldDescriptor* field = nullptr;
};

class Mutator {
 public:
  explicit Mutator(unsigned int seed) : random_(seed) {}

  void run(onnx::ModelProto& model) {
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
      collect(model);
      const Place place = pick(places_);
      below(3) == 0 ? reshape(place) : change(place);
    }
  }

 private:
  // Every field of every message in the tree, set or not, without recursion.
  void collect(Message& root) {
    places_.clear();
    texts_.clear();
    std::vector<Message*> open = {&root};
    while (!open.empty()) {
      Message* message = open.back();
      open.pop_back();
      const Reflection& reflection = *message->GetReflection();
      for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
        const FieldDescriptor* field = message->GetDescriptor()->field(i);
        bool set = field->is_repeated() ? reflection.FieldSize(*message, field) > 0
                                        : reflection.HasField(*message, field);
        // Fields that are set three times: the unset ones are many and mostly without effect.
        for (int n = set ? 3 : 1; n > 0; --n) places_.push_back({message, field});
        if (set) open_field(*message, *field, open);
      }
    }
  }

  void open_field(Message& message, const FieldDescriptor& field, std::vector<Message*>& open) {
    const Reflection& reflection = *message.GetReflection();
    bool text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    if (text && field.is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
        texts_.push_back(reflection.GetRepeatedString(message, &field, i));
      }
    } else if (text) {
      texts_.push_back(reflection.GetString(message, &field));
    }
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return;
    if (!field.is_repeated()) return open.push_back(reflection.MutableMessage(&message, &field));
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      open.push_back(reflection.MutableRepeatedMessage(&message, &field, i));
    }
  }

  std::size_t below(std::size_t count) { return random_() % count; }
  template <typename List>
  typename List::const_reference pick(const List& list) {
    return list[below(list.size())];
  }

  // Removes, doubles or swaps: fields of a message, elements of a list.
  void reshape(const Place& place) {
    const Reflection& reflection = *place.message->GetReflection();
    if (!place.field->is_repeated()) return reflection.ClearField(place.message, place.field);
    int size = reflection.FieldSize(*place.message, place.field);
    if (size == 0) return change(place);
    int at = static_cast<int>(below(static_cast<std::size_t>(size)));
    switch (below(3)) {
      case 0:
        reflection.SwapElements(place.message, place.field, at, size - 1);
        return reflection.RemoveLast(place.message, place.field);
      case 1:
        return reflection.SwapElements(place.message, place.field, at, size - 1);
      default:
        return repeat(place, at);
    }
  }

  void repeat(const Place& place, int at) {
    if (place.field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return set(place, -1);
    const Reflection& reflection = *place.message->GetReflection();
    Message* copy = reflection.AddMessage(place.message, place.field);
    copy->CopyFrom(reflection.GetRepeatedMessage(*place.message, place.field, at));
  }

  void change(const Place& place) {
    if (!place.field->is_repeated()) return set(place, -1);
    int size = place.message->GetReflection()->FieldSize(*place.message, place.field);
    bool add = size == 0 || below(4) == 0;
    set(place, add ? -1 : static_cast<int>(below(static_cast<std::size_t>(size))));
  }

  // The element `at` of a list, a new one for -1; `at` means nothing for a field that is no list.
  void set(const Place& place, int at) {
    switch (place.field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return put<std::int32_t>(place, at, static_cast<std::int32_t>(integer()));
      case FieldDescriptor::CPPTYPE_INT64:
        return put<std::int64_t>(place, at, integer());
      case FieldDescriptor::CPPTYPE_UINT64:
        return put<std::uint64_t>(place, at, static_cast<std::uint64_t>(integer()));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return put<float>(place, at, static_cast<float>(pick(kNumbers)));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return put<double>(place, at, pick(kNumbers));
      case FieldDescriptor::CPPTYPE_ENUM:
        return put<int>(place, at, static_cast<int>(below(22)));
      case FieldDescriptor::CPPTYPE_STRING:
        return put<std::string>(place, at, text());
      default:
        return add_message(place);
    }
  }

  void add_message(const Place& place) {
    const Reflection& reflection = *place.message->GetReflection();
    if (place.field->is_repeated()) {
      reflection.AddMessage(place.message, place.field);
    } else {
      reflection.MutableMessage(place.message, place.field);
    }
  }

  std::int64_t integer() {
    return below(3) == 0 ? static_cast<std::int64_t>(below(32)) : pick(kIntegers);
  }

  // Mostly a name that the model knows already: that makes edges, cycles, duplicates.
  std::string text() {
    std::string result = texts_.empty() ? std::string() : pick(texts_);
    if (below(4) != 0) return result;
    std::size_t size = result.size();
    result.resize(size + 16);
    result.resize(
        LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(result.data()), size, result.size()));
    return result;
  }

  template <typename T>
  void put(const Place& place, int at, const T& value) {
    const Reflection& r = *place.message->GetReflection();
    Message* m = place.message;
    const FieldDescriptor* f = place.field;
    bool list = f->is_repeated();
    auto call = [&](auto set_one, auto set_at, auto add) {
      if (!list) return (r.*set_one)(m, f, value);
      if (at < 0) return (r.*add)(m, f, value);
      (r.*set_at)(m, f, at, value);
    };
    if constexpr (std::is_same_v<T, std::string>) {
      if (!list) return r.SetString(m, f, value);
      if (at < 0) return r.AddString(m, f, value);
      r.SetRepeatedString(m, f, at, value);
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      call(&Reflection::SetInt64, &Reflection::SetRepeatedInt64, &Reflection::AddInt64);
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      call(&Reflection::SetUInt64, &Reflection::SetRepeatedUInt64, &Reflection::AddUInt64);
    } else if constexpr (std::is_same_v<T, float>) {
      call(&Reflection::SetFloat, &Reflection::SetRepeatedFloat, &Reflection::AddFloat);
    } else if constexpr (std::is_same_v<T, double>) {
      call(&Reflection::SetDouble, &Reflection::SetRepeatedDouble, &Reflection::AddDouble);
    } else if (f->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      call(&Reflection::SetEnumValue, &Reflection::SetRepeatedEnumValue, &Reflection::AddEnumValue);
    } else {
      call(&Reflection::SetInt32, &Reflection::SetRepeatedInt32, &Reflection::AddInt32);
    }
  }

  std::minstd_rand random_;
  std::vector<Place> places_;
  std::vector<std::string> texts_;
};

}  // namespace

std::size_t mutate_model(const FuzzBuffer& buffer, unsigned int seed) {
  onnx::ModelProto model;
  const google::protobuf::LogSilencer quiet;
  bool structured =
      seed % 2 == 0 && model.ParseFromArray(buffer.data, static_cast<int>(buffer.size));
  if (structured) {
    Mutator(seed).run(model);
    if (model.ByteSizeLong() <= buffer.max_size) {
      model.SerializeToArray(buffer.data, static_cast<int>(buffer.max_size));
      return model.ByteSizeLong();
    }
  }
  return LLVMFuzzerMutate(buffer.data, buffer.size, buffer.max_size);
}

}  // namespace trainscope::test
