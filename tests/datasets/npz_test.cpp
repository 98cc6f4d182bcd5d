// NumPy archives: every stored type, and archives and headers that are damaged or hostile.
#include "datasets/npz.h"

#include <doctest/doctest.h>

#include <functional>

#include "tests/datasets/archive_tools.h"
#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

std::string floats_npy(std::string_view shape, const std::vector<float>& values) {
  return npy(npy_dict("<f4", shape), bytes_of(values));
}

// Two pairs with labels 0 and 2.
std::vector<ZipMember> pairs(int method = 0) {
  return {{"x.npy", floats_npy("(2, 2)", {1, 2, 3, 4}), method},
          {"labels.npy", npy(npy_dict("|u1", "(2,)"), std::string("\x00\x02", 2)), method},
          {"readme.txt", "not an array", method}};
}

Tensor only(const TemporaryFolder& folder, const std::string& array) {
  put(folder / "d.npz", zip({{"a.npy", array}}));
  return open_tensor_archive((folder / "d.npz").string())->tensor("a");
}

}  // namespace

TEST_CASE("npz: stored and deflated arrays feed inputs and labels by name") {
  const TemporaryFolder folder;
  for (const int method : {0, 8}) {
    put(folder / "d.npz", zip(pairs(method)));
    const auto data =
        open_dataset(source("tensors", folder / "d.npz", ",validation=0"), pair_options());
    const Batch batch = read_batch(*data, Split::kTrain, 0, {1, 0});
    const auto x = batch.tensors[0].second.values<float>();
    CHECK(std::vector<float>(x.begin(), x.end()) == std::vector<float>{3, 4, 1, 2});
    CHECK(ints_of(batch.tensors[1].second) == Ints{2, 0});
  }
  const auto archive = open_tensor_archive((folder / "d.npz").string());
  CHECK(archive->names() == std::vector<std::string>{"labels", "x"});
}

TEST_CASE("npz: types and format versions") {
  const TemporaryFolder folder;
  const auto ints = [&](std::string_view descr, std::string_view data) {
    return ints_of(only(folder, npy(npy_dict(descr, "(2,)"), data)));
  };
  CHECK(ints("|i1", std::string("\xff\x02", 2)) == Ints{-1, 2});
  CHECK(ints("|u1", std::string("\xff\x02", 2)) == Ints{255, 2});
  CHECK(ints("<i2", bytes_of(std::vector<std::int16_t>{-5, 9})) == Ints{-5, 9});
  CHECK(ints("<u2", bytes_of(std::vector<std::uint16_t>{65535, 9})) == Ints{65535, 9});
  CHECK(ints("<u4", bytes_of(std::vector<std::uint32_t>{4294967295, 9})) == Ints{4294967295, 9});
  CHECK(ints("<i4", bytes_of(std::vector<std::int32_t>{-7, 9})) == Ints{-7, 9});
  CHECK(ints("<i8", bytes_of(std::vector<std::int64_t>{-7, 9})) == Ints{-7, 9});
  const Tensor truths = only(folder, npy(npy_dict("|b1", "(2,)"), std::string("\x00\x01", 2)));
  CHECK(truths.dtype() == DType::kBool);
  CHECK(truths.values<bool>()[1]);
  const std::string data = bytes_of(std::vector<double>{0.5});
  for (const int version : {1, 2, 3}) {
    const Tensor scalar = only(folder, npy(npy_dict("<f8", "()"), data, version));
    CHECK(scalar.shape() == Shape{});
    CHECK(scalar.values<double>()[0] == 0.5);
  }
  CHECK(only(folder, npy(npy_dict("<f4", "(0, 3)"), "")).shape() == Shape{0, 3});
}

