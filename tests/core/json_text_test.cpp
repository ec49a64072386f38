#include "core/json_text.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "core/expect_error.h"
#include "core/in_child.h"

namespace xpuruntime {
namespace {

namespace fs = std::filesystem;

const JsonSource source = {"read_thing", "thing text: ", "thing", 2};

/// A folder of its own that goes with the test.
class JsonFile : public ::testing::Test {
 protected:
  JsonFile() {
    std::string name = (fs::temp_directory_path() / "xrt_json_XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~JsonFile() override {
    fs::permissions(folder, fs::perms::owner_all);
    fs::remove_all(folder);
  }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {})); }
  static std::string content(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  fs::path folder;
};

void expect_corrupt(const std::string& text, const std::string& part) {
  expect_error(ErrorCode::corrupt_data, part, [&] { parse_json(text, source); });
}

TEST(ParseJson, KeepsTheOrderOfTheFields) {
  EXPECT_EQ(parse_json(R"({"b": 1, "a": [1, 2]})", source).dump(), R"({"b":1,"a":[1,2]})");
}

TEST(ParseJson, NamesFunctionSourceLineAndColumn) {
  expect_corrupt("{\n  \"a\": 1,\n  \"b\": x\n}", "[read_thing] thing text: ");
  expect_corrupt("{\n  \"a\": 1,\n  \"b\": x\n}", "line 3, column 8");
  expect_corrupt("x", "line 1, column 1");
  expect_corrupt("{\"a\": 1", "line 1, column 8");
  expect_corrupt("", "line 1, column 1");
}

TEST(ParseJson, RefusesCommentsTrailingTextAndTrailingCommas) {
  expect_corrupt("// hello\n{}", "line 1, column 1");
  expect_corrupt("{} {}", "line 1, column 4");
  expect_corrupt("{\"a\": 1,}", "line 1, column 9");
  expect_corrupt("{'a': 1}", "line 1, column 2");
  expect_corrupt("{\"a\": NaN}", "line 1, column 7");
}

TEST(ParseJson, RefusesTextAfterAZeroByte) { expect_corrupt(std::string("{}\0x", 4), "line 1, column 3"); }

TEST(ParseJson, RefusesNumbersThatDoNotFit) { expect_corrupt("{\"a\": 1e999}", "not JSON"); }

TEST(ParseJson, ShowsBytesThatAreNoTextAsQuestionMarks) {
  try {
    parse_json("{\"\xff\xfe\": 1}", source);
    FAIL();
  } catch (const Error& error) {
    for (const char c : std::string_view(error.what())) EXPECT_TRUE(c >= ' ' && c <= '~') << error.what();
  }
}

TEST(ParseJson, RefusesANameThatStandsTwiceInOneObject) {
  expect_invalid("field 'a' is a duplicate", [] { parse_json(R"({"a": 1, "b": 2, "a": 3})", source); });
  expect_invalid("line 1, column 16: field 'a.x' is a duplicate",
                 [] { parse_json(R"({"a": {"x": 1, "x": 2}})", source); });
}

TEST(ParseJson, TakesTheSameNameInDifferentObjects) {
  EXPECT_NO_THROW(parse_json(R"({"a": {"x": 1}, "b": {"x": 1, "a": 2}, "x": 3})", source));
  EXPECT_NO_THROW(parse_json(R"([{"x": 1}, {"x": 2}])", source));
}

// Whoever looks for each name among all before it is not done with these within the time that a test has.
TEST(ParseJson, TakesAMillionNamesInOneObject) {
  std::string text = "{";
  for (int i = 0; i < 1000000; ++i) text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":{}";
  EXPECT_EQ(parse_json(text + "}", source).size(), 1000000u);
  expect_invalid("field '999999' is a duplicate", [&] { parse_json(text + ",\"999999\":1}", source); });
}

TEST(ParseJson, RefusesNestingBeforeItCostsAnything) {
  expect_corrupt(R"({"a": {"b": {"c": 1}}})", "line 1, column 14: nested deeper than a thing can be");
  expect_corrupt(std::string(900000, '['), "nested deeper");
}

TEST(FindField, KnowsLineAndColumnOfNamesAndElements) {
  const std::string text = "{\n  \"a\": [1, {\"b.c\": 2}],\n\t\"d\\u0065\": {\"f\": \"x\\\"]}\", \"g\": null}\n}";
  EXPECT_EQ(find_field(text, "a"), (JsonPlace{2, 3}));
  EXPECT_EQ(find_field(text, "a[0]"), (JsonPlace{2, 9}));
  EXPECT_EQ(find_field(text, "a[1]"), (JsonPlace{2, 12}));
  EXPECT_EQ(find_field(text, "a[1].b.c"), (JsonPlace{2, 13}));
  EXPECT_EQ(find_field(text, "de.g"), (JsonPlace{3, 28}));
  EXPECT_EQ(find_field(text, "a[2]"), std::nullopt);
  EXPECT_EQ(find_field(text, "g"), std::nullopt);
  for (const char* broken : {"", "{", "{\"a\"", "{\"a\":", "[", "[1", "{\"a\\", "x", "{\"a\": [}"}) {
    EXPECT_EQ(find_field(broken, "b"), std::nullopt) << broken;
  }
  EXPECT_EQ(find_field(std::string(100000, '['), "b"), std::nullopt);
}

// A path of its own for each element would be a long name many times over.
TEST(FindField, TakesALongNameWithManyElements) {
  const std::string name(1 << 20, 'a');
  std::string text = "{\"" + name + "\": [0";
  for (int i = 1; i < 200000; ++i) text += ",0";
  text += "], \"b\": 1}";
  EXPECT_EQ(find_field(text, "b"), (JsonPlace{1, text.size() - 6}));
  EXPECT_EQ(find_field(text, name + "[199999]"), (JsonPlace{1, text.size() - 10}));
  EXPECT_EQ(find_field(text, name + "[200000]"), std::nullopt);
}

TEST(JsonSource, NamesThePlaceOfAField) {
  JsonSource placed = source;
  placed.text = "{\n \"kernl\": 1}";
  constexpr std::string_view known[] = {"kernel"};
  expect_invalid("thing text: line 2, column 2: field 'kernl' is not", [&] { placed.refuse_unknown("kernl", known); });
  expect_invalid("thing text: field 'gone' is missing", [&] { placed.refuse_field("gone", "is missing"); });
}

TEST(JsonSource, ListsTheNamesNearAnUnknownField) {
  constexpr std::string_view known[] = {"kernel", "mode"};
  expect_invalid("did you mean kernel?", [&] { source.refuse_unknown("kernl", known); });
  expect_invalid("did you mean kernel?", [&] { source.refuse_unknown("preferences.matmul.kernl", known); });
  expect_invalid("field 'zzz' is not a thing field; remove it, or check that this is a thing",
                 [&] { source.refuse_unknown("zzz", known); });
}

TEST_F(JsonFile, ReadsBackWhatWasWritten) {
  write_file_atomically(path("a.json"), "{\"a\": 1}\n", source);
  EXPECT_EQ(read_text_file(path("a.json"), source), "{\"a\": 1}\n");
  EXPECT_EQ(files(), 1u);
}

TEST_F(JsonFile, ReplacesTheOldFileAndLeavesNothingElse) {
  write_file_atomically(path("a.json"), std::string(100000, 'x'), source);
  write_file_atomically(path("a.json"), "new", source);
  EXPECT_EQ(content(path("a.json")), "new");
  EXPECT_EQ(files(), 1u);
}

TEST_F(JsonFile, IsAsReadableAsTheUsersOtherFiles) {
  std::ofstream(path("other")) << "x";
  write_file_atomically(path("a.json"), "x", source);
  EXPECT_EQ(fs::status(path("a.json")).permissions(), fs::status(path("other")).permissions());
}

TEST_F(JsonFile, KeepsThePermissionsOfTheFileThatItReplaces) {
  for (const mode_t mode : {0600, 0640, 0444, 0755}) {
    std::ofstream(path("a.json")) << "old";
    ASSERT_EQ(chmod(path("a.json").c_str(), mode), 0);
    fs::create_symlink("a.json", folder / "link");
    write_file_atomically(path("link"), "new", source);
    EXPECT_EQ(content(path("a.json")), "new");
    EXPECT_EQ(static_cast<mode_t>(fs::status(path("a.json")).permissions()), mode);
    fs::remove(folder / "link");
    fs::remove(folder / "a.json");
  }
}

TEST_F(JsonFile, IsTheOldOneWhereTheDiskIsFull) {
  write_file_atomically(path("a.json"), "old", source);
  const int status = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {4096, 4096};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    try {
      write_file_atomically(path("a.json"), std::string(100000, 'x'), source);
    } catch (const Error& error) {
      return std::string_view(error.what()).find("cannot be written") != std::string_view::npos;
    }
    return false;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content(path("a.json")), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(JsonFile, IsNeverSeenHalfWritten) {
  const std::string a(50000, 'a');
  const std::string b(70000, 'b');
  write_file_atomically(path("a.json"), a, source);
  std::vector<std::thread> writers;
  for (const std::string* text : {&a, &b}) {
    writers.emplace_back([&, text] {
      for (int i = 0; i < 40; ++i) write_file_atomically(path("a.json"), *text, source);
    });
  }
  for (int i = 0; i < 200; ++i) {
    const std::string seen = read_text_file(path("a.json"), source);
    ASSERT_TRUE(seen == a || seen == b) << seen.size();
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(files(), 1u);
}

TEST_F(JsonFile, SaysSoWhenTheFolderIsMissing) {
  expect_error(ErrorCode::io_error, "cannot be written",
               [&] { write_file_atomically(path("no/such/a.json"), "x", source); });
  EXPECT_EQ(files(), 0u);
}

TEST_F(JsonFile, LeavesNoTemporaryFileWhenTheTargetCannotBeReplaced) {
  fs::create_directory(folder / "a.json");
  expect_error(ErrorCode::io_error, "cannot be written", [&] { write_file_atomically(path("a.json"), "x", source); });
  EXPECT_EQ(files(), 1u);
}

TEST_F(JsonFile, WritesTheFileBehindALink) {
  fs::create_directory(folder / "behind");
  std::ofstream(path("behind/a.json")) << "old";
  fs::create_symlink("behind/a.json", folder / "first");
  fs::create_symlink(folder / "first", folder / "second");
  fs::create_symlink("behind/new.json", folder / "dangling");
  for (const char* link : {"first", "second"}) {
    write_file_atomically(path(link), link, source);
    EXPECT_TRUE(fs::is_symlink(folder / link));
    EXPECT_EQ(content(path("behind/a.json")), link);
  }
  write_file_atomically(path("dangling"), "new", source);
  EXPECT_TRUE(fs::is_symlink(folder / "dangling"));
  EXPECT_EQ(content(path("behind/new.json")), "new");
  EXPECT_EQ(files(), 4u);
  fs::create_symlink("round", folder / "round");
  expect_error(ErrorCode::io_error, "cannot be written", [&] { write_file_atomically(path("round"), "x", source); });
  EXPECT_TRUE(fs::is_symlink(folder / "round"));
}

TEST_F(JsonFile, RefusesWhatIsNoFile) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "link");
  for (const char* name : {"pipe", "link"}) {
    expect_error(ErrorCode::io_error, "it is a pipe; name a file",
                 [&] { write_file_atomically(path(name), "x", source); });
  }
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  expect_error(ErrorCode::io_error, "it is a folder; name a file",
               [&] { write_file_atomically(folder.string(), "x", source); });
}

TEST_F(JsonFile, KeepsTheOldContentWhenTheFolderMayNotBeWritten) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  write_file_atomically(path("a.json"), "old", source);
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  expect_error(ErrorCode::io_error, "cannot be written", [&] { write_file_atomically(path("a.json"), "new", source); });
  EXPECT_EQ(content(path("a.json")), "old");
}

