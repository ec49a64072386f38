#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "core/expect_error.h"
#include "xpuruntime/tune/store.h"

namespace xpuruntime {

namespace fs = std::filesystem;

inline Environment xeon(const std::string& openblas = "0.3.21") {
  return {"cpu intel Xeon", {{"cores", "2"}, {"l2_bytes", "2097152"}}, {{"openblas", openblas}, {"xpuruntime", "1"}}};
}

inline Environment h200() {
  return {"cuda nvidia H200", {{"compute_capability", "9.0"}}, {{"driver", "580.1"}, {"xpuruntime", "1"}}};
}

inline std::string problem(int n) { return "matmul(f32[" + std::to_string(n) + ",8], f32[8,8]) @cpu:0"; }

inline Measurement measured(const std::string& of, const std::string& kernel, double time_us, std::int64_t at = 1000,
                            const std::string& plan = "") {
  return {of, kernel, plan, time_us, time_us / 64, 100, 4096, 1.25e-7, at};
}

inline TunedChoice chosen(const std::string& of, const std::string& kernel, std::int64_t at = 1000) {
  return {of, kernel, "tile=8x8", "packed", kernel + " is faster", true, at};
}

/// Two measurements, a choice and a kernel in quarantine.
inline TuneRecord record_of(const std::string& of, double time_us = 1.5, std::int64_t at = 1000) {
  return {{measured(of, "packed", time_us * 2, at), measured(of, "small", time_us, at)},
          {chosen(of, "small", at)},
          {{of, "broken", "it hung for 10 s", at}}};
}

/// What a file's first measurement of a kernel on a problem says.
inline double time_of(const StoreContents& contents, const std::string& of, const std::string& kernel) {
  for (const StoreRow& row : contents) {
    for (const Measurement& entry : row.record.measurements) {
      if (entry.problem == of && entry.kernel == kernel) return entry.time_us;
    }
  }
  return -1;
}

/// How many times fewer rounds to make: sanitized builds run several times slower.
inline int reduced() {
  const char* const given = std::getenv("XRT_TEST_REDUCED");
  return given == nullptr ? 1 : std::max(std::atoi(given), 1);
}
/// What is left of so many rounds: one at least, or nothing would be tested.
inline int reduced(int rounds) { return std::max(rounds / reduced(), 1); }

/// A store in a folder of its own.
class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (root_ / "xrt_store_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = (folder_ / "store.sqlite").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string bytes() const { return bytes_of(path_); }
  static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void write_bytes(const std::string& bytes) const {
    for (const char* beside : {"-wal", "-shm"}) fs::remove(path_ + beside);
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  /// Runs SQL on the file, past the store.
  void execute(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
    sqlite3_free(message);
    sqlite3_close(database);
  }

  fs::path root_ = fs::temp_directory_path();
  fs::path folder_;
  std::string path_;
};

/// Runs `work` in a child process and gives its id. The child ends with what `work` returns, with 99 if it throws.
inline pid_t start_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 99;
  try {
    code = work();
  } catch (...) {
  }
  _exit(code);
}

/// The exit code of a child, 1000 plus the signal if one ended it.
inline int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

inline int run_child(const std::function<int()>& work) { return wait_for(start_child(work)); }

/// Whether this process has a lock on a file. Only another one can see it.
inline bool has_lock_on(const std::string& path) {
  return run_child([&] {
           struct flock found = {};
           found.l_type = F_WRLCK;
           if (fcntl(open(path.c_str(), O_RDWR | O_CLOEXEC), F_GETLK, &found) != 0) return 2;
           return found.l_type == F_UNLCK ? 1 : 0;
         }) == 0;
}

}  // namespace xpuruntime
