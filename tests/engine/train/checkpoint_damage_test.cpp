// Damaged and hostile checkpoints: each is refused with the file and the reason.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <functional>

#include "engine/core/hash.h"
#include "engine/train/checkpoint.h"
#include "engine/train/checkpoint_manifest.h"
#include "tests/engine/core/core_test_tools.h"
#include "tests/engine/train/checkpoint_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

void edit(const fs::path& file, std::string_view from, std::string_view to) {
  put(file, replaced(get(file), from, to));
}

// A manifest that is right about itself and lists these files.
void put_manifest(const fs::path& folder, const std::vector<FileRecord>& files) {
  put(folder / "manifest.json", manifest_text({.step = 5, .samples_seen = 60}, files));
}

FileRecord record_of(const fs::path& folder, const std::string& name) {
  const std::string text = get(folder / (name + ".safetensors"));
  return {.name = name,
          .size_bytes = text.size(),
          .content_hash = hash_bytes(std::as_bytes(std::span(text)))};
}

// The model file replaced by `text`, with a manifest that agrees.
void put_model(const fs::path& folder, std::string_view text) {
  put(folder / "model.safetensors", text);
  put_manifest(folder, {record_of(folder, "model"), record_of(folder, "optimizer")});
}

struct Attack {
  std::string name;
  std::function<void(const fs::path&)> act;
  std::string expected;  // a part of the message
};

std::vector<Attack> manifest_attacks() {
  const auto put_text = [](std::string text) {
    return [text](const fs::path& f) { put(f / "manifest.json", text); };
  };
  const auto change = [](std::string from, std::string to) {
    return [from, to](const fs::path& f) { edit(f / "manifest.json", from, to); };
  };
  return {
      {"missing", [](const fs::path& f) { fs::remove(f / "manifest.json"); },
       "manifest.json is missing: the checkpoint was never completed"},
      {"empty", put_text(""), "JSON, line 1"},
      {"cut short", [](const fs::path& f) { fs::resize_file(f / "manifest.json", 100); },
       "JSON, line"},
      {"not JSON", put_text("step = 5\n"), "JSON, line 1"},
      {"another type", put_text("[1]\n"), "expected an object, found an array"},
      {"a key twice", put_text(R"({"format":1,"format":1})"), "duplicate key 'format'"},
      {"deep", put_text(std::string(1000, '[')), "nested deeper than 64 levels"},
      {"a later format", change("\"format\": 1", "\"format\": 2"),
       "checkpoint format 2: this program reads 1"},
      {"format 0", change("\"format\": 1", "\"format\": 0"), "checkpoint format 0"},
      {"no format", change("\"format\"", "\"formal\""), "key 'format' is missing"},
      {"format as text", change("\"format\": 1", "\"format\": \"1\""), "expected an integer"},
      {"negative step", change("\"step\": 5", "\"step\": -5"), "key 'step' is -5"},
      {"huge step", change("\"step\": 5", "\"step\": 99999999999999999999"),
       "key 'step': expected an integer"},
      {"text as samples", change("\"samples_seen\": 60", "\"samples_seen\": \"60\""),
       "key 'samples_seen': expected an integer, found a string"},
      {"seed beyond 64 bits", change("18446744073709551601", "28446744073709551601"),
       "key 'seed': expected a whole number"},
      {"negative seed", change("18446744073709551601", "-1"), "key 'seed'"},
      {"settings as list", change("\"settings\": {", "\"settings\": [{"), "JSON, line"},
      {"no files", change("\"files\"", "\"filer\""), "key 'files' is missing"},
      {"a number as hash", change("\"xxh3\": \"", "\"xxh3\": 1, \"x\": \""),
       "key 'xxh3': expected a string"},
      {"a short hash", change("\"xxh3\": \"", "\"xxh3\": \"0"), "16 hexadecimal digits"},
      {"another step", change("\"step\": 5", "\"step\": 6"), "its hash does not match"},
      {"other settings", change("\"batch\": 12", "\"batch\": 13"), "its hash does not match"},
      {"other blanks", change("\"step\": 5", "\"step\":  5"), "its hash does not match"},
      {"a key more", change("\"step\": 5", "\"stop\": 1, \"step\": 5"), "its hash does not match"},
      {"bytes after the end",
       [](const fs::path& f) { put(f / "manifest.json", get(f / "manifest.json") + "\n"); },
       "its hash does not match"},
      {"a folder",
       [](const fs::path& f) {
         fs::remove(f / "manifest.json");
         fs::create_directory(f / "manifest.json");
       },
       "manifest.json': it is a folder, not a regular file"},
      {"too long", [](const fs::path& f) { fs::resize_file(f / "manifest.json", 17 << 20); },
       "more than the allowed 16 MiB"},
  };
}