TEST_F(JsonFile, SaysSoWhenThereIsNothingToRead) {
  expect_error(ErrorCode::io_error, "cannot be read", [&] { read_text_file(path("missing"), source); });
  expect_error(ErrorCode::io_error, "cannot be read", [&] { read_text_file(folder.string(), source); });
  const auto error_of = [&](const std::string& file) -> std::string {
    try {
      read_text_file(file, source);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  ASSERT_EQ(mkfifo(path("full").c_str(), 0600), 0);
  EXPECT_NE(error_of(path("full")).find("save the pipe's output"), std::string::npos);
  EXPECT_EQ(error_of(folder.string()).find("pipe"), std::string::npos);
}

// In a child that is stopped where it waits: nobody writes to the pipe.
TEST_F(JsonFile, ReadsNoPipeNoDeviceAndNoFolder) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "link");
  const std::pair<std::string, std::string> cases[] = {{path("pipe"), "it is a pipe"},
                                                       {path("link"), "it is a pipe"},
                                                       {"/dev/zero", "it is a device"},
                                                       {folder.string(), "it is a folder"}};
  for (const auto& [file, reason] : cases) {
    const int status = in_child([&, &name = file, &part = reason] {
      try {
        read_text_file(name, source);
      } catch (const Error& error) {
        return error.code() == ErrorCode::io_error &&
               std::string_view(error.what()).find(part + "; name a regular file") != std::string_view::npos;
      }
      return false;
    });
    EXPECT_EQ(status, 0) << file;
    EXPECT_NE(flaw_of_output_file(file).find(reason), std::string::npos);
  }
  EXPECT_EQ(flaw_of_output_file(path("new")), "");
  EXPECT_NE(flaw_of_output_file(path("missing/new")).find("there is no folder"), std::string::npos);
  EXPECT_NE(flaw_of_new_file(path("missing/new")).find("there is no folder"), std::string::npos);
  EXPECT_NE(flaw_of_new_file("/proc/new").find("no file can be made in its folder"), std::string::npos);
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  const auto before = files();
  EXPECT_EQ(flaw_of_new_file(path("new")), "");
  EXPECT_EQ(files(), before);
  std::filesystem::create_symlink("round", path("round"));
  EXPECT_NE(flaw_of_output_file(path("round")).find("cannot be written"), std::string::npos);
}

