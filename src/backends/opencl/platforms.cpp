#include "backends/opencl/platforms.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/environment_variable.h"
#include "core/sha256.h"

namespace xpuruntime::opencl {
namespace {

namespace fs = std::filesystem;

constexpr long bad_news_last_s = 600;

std::string setting(const char* name) {
  const char* value = environment_variable(name);
  return value == nullptr ? "" : value;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string first_line(const fs::path& path) {
  const std::string text = contents(path);
  return text.substr(0, text.find_first_of("\r\n"));
}

constexpr const char* usual_vendors = "/etc/OpenCL/vendors";

/// The .icd files that loaders read, in the order of their names.
std::vector<std::string> icd_files() {
  std::string folder = setting("OCL_ICD_VENDORS");
  if (folder.empty()) folder = setting("OPENCL_VENDOR_PATH");
  if (folder.empty()) folder = usual_vendors;
  std::error_code error;
  if (folder.ends_with(".icd") && !fs::is_directory(folder, error))
    return {folder.find('/') == std::string::npos ? std::string(usual_vendors) + "/" + folder : folder};
  std::vector<std::string> files;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".icd") files.push_back(at->path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string stamp_of(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return path + " -\n";
  return path + " " + std::to_string(found.st_size) + " " + std::to_string(found.st_mtim.tv_sec) + " " +
         std::to_string(found.st_mtim.tv_nsec) + "\n";
}

/// Of the linker that PoCL finds by PATH and cannot do without: it may be gone since.
std::string stamp_of_linker() {
  std::istringstream folders(setting("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string path = folder + "/ld"; access(path.c_str(), X_OK) == 0) return stamp_of(path);
  return "no linker\n";
}

/// All that a change of which may change the answer.
std::string key_of(const std::vector<std::string>& files, const std::string& worker) {
  Sha256 hash;
  hash.add("platforms\n").add(stamp_of(worker)).add(stamp_of_linker());
  // PoCL finds its cache by its own variable, XDG_CACHE_HOME or HOME.
  for (const char* name : {"OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "OCL_ICD_FILENAMES", "LD_LIBRARY_PATH",
                           "LD_PRELOAD", "PATH", "POCL_DEVICES", "POCL_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR",
                           "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "XPURUNTIME_OPENCL_TIMEOUT"})
    hash.add(name).add("=").add(setting(name)).add("\n");
  for (const std::string& file : files)
    hash.add(stamp_of(file)).add(contents(file)).add("\n").add(stamp_of(first_line(file)));
  hash.add(first_line("/proc/sys/kernel/random/boot_id")).add(contents("/proc/driver/nvidia/version"));
  return hash.finish();
}

std::string to_text(const TriedPlatforms& tried) {
  std::ostringstream text;
  for (const TriedDevice& device : tried.devices)
    text << "device " << device.multiple << " " << device.fp16 << " " << device.platform << "\t" << device.device
         << "\n";
  for (const std::string& file : tried.usable) text << "usable " << file << "\n";
  for (const std::string& reason : tried.left_out) text << "left_out " << reason << "\n";
  for (const std::string& reason : tried.not_loaded) text << "not_loaded " << reason << "\n";
  if (!tried.left_out.empty() || !tried.not_loaded.empty())
    text << "until " << std::time(nullptr) + bad_news_last_s << "\n";
  return text.str();
}

/// Nothing where it is too old.
std::optional<TriedPlatforms> from_text(const std::string& text) {
  TriedPlatforms tried{true};
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, rest;
    words >> kind;
    TriedDevice device;
    if (kind == "device") words >> device.multiple >> device.fp16;
    std::time_t until = 0;
    if (kind == "until" && words >> until && std::time(nullptr) > until) return {};
    std::getline(words >> std::ws, rest);
    if (kind == "device" && rest.find('\t') != std::string::npos) {
      device.platform = rest.substr(0, rest.find('\t'));
      device.device = rest.substr(rest.find('\t') + 1);
      tried.devices.push_back(device);
    }
    if (kind == "usable") tried.usable.push_back(rest);
    if (kind == "left_out") tried.left_out.push_back(rest);
    if (kind == "not_loaded") tried.not_loaded.push_back(rest);
  }
  return tried;
}

/// May be otherwise the next time: nobody knows what the driver would have done.
bool is_passing(const Answer& answer) {
  return answer.state == Answer::State::shortage || answer.state == Answer::State::killed;
}

/// What the worker says of all drivers that it sees. `passing` is set where a shortage had to do with it.
Answer probe(Worker& worker, std::vector<TriedDevice>& devices, bool& passing) {
  const int seconds = worker_seconds();
  Answer answer = worker.ask({"probe"}, seconds);
  passing = passing || is_passing(answer);
  if (!answer.answered() || answer.message[0] != "devices") return answer;
  for (std::size_t i = 1; i + 2 < answer.message.size(); i += 3) {
    TriedDevice device{answer.message[i], answer.message[i + 1]};
    std::istringstream(answer.message[i + 2]) >> device.multiple;
    // A compiler that half crashes costs the device nothing else.
    const Answer half = worker.ask({"fp16", device.platform, device.device}, seconds);
    device.fp16 = half.answered() && half.message[0] == "yes";
    passing = passing || is_passing(half);
    devices.push_back(device);
  }
  return answer;
}

/// Loaders pass over what they cannot open without a word.
std::vector<std::string> not_loaded(Worker& worker, const std::vector<std::string>& files) {
  std::vector<std::string> reasons;
  for (const std::string& file : files) {
    const std::string library = first_line(file), name = fs::path(file).filename().string();
    if (library.empty()) {
      reasons.push_back(name + (access(file.c_str(), R_OK) == 0 ? ": it names no library" : ": it cannot be read"));
      continue;
    }
    const Answer answer = worker.ask({"library", library}, worker_seconds());
    if (answer.answered() && answer.message[0] == "missing")
      reasons.push_back(name + ": its library cannot be opened: " + answer.message.back());
  }
  return reasons;
}

bool is_fine(const Answer& answer) {
  return answer.answered() && (answer.message[0] == "devices" || answer.message[0] == "no_loader");
}

std::string reason_of(const Answer& answer) { return answer.answered() ? answer.message.back() : answer.why; }

/// Where they fail together, for the reason `together`.
TriedPlatforms try_each(const std::vector<std::string>& files, const std::string& program, const std::string& together,
                        bool& passing) {
  TriedPlatforms tried{true};
  const auto cannot = [&](const OnlyThese& only) {
    passing = true;
    tried.left_out = {"all drivers together: " + together + "; they cannot be tried one by one: " + only.why_not()};
    tried.usable.clear();
    return tried;
  };
  for (const std::string& file : files) {
    const OnlyThese only({file});
    if (!only.why_not().empty()) return cannot(only);
    Worker worker(only.environment(), program);
    std::vector<TriedDevice> devices;
    const Answer answer = probe(worker, devices, passing);
    if (is_fine(answer)) {
      tried.usable.push_back(file);
      for (std::string& reason : not_loaded(worker, {file})) tried.not_loaded.push_back(std::move(reason));
    } else {
      tried.left_out.push_back(fs::path(file).filename().string() + ": " + reason_of(answer));
    }
  }
  // Loaders have other ways to find drivers.
  if (tried.left_out.empty()) tried.left_out.push_back("a driver that no .icd file names: " + together);
  if (tried.usable.empty()) return tried;
  const OnlyThese only(tried.usable);
  if (!only.why_not().empty()) return cannot(only);
  Worker worker(only.environment(), program);
  if (const Answer answer = probe(worker, tried.devices, passing); !is_fine(answer)) {
    tried.left_out.push_back("all drivers together: " + reason_of(answer));
    tried.usable.clear();
    tried.devices.clear();
  }
  return tried;
}

}  // namespace

std::vector<std::string> OnlyThese::folders() {
  std::error_code error;
  std::vector<std::string> all = {fs::temp_directory_path(error).string(), DiskCache::default_folder(), "/dev/shm"};
  if (all[0].empty()) all[0] = setting("TMPDIR");  // for the message: it is no folder
  std::erase(all, "");
  return all;
}

OnlyThese::OnlyThese(const std::vector<std::string>& icd_files, const std::vector<std::string>& places) {
  process_ = getpid();
  std::string tried;
  for (const std::string& place : places) {
    if (write(icd_files, place)) return;
    tried += (tried.empty() ? "" : ", ") + place;
  }
  why_not_ = "no folder takes copies of the .icd files (tried " + tried + "): set TMPDIR to one that can be written";
}

bool OnlyThese::write(const std::vector<std::string>& icd_files, const std::string& place) {
  std::error_code ignored;
  fs::create_directories(place, ignored);
  std::string name = fs::absolute(place, ignored).string() + "/xpuruntime_icd_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) return false;
  // Copies: some loaders pass over links. Read again: on a full disk a file may be there, and empty.
  const bool whole = std::all_of(icd_files.begin(), icd_files.end(), [&](const std::string& file) {
    const std::string text = contents(file);
    const fs::path copy = fs::path(name) / fs::path(file).filename();
    std::ofstream(copy, std::ios::binary) << text;
    return fs::exists(copy, ignored) && contents(copy) == text;
  });
  if (whole) {
    folder_ = name;
  } else {
    fs::remove_all(name, ignored);
  }
  return whole;
}

OnlyThese::~OnlyThese() {
  std::error_code ignored;
  if (!folder_.empty() && process_ == getpid()) fs::remove_all(folder_, ignored);
}

std::map<std::string, std::string> OnlyThese::environment() const {
  // With a slash: some loaders only put the file's name behind it.
  return {{"OCL_ICD_VENDORS", folder_ + "/"}, {"OPENCL_VENDOR_PATH", folder_ + "/"}, {"OCL_ICD_FILENAMES", ""}};
}

TriedPlatforms try_platforms(const DiskCache& cache, const std::string& program) {
  const std::vector<std::string> files = icd_files();
  const std::string key = key_of(files, program);
  if (const auto kept = cache.get(key)) {
    if (auto tried = from_text(*kept)) return *tried;
  }
  TriedPlatforms tried{true};
  bool passing = false;
  {
    Worker worker({}, program);
    const Answer answer = probe(worker, tried.devices, passing);
    if (answer.state == Answer::State::unavailable) return {.unprotected = answer.why};
    if (answer.state == Answer::State::shortage)
      return {.absent = "the process that tries the drivers " + answer.why +
                        "; close files or end processes, or raise their limits (ulimit), and start this program again"};
    if (is_fine(answer)) {
      tried.not_loaded = not_loaded(worker, files);
    } else {
      tried = try_each(files, program, reason_of(answer), passing);
    }
  }
  if (!passing) cache.put(key, to_text(tried));
  return tried;
}

}  // namespace xpuruntime::opencl
