#include "backends/opencl/programs.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <vector>

#include "backends/opencl/build_log.h"
#include "backends/opencl/disk_cache.h"
#include "backends/opencl/pocl_files.h"
#include "backends/opencl/profile.h"
#include "backends/opencl/worker.h"
#include "core/printable.h"
#include "core/sha256.h"

namespace xpuruntime::opencl {
namespace {

/// Keys of the programs that this process has had compiled. Never destroyed, as the compiler below.
class CompiledHere {
 public:
  void add(const std::string& key) {
    const std::lock_guard lock(mutex_);
    keys_.insert(key);
  }
  bool has(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return keys_.contains(key);
  }

 private:
  std::mutex mutex_;
  std::set<std::string> keys_;
};
auto& compiled_here = *new CompiledHere;

std::atomic<std::uint64_t> compiled_count{0};
std::atomic<std::uint64_t> loaded_count{0};

// Never destroyed: other threads may compile when the process ends.
auto& compiler_environment = *new std::map<std::string, std::string>;
Worker& compiler() {
  static auto& worker = *new Worker(compiler_environment);
  return worker;
}

constexpr std::size_t large_grid = 65535;  // PoCL's own limit

cl_platform_id platform_of(cl_device_id device) { return device_value<cl_platform_id>(device, CL_DEVICE_PLATFORM); }

/// PoCL finds what it has compiled before by itself, eight times as fast as by loading its binary.
bool keeps_its_own(const BuildRequest& request) {
  return !request.always_binary && is_pocl(platform_of(request.device));
}

std::string key_of(const BuildRequest& request, const std::string& kind) {
  Sha256 hash;
  const std::string parts[] = {kind,
                               request.options,
                               platform_text(platform_of(request.device), CL_PLATFORM_VERSION),
                               device_text(request.device, CL_DEVICE_NAME),
                               device_text(request.device, CL_DEVICE_VENDOR),
                               device_text(request.device, CL_DEVICE_VERSION),
                               device_text(request.device, CL_DRIVER_VERSION)};
  for (const std::string& part : parts) hash.add(part).add(std::string_view("\0", 1));
  return hash.add(request.common).add(request.source).finish();
}

std::string key_of(const BuildRequest& request) {
  return key_of(request, keeps_its_own(request) ? "checked program in " + pocl_cache_folder() : "program");
}

std::string name_of(cl_device_id device) { return "'" + device_text(device, CL_DEVICE_NAME) + "'"; }

[[noreturn]] void fail_build(const BuildRequest& request, cl_int code, const std::string& log,
                             const std::string& advice = "") {
  const std::string text = std::string(request.common) + std::string(request.source);
  const auto skipped = static_cast<std::size_t>(std::count(request.common.begin(), request.common.end(), '\n'));
  fail(ErrorCode::device_error, "opencl::build",
       "clBuildProgram gave " + error_name(code) + " with options '" + request.options + "':\n" +
           printable_lines(explain_log(log, text, skipped)) +
           "\ncorrect the source, update the OpenCL driver, or choose another kernel" + advice);
}

/// What a compiler needs a few of.
bool can_open_files() {
  bool can = true;
  std::vector<int> opened(8, -1);
  for (int& file : opened) can = can && (file = memfd_create("opencl_build", MFD_CLOEXEC)) >= 0;
  for (const int file : opened)
    if (file >= 0) close(file);
  return can;
}

std::string log_of(cl_program program, cl_device_id device) {
  std::size_t bytes = 0;
  if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::string log(bytes, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  return log.substr(0, log.find('\0'));
}

/// `compiles`: it did so before, in another process.
Program from_source(const BuildRequest& request, bool compiles = false) {
  const char* texts[] = {request.common.data(), request.source.data()};
  const std::size_t sizes[] = {request.common.size(), request.source.size()};
  const cl_uint first = request.common.empty() ? 1 : 0;
  cl_int code = CL_SUCCESS;
  Program program(clCreateProgramWithSource(request.context, 2 - first, texts + first, sizes + first, &code));
  check(code, "opencl::build", "clCreateProgramWithSource");
  code = clBuildProgram(program.get(), 1, &request.device, request.options.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return program;
  if (!can_open_files())
    fail(ErrorCode::out_of_memory, "opencl::build",
         "clBuildProgram gave " + error_name(code) +
             ", and this process cannot open more files: close some, or raise "
             "the limit (ulimit -n), and try again");
  fail_build(request, code, log_of(program.get(), request.device), compiles ? advice_on_damage(request.device) : "");
}

/// Null where the driver does not take it.
Program from_binary(const BuildRequest& request, const std::string& binary) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t size = binary.size();
  cl_int code = CL_SUCCESS;
  Program program(clCreateProgramWithBinary(request.context, 1, &request.device, &size, &bytes, nullptr, &code));
  if (code == CL_SUCCESS)
    code = clBuildProgram(program.get(), 1, &request.device, request.options.c_str(), nullptr, nullptr);
  return code == CL_SUCCESS ? std::move(program) : Program();
}

/// From what the cache has: a binary, or where the driver keeps that the path of its file, if it is known. Null where
/// that is not to be had any more.
Program from_kept(const BuildRequest& request, const std::string& kept) {
  if (!keeps_its_own(request)) return from_binary(request, kept);
  if (!kept.empty() && !is_whole(kept, pocl_cache_folder(), DiskCache())) return {};
  return from_source(request, true);
}

Message request_for_worker(const BuildRequest& request, const std::string& what) {
  return {what, platform_text(platform_of(request.device), CL_PLATFORM_NAME),
          device_text(request.device, CL_DEVICE_NAME), request.options,
          std::string(request.common) + std::string(request.source)};
}

/// What the worker says, or nothing where there is no worker or it does not see the device. Errors end with `advice`.
std::optional<Message> ask_worker(const BuildRequest& request, const Message& words, const std::string& about,
                                  const std::string& advice = "") {
  Answer answer = compiler().ask(words, worker_seconds());
  // Once more: what it needs may have been missing for a moment.
  if (answer.state == Answer::State::crashed) answer = compiler().ask(words, worker_seconds());
  if (answer.state == Answer::State::unavailable) return {};
  const std::string start = "the compiler of " + name_of(request.device) + " ";
  // May be well the next time: the dispatcher does not set the kernel aside for that.
  if (answer.state == Answer::State::shortage)
    fail(ErrorCode::out_of_memory, "opencl::build",
         start + answer.why + "; close files or end processes, or raise their limits (ulimit), and try again");
  if (answer.state == Answer::State::killed)
    fail(ErrorCode::out_of_memory, "opencl::build", start + answer.why + "; free memory and try again");
  if (!answer.answered())
    fail(ErrorCode::device_error, "opencl::build",
         start + answer.why + ", " + about + ": update the OpenCL driver or its tools, or choose another kernel" +
             advice);
  if (answer.message[0] == "unknown") return {};
  return std::move(answer.message);
}

[[noreturn]] void fail_in_worker(const BuildRequest& request, const Message& said) {
  fail(ErrorCode::device_error, "opencl::build",
       "the compiler of " + name_of(request.device) + " failed: " + printable(said.back()) +
           "; update the OpenCL driver, or choose another kernel");
}

/// What the worker made, or nothing where it cannot be asked.
std::optional<std::string> compile(const BuildRequest& request) {
  Message words = request_for_worker(request, "build");
  words.push_back(keeps_its_own(request) ? "check" : "binary");
  const auto said = ask_worker(request, words, "with options '" + request.options + "'");
  if (!said) return {};
  if (said->front() == "built" && said->size() > 1) return said->at(1);
  if (said->front() == "failed" && said->size() > 2) fail_build(request, std::atoi(said->at(1).c_str()), said->at(2));
  fail_in_worker(request, *said);
}

/// Of the smallest grid of the variant, and its work-groups; those are zeros where PoCL chooses them.
Message sizes_of(const CodeVariant& variant) {
  WorkSize global = variant.size;
  if (variant.is_large) global[0] = (large_grid + global[0] - 1) / global[0] * global[0];
  Message sizes;
  for (const std::size_t size : global) sizes.push_back(std::to_string(size));
  for (const std::size_t size : variant.size) sizes.push_back(std::to_string(variant.is_chosen ? size : 0));
  return sizes;
}

}  // namespace

std::string advice_on_damage(cl_device_id device) {
  if (!is_pocl(platform_of(device))) return {};
  return "; if it worked before, PoCL's own cache may be damaged: delete '" + pocl_cache_folder() + "'";
}

void set_compiler_environment(std::map<std::string, std::string> environment) {
  compiler_environment = std::move(environment);
}

BuildCounts build_counts() { return {compiled_count.load(), loaded_count.load()}; }

Program build_program(const BuildRequest& request) {
  const DiskCache cache;
  const std::string key = key_of(request);
  const bool keeps = !has_include(request.source);  // the key knows nothing of other files
  if (is_pocl(platform_of(request.device))) make_room(pocl_cache_folder());
  const auto kept = keeps ? cache.get(key) : std::nullopt;
  if (kept) {
    if (Program program = from_kept(request, *kept)) {
      ++loaded_count;
      return program;
    }
    cache.remove(key);
  }
  ++compiled_count;
  auto made = compile(request);
  compiled_here.add(key);
  if (made && kept && keeps_its_own(request) && !kept->empty()) {
    note_whole(*kept, cache);
    made = *kept;
  }
  if (made && keeps) cache.put(key, *made);
  Program program = made ? from_kept(request, *made) : from_source(request);
  return program ? std::move(program) : from_source(request);
}

CodeVariant variant_of(const WorkSize& global, const WorkSize& local) {
  if (local[0] == 0) return {global, false};
  return {local, true, std::max(global[0], global[1]) >= large_grid};  // PoCL does not count the last extent
}

void make_machine_code(const BuildRequest& request, const std::string& function, const CodeVariant& variant) {
  const DiskCache cache;
  const Message sizes = sizes_of(variant);
  std::string kind = "machine code in " + pocl_cache_folder() + " of " + function;
  for (const std::string& size : sizes) kind += " " + size;
  const bool keeps = !has_include(request.source);
  const std::string key = keeps ? key_of(request, kind) : "";
  make_room(pocl_cache_folder());
  // An empty path: it was made, and nobody can tell which file has it.
  if (const auto file = keeps ? cache.get(key) : std::nullopt)
    if (file->empty() || is_whole(*file, pocl_cache_folder(), cache)) {
      // Another process has made it, and the program's file may be the one of this process.
      if (!file->empty() && compiled_here.has(key_of(request))) note_whole(program_file_of(*file), cache);
      return;
    }
  Message words = request_for_worker(request, "machine_code");
  words.push_back(function);
  words.insert(words.end(), sizes.begin(), sizes.end());
  const auto said = ask_worker(request, words,
                               "making machine code of '" + function + "' for " +
                                   (variant.is_chosen ? "work-groups of " : "a grid of ") + to_string(variant.size),
                               advice_on_damage(request.device));
  if (!said) return;
  if (said->front() != "made") fail_in_worker(request, *said);
  if (!keeps || said->size() < 2) return;
  const std::string& file = said->at(1);
  if (!file.empty()) note_whole(file, cache);
  cache.put(key, file);
  if (file.empty() || !keeps_its_own(request)) return;
  note_whole(program_file_of(file), cache);
  if (const auto program = cache.get(key_of(request)); program && program->empty())
    cache.put(key_of(request), program_file_of(file));
}

}  // namespace xpuruntime::opencl