TEST_F(JsonFile, WritesNoDatabaseAndNothingThatLiesBesideOne) {
  const std::string bytes("SQLite format 3\0and pages", 25);
  std::ofstream(path("store")) << bytes;
  fs::create_symlink("store", folder / "link");
  fs::create_symlink("store-wal", folder / "log");  // of a file that is still to be made
  for (const char* name : {"store", "link", "log", "store-wal", "store-shm", "store-journal"}) {
    expect_error(ErrorCode::io_error, "it is a store or belongs to one",
                 [&] { write_file_atomically(path(name), "{}", source); });
  }
  EXPECT_EQ(content(path("store")), bytes);
  EXPECT_EQ(files(), 3u);
  write_file_atomically(path("other-wal"), "{}", source);  // of no database
}

TEST_F(JsonFile, KnowsAFileByAllItsNames) {
  std::ofstream(path("there")) << "x";
  fs::create_hard_link(path("there"), path("again"));
  fs::create_symlink("there", folder / "link");
  fs::create_symlink("new", folder / "to_new");
  EXPECT_TRUE(same_file(path("there"), path("again")));
  EXPECT_TRUE(same_file(path("there"), path("link")));
  EXPECT_TRUE(same_file(path("new"), path("to_new")));
  EXPECT_TRUE(same_file(path("new"), path("./new")));
  EXPECT_TRUE(same_file("new.of.nobody", (fs::current_path() / "new.of.nobody").string()));
  EXPECT_FALSE(same_file(path("there"), path("new")));
  EXPECT_FALSE(same_file(path("new"), path("newer")));
}

TEST_F(JsonFile, RefusesFilesOverAMebibyte) {
  std::ofstream(path("fits")) << std::string(1 << 20, ' ');
  EXPECT_EQ(read_text_file(path("fits"), source).size(), std::size_t{1} << 20);
  std::ofstream(path("large")) << std::string((1 << 20) + 1, ' ');
  expect_error(ErrorCode::corrupt_data, "larger than any thing may be, which is 1 MiB",
               [&] { read_text_file(path("large"), source); });
}

}  // namespace
}  // namespace xpuruntime