TEST_CASE("npz: arrays that cannot be read") {
  const std::string four = bytes_of(std::vector<float>{1, 2, 3, 4});
  const auto dict = [](const char* text) { return npy(text, std::string(16, '\0')); };
  const std::pair<std::string, const char*> rows[] = {
      {"", "'a' is no .npy array"},
      {"\x93NUMPX and so on", "'a' is no .npy array"},
      {npy(npy_dict("<f4", "(4,)"), four, 4), "of version 4.0: 1.0, 2.0 and 3.0"},
      {npy(npy_dict("<f4", "(4,)"), four).substr(0, 20), "ends within its header"},
      {std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f{}", 14), "has a header of 2147483647 bytes"},
      {npy(npy_dict(">f4", "(4,)"), four), "is '>f4': big-endian"},
      {npy(npy_dict("<f2", "(8,)"), four), "of type '<f2', which cannot be read"},
      {npy(npy_dict("|O", "(2,)"), four), "of type '|O', which cannot be read"},
      {npy(npy_dict("<c8", "(2,)"), four), "of type '<c8'"},
      {dict("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }"), "of records"},
      {dict("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }"), "in Fortran order"},
      {dict("{'descr': '<f4', 'fortran_order': False, }"), "needs descr, fortran_order and shape"},
      {dict("{'descr': '<f4', 'fortran_order': 0, 'shape': (4,), }"), "cannot be read at '0,"},
      {dict("{'descr': '<f4', 'fortran_order': False, 'shape': (-4,), }"), "cannot be read at '-4"},
      {dict("{'descr': '<f4', 'fortran_order': False, 'shape': [4], }"), "cannot be read at '[4]"},
      {dict("{'descr': '<f4', 'shape': (4,), 'shape': (4,), }"), "unexpected key 'shape'"},
      {dict("{'descr': '<f4', 'x': 1}"), "unexpected key 'x'"},
      {dict("import os"), "cannot be read at 'import os"},
      {dict("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), } + 1"), "text follows"},
      {npy(npy_dict("<f4", "(5,)"), four), "is [5] of 4 bytes each by its header, but 16 bytes"},
      {npy(npy_dict("<f4", "(3,)"), four), "is [3] of 4 bytes each by its header, but 16 bytes"},
      {npy(npy_dict("<f4", "(4294967296, 4294967296)"), four), "but 16 bytes follow"},
      {npy(npy_dict("<f4", "(9223372036854775807, 2)"), four), "but 16 bytes follow"},
      {npy(npy_dict("<f4", "(99999999999999999999,)"), four), "cannot be read at '999"},
      {npy(npy_dict("<f4", "(0, 9223372036854775807, 9)"), four), "but 16 bytes follow"},
      {npy(npy_dict("<f4", "(1,1,1,1,1,1,1,1,4)"), four), "has 9 dimensions: at most 8"},
      {npy(npy_dict("|b1", "(2,)"), "\x01\x02"), "a truth value that is neither 0 nor 1"},
  };
  const TemporaryFolder folder;
  for (const auto& row : rows) {
    const char* const message = row.second;
    CAPTURE(message);
    const Error error = error_of([&] { only(folder, row.first); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CAPTURE(error.message());
    CHECK(contains(error.message(), message));
  }
}

TEST_CASE("npz: archives that are damaged or hostile") {
  const std::string good = zip(pairs());
  const std::string packed = zip(pairs(8));
  std::string late = good;  // the directory begins elsewhere than the end record says
  late.insert(0, "PK\x03\x04");
  std::string flipped = packed;
  flipped[60] = static_cast<char>(flipped[60] ^ 0x55);
  const std::pair<std::string, const char*> rows[] = {
      {"PK\x03\x04", "is too short for a zip archive"},
      {good.substr(0, good.size() - 1), "has no end record: it is cut short"},
      {good.substr(0, 100), "has no end record: it is cut short"},
      {good + "x", "has no end record"},
      {late, "directory is not where its end record says"},
      {zip({}), "is a zip archive without .npy arrays"},
      {zip({{"../../x", "y"}}), "is a zip archive without .npy arrays"},
      {zip(pairs(), {.crc = true}), "is damaged: its CRC-32 is"},
      {zip(pairs(), {.entries = true}), "directory is damaged at byte"},
      {zip(pairs(), {.flags = 1}), "'x.npy' is encrypted"},
      {zip(pairs(), {.size_bytes = 5}), "'x.npy' cannot have 5 bytes made of"},
      {zip(pairs(8), {.size_bytes = 4000000000}), "cannot have 4000000000 bytes made of"},
      {zip(pairs(8), {.size_bytes = 145}), "has 144 bytes, its directory says 145"},
      {zip(pairs(8), {.size_bytes = 0xFFFFFFFF}), "more than 4 GiB (zip64)"},
      {zip(pairs(), {.local_offset = 0}), "the local header of 'labels.npy' is damaged"},
      {zip(pairs(), {.local_offset = 4000000000}), "has no bytes 4000000000 to"},
      {zip({{"x.npy", "", 12}}), "compressed by method 12: expected stored (0) or deflated (8)"},
      {zip({{"x.npy", "a"}, {"x.npy", "b"}}), "two entries of the zip archive are called 'x.npy'"},
      {flipped, ""},
  };
  const TemporaryFolder folder;
  for (const auto& row : rows) {
    const char* const message = row.second;
    CAPTURE(message);
    put(folder / "d.npz", row.first);
    const Error error = opening_error(source("tensors", folder / "d.npz"), pair_options());
    CHECK(error.code() == ErrorCode::kBadInput);
    CAPTURE(error.message());
    CHECK(contains(error.message(), message));
  }
}

TEST_CASE("npz: entries that share their bytes are refused") {
  // Two directory records for one local entry: how small archives claim to be endless.
  const TemporaryFolder folder;
  std::string same = zip({{"a.npy", floats_npy("(1,)", {1})}});
  const std::size_t directory = same.find("PK\x01\x02");
  const std::size_t end = same.find("PK\x05\x06");
  const std::string record = same.substr(directory, end - directory);
  const std::string two = little(std::uint16_t{2});
  std::string tail = same.substr(end);
  tail.replace(8, 2, two).replace(10, 2, two);
  tail.replace(12, 4, little(static_cast<std::uint32_t>(2 * record.size())));
  put(folder / "d.npz", same.substr(0, end) + record + tail);
  const Error error = opening_error(source("tensors", folder / "d.npz"), pair_options());
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(contains(error.message(), "two entries of the zip archive are called 'a.npy'"));
}

TEST_CASE("npz: every cut and every flipped byte is an error or reads the same") {
  const TemporaryFolder folder;
  const std::string good = zip(pairs(8));
  const auto reads = [&](std::string_view content) {
    put(folder / "d.npz", content);
    try {
      const auto archive = open_tensor_archive((folder / "d.npz").string());
      for (const std::string& name : archive->names()) archive->tensor(name);
      return true;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kBadInput);
      return false;
    }
  };
  CHECK(reads(good));
  for (std::size_t size = 0; size < good.size(); ++size) CHECK(!reads(good.substr(0, size)));
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    reads(damaged);  // must neither crash nor take another error code
  }
}

}  // namespace trainscope
