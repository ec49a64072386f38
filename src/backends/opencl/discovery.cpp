#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "backends/opencl/driver.h"
#include "backends/opencl/platforms.h"
#include "backends/opencl/profile.h"
#include "backends/opencl/programs.h"
#include "core/environment_variable.h"

namespace xpuruntime::opencl {
namespace {

constexpr std::size_t max_devices = 256;  // Device::index is a byte

/// Sets variables and brings the old values back. Only where a driver has to be left out: other threads may be reading
/// the environment.
class WithVariables {
 public:
  explicit WithVariables(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) {
      const char* old = environment_variable(name.c_str());
      before_[name] = old == nullptr ? std::optional<std::string>() : old;
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~WithVariables() {
    for (const auto& [name, value] : before_) {
      value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
    }
  }
  WithVariables(const WithVariables&) = delete;
  WithVariables& operator=(const WithVariables&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

/// What all drivers of this process find out once; what fails is tried again.
struct Started {
  TriedPlatforms tried = {};
  std::string missing = {};  // why there is no OpenCL here
};

Started start() {
  Started started{try_platforms(DiskCache())};
  TriedPlatforms& tried = started.tried;
  started.missing = tried.absent;
  if (!started.missing.empty() || (!tried.left_out.empty() && tried.usable.empty())) return started;
  std::optional<WithVariables> changed;
  if (!tried.left_out.empty()) {
    // The process that compiles looks there later.
    static std::unique_ptr<const OnlyThese> usable;
    usable = std::make_unique<const OnlyThese>(tried.usable);
    if (!usable->why_not().empty()) {
      tried.left_out.push_back("the other drivers: " + usable->why_not());
      tried.usable.clear();
      return started;
    }
    changed.emplace(usable->environment());
    set_compiler_environment(usable->environment());
  }
  started.missing = load_opencl();
  if (started.missing.empty()) all_platforms();  // loads the drivers
  return started;
}

const Started& started() {
  static const Started& once = *new Started(start());
  return once;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
  return all;
}

/// Empty if the device can be used.
std::string why_unusable(cl_device_id device) {
  if (!device_value<cl_bool>(device, CL_DEVICE_AVAILABLE)) return "is not available";
  if (!device_value<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE)) return "has no compiler";
  return {};
}

/// Without its cache PoCL gives no device, and no reason.
std::string why_pocl_has_none() {
  const std::string folder = pocl_cache_folder();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return ", as its cache folder '" + folder + "' cannot be written: set POCL_CACHE_DIR to one that can";
}

const TriedDevice* tried_device(const TriedPlatforms& tried, const std::string& platform, const std::string& device) {
  for (const TriedDevice& known : tried.devices)
    if (known.platform == platform && known.device == device) return &known;
  return nullptr;
}

void add_devices(cl_platform_id platform, const TriedPlatforms& tried, Discovery& found) {
  const std::vector<cl_device_id> devices = devices_of(platform);
  const std::string platform_name = platform_text(platform, CL_PLATFORM_NAME);
  if (devices.empty())
    found.left_out.push_back("platform '" + platform_name + "' has no device" +
                             (is_pocl(platform) ? why_pocl_has_none() : ""));
  for (cl_device_id device : devices) {
    const std::string problem = why_unusable(device), name = device_text(device, CL_DEVICE_NAME);
    if (!problem.empty()) {
      found.left_out.push_back("device '" + name + "' " + problem);
    } else if (found.devices.size() < max_devices) {
      found.devices.push_back(device);
      found.profiles.push_back(read_profile(platform, device, tried_device(tried, platform_name, name)));
    }
  }
}

}  // namespace

Discovery discover() {
  Discovery found;
  if (const Status status = start_here(); !status.ok()) {
    found.why_absent = status.message();
    return found;
  }
  const auto& [tried, missing] = started();
  found.left_out = tried.left_out;
  found.left_out.insert(found.left_out.end(), tried.not_loaded.begin(), tried.not_loaded.end());
  if (!tried.unprotected.empty())
    found.left_out.push_back("protection from drivers that crash or hang: " + tried.unprotected +
                             "; drivers and compilers run inside this process: install it again");
  found.why_absent = missing;
  if (!missing.empty()) return found;
  if (tried.left_out.empty() || !tried.usable.empty()) {
    const std::vector<cl_platform_id> platforms = all_platforms();
    for (cl_platform_id platform : platforms) add_devices(platform, tried, found);
    if (platforms.empty() && tried.left_out.empty() && tried.not_loaded.empty())
      found.why_absent = "no OpenCL platform: install an ICD such as pocl-opencl-icd, or the vendor's driver";
  }
  if (found.devices.empty() && found.why_absent.empty()) {
    const std::string reasons = joined(found.left_out);
    const bool advises = reasons.find(": set ") != std::string::npos;
    found.why_absent = "no usable OpenCL device: " + reasons +
                       (advises ? "" : "; repair or remove that driver, or install another, such as pocl-opencl-icd");
  }
  return found;
}

}  // namespace xpuruntime::opencl