std::vector<Attack> file_attacks() {
  const auto list = [](std::vector<FileRecord> records) {
    return [records](const fs::path& f) { put_manifest(f, records); };
  };
  const auto model = [](std::string text) {
    return [text](const fs::path& f) { put_model(f, text); };
  };
  using namespace std::string_literals;
  return {
      {"missing", [](const fs::path& f) { fs::remove(f / "model.safetensors"); },
       "model.safetensors is missing"},
      {"a byte short",
       [](const fs::path& f) {
         fs::resize_file(f / "model.safetensors", fs::file_size(f / "model.safetensors") - 1);
       },
       "bytes, the manifest says"},
      {"a byte long",
       [](const fs::path& f) {
         put(f / "optimizer.safetensors", get(f / "optimizer.safetensors") + "x");
       },
       "optimizer.safetensors has"},
      {"of another step",
       [](const fs::path& f) {
         const fs::path other = SmallTraining(6).save(f.parent_path() / "other");
         fs::copy_file(other / "model.safetensors", f / "model.safetensors",
                       fs::copy_options::overwrite_existing);
       },
       "model.safetensors is damaged"},
      {"two files exchanged",
       [](const fs::path& f) {
         const std::string model_text = get(f / "model.safetensors");
         put(f / "model.safetensors", get(f / "optimizer.safetensors"));
         put(f / "optimizer.safetensors", model_text);
       },
       "the manifest says"},
      {"a folder",
       [](const fs::path& f) {
         fs::remove(f / "model.safetensors");
         fs::create_directory(f / "model.safetensors");
       },
       "model.safetensors': it is a folder, not a regular file"},
      {"a FIFO",
       [](const fs::path& f) {
         fs::remove(f / "model.safetensors");
         REQUIRE(::mkfifo((f / "model.safetensors").c_str(), 0600) == 0);
       },
       "model.safetensors': it is a FIFO, not a regular file"},
      {"a link to a device",
       [](const fs::path& f) {
         fs::remove(f / "model.safetensors");
         fs::create_symlink("/dev/zero", f / "model.safetensors");
       },
       "model.safetensors': it is a symbolic link, not a regular file"},
      {"a link to a good file",
       [](const fs::path& f) {
         fs::rename(f / "model.safetensors", f.parent_path() / "elsewhere");
         fs::create_symlink("../elsewhere", f / "model.safetensors");
       },
       "model.safetensors': it is a symbolic link, not a regular file"},
      {"a dangling link",
       [](const fs::path& f) {
         fs::remove(f / "model.safetensors");
         fs::create_symlink("nowhere", f / "model.safetensors");
       },
       "model.safetensors': it is a symbolic link, not a regular file"},
      {"a name that leads out", list({{.name = "../other/model"}}), "file name '../other/model'"},
      {"an absolute name", list({{.name = "/etc/passwd"}}), "file name '/etc/passwd'"},
      {"an empty name", list({{.name = ""}}), "file name ''"},
      {"a name with NUL", list({{.name = "model\0x"s}}), "file name 'model\\x00x'"},
      {"a file twice",
       [](const fs::path& f) {
         put_manifest(f, {record_of(f, "model"), record_of(f, "model")});
       },
       "lists model twice"},
      {"not safetensors", model("hello, this is no tensor file"), "model.safetensors"},
      {"empty", model(""), "0 bytes are too few"},
      {"header of 2^63 bytes", model("\0\0\0\0\0\0\0\x80{}"s), "beyond the format's limit"},
      {"header beyond the file", model("\x40\0\0\0\0\0\0\0{}"s), "should have 64 bytes"},
      {"bytes after the tensors", model("\x02\0\0\0\0\0\0\0{}xyz"s), "belong to no"},
  };
}

void check_refused(const Attack& attack) {
  CAPTURE(attack.name);
  const TemporaryFolder folder;
  const fs::path saved = SmallTraining(5).save(folder.path());
  REQUIRE(is_small_training(load_checkpoint(saved), 5));
  attack.act(saved);
  const Error error = error_of([&] { load_checkpoint(saved); });
  CHECK(error.code() == ErrorCode::kBadInput);
  std::string text = error.message();
  for (const std::string& where : error.context()) text += " " + where;
  CAPTURE(text);
  CHECK(contains(text, attack.expected));
  CHECK(contains(text, saved.string()));
}

}  // namespace

TEST_CASE("checkpoint: damaged manifests are refused") {
  for (const Attack& attack : manifest_attacks()) check_refused(attack);
}

TEST_CASE("checkpoint: damaged files are refused") {
  for (const Attack& attack : file_attacks()) check_refused(attack);
}

