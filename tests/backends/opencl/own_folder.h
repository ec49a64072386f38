#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace xpuruntime::opencl {

/// A cache folder of its own for a test, and for what it starts.
class OwnFolder {
 public:
  OwnFolder() : OwnFolder(make()) {}
  explicit OwnFolder(std::string path) : path_(std::move(path)) { setenv("XPURUNTIME_OPENCL_CACHE", path_.c_str(), 1); }
  ~OwnFolder() {
    unsetenv("XPURUNTIME_OPENCL_CACHE");
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  const std::string& path() const { return path_; }
  std::vector<std::string> files() const {
    std::vector<std::string> all;
    for (const auto& file : std::filesystem::directory_iterator(path_)) all.push_back(file.path().string());
    return all;
  }

 private:
  static std::string make() {
    std::string name = std::filesystem::temp_directory_path().string() + "/xrt_opencl_XXXXXX";
    return mkdtemp(name.data()) == nullptr ? "" : name;
  }
  std::string path_;
};

}  // namespace xpuruntime::opencl
