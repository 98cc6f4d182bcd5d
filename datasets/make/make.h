// Made-up data sets as files, so that formats can be tried and tested without any network.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trainscope {

struct MakeOptions {
  std::filesystem::path folder = {};
  std::int64_t examples = 0;    // images, rows, lines of text or tokens; 0: the kind's own number
  std::int64_t vocabulary = 0;  // of tokens and bpe; 0: the kind's own number
  std::uint64_t seed = 0;
};

struct MadeData {
  std::vector<std::filesystem::path> files;
  std::string source;  // what --data takes
};

struct MakerRow {
  std::string_view name;
  std::string_view what;
  std::int64_t examples = 0;  // when nothing is asked for
  MadeData (*make)(const MakeOptions&) = nullptr;
};

const std::vector<MakerRow>& makers();
// Writes each file whole; the same options give the same bytes. Throws kUsage for an unknown kind,
// kIo when a file cannot be written.
MadeData make_data(std::string_view kind, MakeOptions options);

// The makers.
MadeData make_digits(const MakeOptions& options);
MadeData make_text(const MakeOptions& options);
MadeData make_bpe(const MakeOptions& options);
MadeData make_tokens(const MakeOptions& options);
MadeData make_csv(const MakeOptions& options);
MadeData make_tensors(const MakeOptions& options);

// The lines that make_text writes.
std::string made_text(std::int64_t lines, std::uint64_t seed);

// Streams of the generator under the seed, one for each use.
inline constexpr std::uint64_t kMakeStreams = std::uint64_t{5} << 56;

}  // namespace trainscope
