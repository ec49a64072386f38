#include "backends/opencl/disk_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "backends/opencl/own_folder.h"

namespace xpuruntime::opencl {
namespace {

const std::string key = std::string(64, 'a');

TEST(DiskCache, KeepsWhatWasPut) {
  const OwnFolder folder;
  const DiskCache cache;
  EXPECT_FALSE(cache.get(key));
  cache.put(key, "value");
  EXPECT_EQ(cache.get(key), "value");
  cache.put(key, "");
  EXPECT_EQ(cache.get(key), "") << "a note has no bytes";
  cache.put(key, std::string("a\0b\n", 4));
  EXPECT_EQ(cache.get(key), std::string("a\0b\n", 4));
  cache.remove(key);
  EXPECT_FALSE(cache.get(key));
}

TEST(DiskCache, RemovesADamagedEntry) {
  const OwnFolder folder;
  const DiskCache cache;
  cache.put(key, "a value that is long enough");
  const std::string file = folder.files().at(0);
  for (const std::size_t kept : {0u, 5u, 40u, 90u}) {
    cache.put(key, "a value that is long enough");
    std::filesystem::resize_file(file, kept);
    EXPECT_FALSE(cache.get(key)) << kept;
    EXPECT_TRUE(folder.files().empty()) << kept;
  }
  cache.put(key, "a value that is long enough");
  std::fstream(file, std::ios::in | std::ios::out).seekp(-3, std::ios::end).put('X');
  EXPECT_FALSE(cache.get(key));
}

TEST(DiskCache, AnEntryThatCannotBeReadIsMadeAnew) {
  const OwnFolder folder;
  const DiskCache cache;
  cache.put(key, "value");
  for (const auto& file : folder.files()) {
    std::filesystem::remove(file);
    std::filesystem::create_directory(file);
  }
  EXPECT_FALSE(cache.get(key));
  cache.put(key, "value");
  EXPECT_EQ(cache.get(key), "value");
}

TEST(DiskCache, DropsWhatWasUsedLongestAgo) {
  const OwnFolder folder;
  const DiskCache cache(folder.path(), 10000);
  const auto number = [](int i) { return std::string(63, 'b') + static_cast<char>('0' + i); };
  for (int i = 0; i < 8; ++i) {
    cache.put(number(i), std::string(1000, 'x'));
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
  }
  EXPECT_TRUE(cache.get(number(0))) << "nothing had to go yet, and now it is the one used last";
  std::this_thread::sleep_for(std::chrono::milliseconds(15));
  cache.put(number(8), std::string(2000, 'x'));
  EXPECT_TRUE(cache.get(number(0)));
  EXPECT_TRUE(cache.get(number(8)));
  EXPECT_FALSE(cache.get(number(1)));
  std::uint64_t bytes = 0;
  for (const std::string& file : folder.files()) bytes += std::filesystem::file_size(file);
  EXPECT_LE(bytes, 10000u);
  cache.put(key, std::string(9000, 'x'));
  EXPECT_FALSE(cache.get(key)) << "what would push out most others is not kept";
}

TEST(DiskCache, LeavesOtherFilesAlone) {
  const OwnFolder folder;
  std::ofstream(folder.path() + "/mine.txt") << std::string(5000, 'x');
  const DiskCache cache(folder.path(), 100);
  cache.put(key, "x");
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/mine.txt"));
}

TEST(DiskCache, RemovesWhatAKilledProcessLeft) {
  const OwnFolder folder;
  const DiskCache cache;
  const std::string old = folder.path() + "/" + key + ".entry.12345-0",
                    young = folder.path() + "/" + key + ".entry.12-0";
  for (const std::string& name : {old, young}) std::ofstream(name) << "half of an ent";
  std::filesystem::last_write_time(old, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_FALSE(cache.get(key));
  cache.put(key, "whole");
  EXPECT_EQ(cache.get(key), "whole");
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(young)) << "somebody may be writing it";
}

TEST(DiskCache, WithoutAFolderKeepsNothing) {
  const DiskCache nowhere(""), forbidden("/proc/no_such_folder");
  nowhere.put(key, "value");
  forbidden.put(key, "value");
  EXPECT_FALSE(nowhere.get(key));
  EXPECT_FALSE(forbidden.get(key));
}

TEST(DiskCache, AProcessKilledWhileItWritesLeavesNoHalfEntry) {
  const OwnFolder folder;
  const std::string value(1 << 20, 'v');
  for (int round = 0; round < 5; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      const DiskCache cache;
      for (;;) cache.put(key, value);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 7 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const auto got = DiskCache().get(key);
    EXPECT_TRUE(!got || *got == value);
  }
}

TEST(DiskCache, ServesEightProcessesThatFillIt) {
  const OwnFolder folder;
  const auto work = [&](int process) {
    const DiskCache cache(folder.path(), 200000);
    for (int i = 0; i < 60; ++i) {
      const std::string name = std::string(60, 'c') + std::to_string(1000 + (i * 7 + process) % 40);
      const std::string value = name + std::string(4000, 'v');
      if (const auto got = cache.get(name); got && *got != value) return false;
      cache.put(name, value);
    }
    return true;
  };
  std::vector<pid_t> children;
  for (int process = 0; process < 8; ++process) {
    const pid_t child = fork();
    if (child == 0) _exit(work(process) ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  for (const std::string& file : folder.files()) EXPECT_TRUE(file.ends_with(".entry")) << file;
}

TEST(DiskCache, LiesInTheUsersCacheFolder) {
  const OwnFolder folder;
  EXPECT_EQ(DiskCache::default_folder(), folder.path());
  unsetenv("XPURUNTIME_OPENCL_CACHE");
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before == nullptr ? "" : before;
  setenv("XDG_CACHE_HOME", "/some/cache", 1);
  EXPECT_EQ(DiskCache::default_folder(), "/some/cache/xpuruntime/opencl");
  kept.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace xpuruntime::opencl
