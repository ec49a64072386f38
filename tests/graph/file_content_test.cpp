#include "graph/session/file_content.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/expect_error.h"
#include "core/sha256.h"

namespace xpuruntime {
namespace {

namespace fs = std::filesystem;

class FileContentTest : public ::testing::Test {
 protected:
  FileContentTest() { fs::create_directories(folder_); }
  ~FileContentTest() override { fs::remove_all(folder_); }

  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  std::string content() const { return content_of_file(path_, kept_); }
  /// Until what was written may count as settled.
  static void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(2100)); }

  const std::string folder_ =
      (fs::temp_directory_path() / ("file_content_test_" + std::to_string(::getpid()))).string();
  const std::string path_ = folder_ + "/model.onnx";
  const DiskCache kept_{folder_ + "/kept", 1 << 20};
};

TEST_F(FileContentTest, AFileThatIsWrittenAtThisMomentIsReadEachTime) {
  write("one");
  EXPECT_EQ(content(), Sha256().add("one").finish());
  EXPECT_TRUE(kept_.entries().empty());
  write("two");
  EXPECT_EQ(content(), Sha256().add("two").finish());
}

TEST_F(FileContentTest, OneThatNobodyTouchesIsReadOnceAndEveryChangeIsSeen) {
  write("one");
  wait();
  EXPECT_EQ(content(), Sha256().add("one").finish());
  ASSERT_EQ(kept_.entries().size(), 1u);
  // That it is not read again shows in what is kept being believed.
  kept_.put(kept_.entries()[0].key, "what was kept");
  EXPECT_EQ(content(), "what was kept");

  // As many bytes, with the times of the file before: what counts is when it was changed.
  struct stat before = {};
  ASSERT_EQ(stat(path_.c_str(), &before), 0);
  write("two");
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  EXPECT_EQ(content(), Sha256().add("two").finish());
  wait();
  EXPECT_EQ(content(), Sha256().add("two").finish());

  // Another file in its place.
  std::ofstream(folder_ + "/new", std::ios::binary) << "six";
  fs::rename(folder_ + "/new", path_);
  EXPECT_EQ(content(), Sha256().add("six").finish());
}

TEST_F(FileContentTest, WhatCannotBeReadIsAnError) {
  expect_error(ErrorCode::io_error, "no_such_file", [&] { content_of_file(folder_ + "/no_such_file", kept_); });
  expect_error(ErrorCode::io_error, "no regular file", [&] { content_of_file(folder_, kept_); });
}

}  // namespace
}  // namespace xpuruntime
