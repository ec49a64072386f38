#include <string>

#include "core/environment_variable.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/tune/store.h"

namespace xpuruntime {
namespace {

std::string variable(const char* name) {
  const char* const value = environment_variable(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string default_store_path() {
  if (std::string path = variable("XPURUNTIME_STORE"); !path.empty()) return path;
  // The XDG specification has relative paths ignored.
  std::string cache = variable("XDG_CACHE_HOME");
  if (!cache.starts_with("/")) {
    const std::string home = variable("HOME");
    if (!home.starts_with("/")) {
      fail(ErrorCode::not_supported, "default_store_path",
           "neither XPURUNTIME_STORE nor XDG_CACHE_HOME nor HOME says where the store lies; set one of them");
    }
    cache = home + "/.cache";
  }
  return cache + "/xpuruntime/store.sqlite";
}

}  // namespace xpuruntime
