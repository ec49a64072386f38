#include "backends/opencl/platforms.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <thread>

#include "core/environment_variable.h"
#include "core/sha256.h"

namespace xpuruntime::opencl {
namespace {

namespace fs = std::filesystem;

constexpr long bad_news_last_s = 600;
constexpr long hanging_lasts_s = 3600;  // asking one that hangs again takes long

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

std::string to_text(const TriedPlatforms& tried, bool hung) {
  std::ostringstream text;
  for (const TriedDevice& device : tried.devices)
    text << "device " << device.multiple << " " << device.fp16 << " " << device.platform << "\t" << device.device
         << "\n";
  for (const std::string& file : tried.usable) text << "usable " << file << "\n";
  for (const std::string& reason : tried.left_out) text << "left_out " << reason << "\n";
  for (const std::string& reason : tried.not_loaded) text << "not_loaded " << reason << "\n";
  if (!tried.left_out.empty() || !tried.not_loaded.empty())
    text << "until " << std::time(nullptr) + (hung ? hanging_lasts_s : bad_news_last_s) << "\n";
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

/// What a worker says of all drivers that it sees.
struct Probed {
  Answer answer = {};
  std::vector<TriedDevice> devices = {};
  bool passing = false;  // a shortage had to do with it
};

Probed probe(Worker& worker, int seconds) {
  Probed probed{worker.ask({"probe"}, seconds)};
  const Answer& answer = probed.answer;
  probed.passing = is_passing(answer);
  if (!answer.answered() || answer.message[0] != "devices") return probed;
  for (std::size_t i = 1; i + 2 < answer.message.size(); i += 3) {
    TriedDevice device{answer.message[i], answer.message[i + 1]};
    std::istringstream(answer.message[i + 2]) >> device.multiple;
    // A compiler that half crashes costs the device nothing else.
    const Answer half = worker.ask({"fp16", device.platform, device.device}, worker_seconds());
    device.fp16 = half.answered() && half.message[0] == "yes";
    probed.passing = probed.passing || is_passing(half);
    probed.devices.push_back(device);
  }
  return probed;
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

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_ = {};
};

bool is_fine(const Answer& answer) {
  return answer.answered() && (answer.message[0] == "devices" || answer.message[0] == "no_loader");
}

std::string reason_of(const Answer& answer) { return answer.answered() ? answer.message.back() : answer.why; }

/// One driver, asked alone.
struct Alone {
  std::string cannot = {};  // why it could not be
  Probed probed = {};
  std::vector<std::string> not_loaded = {};
};

Alone try_alone(const std::string& file, const std::string& program, int seconds) {
  const OnlyThese only({file});
  if (!only.why_not().empty()) return {only.why_not()};
  Worker worker(only.environment(), program);
  Alone alone{{}, probe(worker, seconds)};
  if (is_fine(alone.probed.answer)) alone.not_loaded = not_loaded(worker, {file});
  return alone;
}

/// All at once: each that hangs takes the whole time.
std::vector<Alone> try_alone(const std::vector<std::string>& files, const std::string& program) {
  const int seconds = worker_seconds();
  std::vector<Alone> all(files.size());
  std::vector<std::exception_ptr> thrown(files.size());
  const auto run = [&](std::size_t i) {
    try {
      all[i] = try_alone(files[i], program, seconds);
    } catch (...) {
      thrown[i] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const SignalsBlocked blocked;  // no handler of the program's runs in those threads
    try {
      threads.emplace_back(run, i);
    } catch (const std::system_error&) {
      run(i);  // too many threads
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : thrown)
    if (error) std::rethrow_exception(error);
  return all;
}

// Loaders have other ways to find drivers.
constexpr const char* no_icd_file = "a driver that no .icd file names: ";

/// What is known of the drivers, and of that how sure it is.
struct Tried {
  TriedPlatforms platforms = {true};
  bool passing = false;  // a shortage had to do with it
  bool hung = false;     // one gave no answer
};

/// Where they fail together, for the reason `together`.
Tried try_each(const std::vector<std::string>& files, const std::string& program, const std::string& together) {
  Tried result;
  TriedPlatforms& tried = result.platforms;
  const auto cannot = [&](const std::string& why) {
    result.passing = true;
    tried.left_out = {"all drivers together: " + together + "; they cannot be tried one by one: " + why};
    tried.usable.clear();
    tried.devices.clear();
    return result;
  };
  std::vector<Alone> all = try_alone(files, program);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto& [why_not, probed, missing] = all[i];
    if (!why_not.empty()) return cannot(why_not);
    result.passing = result.passing || probed.passing;
    if (is_fine(probed.answer)) {
      tried.usable.push_back(files[i]);
      tried.devices = probed.devices;
      tried.not_loaded.insert(tried.not_loaded.end(), missing.begin(), missing.end());
    } else {
      result.hung = result.hung || probed.answer.state == Answer::State::late;
      tried.left_out.push_back(fs::path(files[i]).filename().string() + ": " + reason_of(probed.answer));
    }
  }
  if (tried.left_out.empty()) tried.left_out.push_back(no_icd_file + together);
  if (tried.usable.size() < 2) return result;
  const OnlyThese only(tried.usable);
  if (!only.why_not().empty()) return cannot(only.why_not());
  Worker worker(only.environment(), program);
  const Probed rest = probe(worker, worker_seconds());
  result.passing = result.passing || rest.passing;
  tried.devices = rest.devices;
  if (!is_fine(rest.answer)) {
    tried.left_out.push_back("all drivers together: " + reason_of(rest.answer));
    tried.usable.clear();
    tried.devices.clear();
  }
  return result;
}

/// Asks all together; the answer, or who of them it is that fails.
Tried try_all(const std::vector<std::string>& files, const std::string& program) {
  // Where one hangs, most of the time is for asking each alone. Who is only slow is given all of it then.
  const int seconds = worker_seconds(), first_seconds = files.empty() ? seconds : std::max(1, seconds / 4);
  Tried result;
  const auto ask = [&](int limit) {
    Worker worker({}, program);
    Probed probed = probe(worker, limit);
    if (is_fine(probed.answer)) result.platforms.not_loaded = not_loaded(worker, files);
    result.passing = result.passing || probed.passing;
    result.platforms.devices = std::move(probed.devices);
    return probed.answer;
  };
  Answer answer = ask(first_seconds);
  if (answer.state == Answer::State::unavailable) {
    result.platforms = {.unprotected = answer.why};
  } else if (answer.state == Answer::State::shortage) {
    result.platforms = {.absent = "the process that tries the drivers " + answer.why +
                                  "; close files or end processes, or raise their limits (ulimit), and start this "
                                  "program again"};
  }
  if (!result.platforms.tried || is_fine(answer)) return result;
  const bool late = answer.state == Answer::State::late;
  Tried each = try_each(files, program, reason_of(answer));
  if (late && first_seconds < seconds && each.platforms.usable.size() == files.size()) {
    // Slow, or a driver that no .icd file names.
    answer = ask(seconds);
    if (is_fine(answer)) return result;
    each.platforms.left_out = {no_icd_file + reason_of(answer)};
    each.hung = answer.state == Answer::State::late;
  }
  each.passing = each.passing || result.passing;
  return each;
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
  const Tried found = try_all(files, program);
  if (found.platforms.tried && !found.passing) cache.put(key, to_text(found.platforms, found.hung));
  return found.platforms;
}

}  // namespace xpuruntime::opencl