TEST_CASE("checkpoint: a folder that is not there") {
  const Error error = error_of([] { load_checkpoint("/nonexistent/step-00000001"); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(contains(error.message(), "there is no such folder"));
}

TEST_CASE("checkpoint: one whose name is of another step is refused") {
  const TemporaryFolder folder;
  const fs::path saved = SmallTraining(5).save(folder.path());
  for (const char* name : {"step-00000006", "step-5", "copy"}) {
    CAPTURE(name);
    fs::copy(saved, folder / name);
    const Error error = error_of([&] { load_checkpoint(folder / name); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK(contains(error.message(), name));
    CHECK(contains(error.message(), "its manifest is of step 5"));
  }
  // A link that the user names is followed to the real name.
  fs::create_directory_symlink("step-00000005", folder / "latest");
  CHECK(is_small_training(load_checkpoint(folder / "latest"), 5));
}

TEST_CASE("latest checkpoint: a renamed one is passed over, and so is a link to a whole one") {
  const TemporaryFolder folder;
  const fs::path root = folder / "checkpoints";
  SmallTraining(5).save(root);
  fs::rename(SmallTraining(6).save(root), root / "step-00000007");
  SmallTraining(8).save(folder / "outside");
  fs::create_directory_symlink("../outside/step-00000008", root / "step-00000008");
  Logger log({.stream = nullptr});
  log.open_file(open_root(folder.path()) / "log");
  CHECK(load_latest_checkpoint(open_root(root), log)->state.step == 5);
  const std::string lines = get(folder / "log");
  CHECK(contains(lines, "checkpoint step-00000007 is not usable"));
  CHECK(contains(lines, "its manifest is of step 6"));
  CHECK(contains(lines, "checkpoint step-00000008 is not usable"));
  CHECK(contains(lines, "it is a symbolic link, not a folder"));
}

TEST_CASE("checkpoint: saving and tidying never reaches outside through links") {
  const TemporaryFolder folder;
  const fs::path root = folder / "checkpoints";
  const Folder opened = open_root(root);
  SmallTraining(2).save(folder / "outside");
  const auto outside = [&] { return get(folder / "outside/step-00000002/manifest.json"); };
  const std::string before = outside();
  for (const char* name : {".saving-step-00000003", ".replaced-step-00000001", ".saving-mine",
                           ".trainscope-1-0.tmp", "step-00000001", "step-00000003"}) {
    fs::create_directory_symlink("../outside/step-00000002", root / name);
  }
  SmallTraining(3).save(root);
  remove_old_checkpoints(opened, 3, 1);
  CHECK(list_directory(root) == std::vector<std::string>{"step-00000003"});
  CHECK(is_small_training(load_checkpoint(root / "step-00000003"), 3));
  CHECK(outside() == before);
  CHECK(list_directory(folder / "outside/step-00000002").size() == 3);
}

TEST_CASE("best checkpoint: a link or FIFO in its place is refused, not written or read") {
  const TemporaryFolder folder;
  const fs::path root = folder / "checkpoints";
  const Folder opened = open_root(root);
  put(folder / "outside", R"({"step": 1, "loss": 2})");
  for (const bool link : {true, false}) {
    fs::remove(root / "best.json");
    if (link) fs::create_symlink("../outside", root / "best.json");
    if (!link) REQUIRE(::mkfifo((root / "best.json").c_str(), 0600) == 0);
    CHECK(error_of([&] { find_best_checkpoint(opened); }).code() == ErrorCode::kBadInput);
    CHECK(error_of([&] { note_best_checkpoint(opened, {.step = 7, .loss = 1.0}); }).code() ==
          ErrorCode::kBadInput);
  }
  CHECK(get(folder / "outside") == R"({"step": 1, "loss": 2})");
}

TEST_CASE("checkpoint: every changed byte is noticed") {
  const TemporaryFolder folder;
  const fs::path saved = SmallTraining(5).save(folder.path());
  for (const char* name : {"manifest.json", "model.safetensors", "optimizer.safetensors"}) {
    const std::string text = get(saved / name);
    for (std::size_t i = 0; i < text.size(); ++i) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
      put(saved / name, changed);
      const Error error = error_of([&] { load_checkpoint(saved); });
      CHECK(error.code() == ErrorCode::kBadInput);
    }
    put(saved / name, text);
  }
  CHECK(is_small_training(load_checkpoint(saved), 5));
}

TEST_CASE("checkpoint: every shorter file is noticed") {
  const TemporaryFolder folder;
  const fs::path saved = SmallTraining(5).save(folder.path());
  for (const char* name : {"manifest.json", "model.safetensors"}) {
    const std::string text = get(saved / name);
    for (std::size_t size = 0; size < text.size(); ++size) {
      put(saved / name, std::string_view(text).substr(0, size));
      CHECK(error_of([&] { load_checkpoint(saved); }).code() == ErrorCode::kBadInput);
    }
    put(saved / name, text);
  }
}

}  // namespace trainscope
