// Asks drivers and compiles for a process that must outlive what they do: they may crash, hang or end the process.
// Started by worker.cpp with a socket as standard input; ends when that closes or nothing is asked for a while.

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <map>
#include <stdexcept>
#include <utility>

#include "backends/opencl/cl_loader.h"
#include "backends/opencl/worker_kernels.h"
#include "backends/opencl/worker_wire.h"

namespace xpuruntime::opencl {
namespace {

constexpr int socket_handle = 0;
constexpr std::chrono::seconds idle{10};

void check(cl_int code, const char* call) {
  if (code != CL_SUCCESS) throw std::runtime_error(std::string(call) + " gave error " + std::to_string(code));
}

void about_to(const std::string& what) { send_message(socket_handle, {"at", what}); }

/// CL_PROGRAM_BUILD_LOG and the names are all asked for alike.
template <class Ask>
std::string text_of(Ask ask) {
  std::size_t bytes = 0;
  if (ask(std::size_t{0}, static_cast<char*>(nullptr), &bytes) != CL_SUCCESS) return {};
  std::string text(bytes, '\0');
  if (ask(bytes, text.data(), static_cast<std::size_t*>(nullptr)) != CL_SUCCESS) return {};
  return text.substr(0, text.find('\0'));
}

std::vector<cl_platform_id> platforms() {
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return {};
  std::vector<cl_platform_id> ids(count);
  check(clGetPlatformIDs(count, ids.data(), nullptr), "clGetPlatformIDs");
  return ids;
}

std::vector<cl_device_id> devices_of(cl_platform_id platform) {
  cl_uint count = 0;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) return {};
  std::vector<cl_device_id> ids(count);
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr), "clGetDeviceIDs");
  return ids;
}

std::string name_of(cl_platform_id platform) {
  return text_of([&](std::size_t bytes, char* to, std::size_t* size) {
    return clGetPlatformInfo(platform, CL_PLATFORM_NAME, bytes, to, size);
  });
}

std::string name_of(cl_device_id device) {
  return text_of([&](std::size_t bytes, char* to, std::size_t* size) {
    return clGetDeviceInfo(device, CL_DEVICE_NAME, bytes, to, size);
  });
}

bool is_usable(cl_device_id device) {
  cl_bool available = CL_FALSE, compiler = CL_FALSE;
  clGetDeviceInfo(device, CL_DEVICE_AVAILABLE, sizeof available, &available, nullptr);
  clGetDeviceInfo(device, CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler, &compiler, nullptr);
  return available != CL_FALSE && compiler != CL_FALSE;
}

/// A device with a context, which stays: some drivers take long to make one.
struct Opened {
  cl_device_id device = nullptr;
  cl_context context = nullptr;
};

const Opened& open(cl_device_id device) {
  static std::map<cl_device_id, Opened> known;
  Opened& opened = known[device];
  if (opened.context == nullptr) {
    cl_int code = CL_SUCCESS;
    opened = {device, clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code)};
    check(code, "clCreateContext");
  }
  return opened;
}

/// Null where there is none of these names.
cl_device_id device_named(const std::string& platform, const std::string& device) {
  for (cl_platform_id at : platforms()) {
    if (name_of(at) != platform) continue;
    for (cl_device_id one : devices_of(at))
      if (name_of(one) == device && is_usable(one)) return one;
  }
  return nullptr;
}

struct Built {
  cl_program program = nullptr;
  cl_int code = CL_SUCCESS;
};

Built build(const Opened& on, const std::string& source, const std::string& options) {
  const char* text = source.c_str();
  const std::size_t bytes = source.size();
  Built built;
  built.program = clCreateProgramWithSource(on.context, 1, &text, &bytes, &built.code);
  check(built.code, "clCreateProgramWithSource");
  built.code = clBuildProgram(built.program, 1, &on.device, options.c_str(), nullptr, nullptr);
  return built;
}

/// Builds and runs a kernel that writes 42, as float. Compilers that link only when a kernel first runs are tried too.
bool writes_42(const Opened& on, const std::string& source, std::size_t* multiple = nullptr) {
  const Built built = build(on, source, "-cl-std=CL1.2");
  if (built.code != CL_SUCCESS) return false;
  cl_int code = CL_SUCCESS;
  cl_kernel kernel = clCreateKernel(built.program, "probe", &code);
  check(code, "clCreateKernel");
  if (multiple != nullptr)
    clGetKernelWorkGroupInfo(kernel, on.device, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof *multiple,
                             multiple, nullptr);
  float value = 0;
  cl_mem memory = clCreateBuffer(on.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof value, &value, &code);
  check(code, "clCreateBuffer");
  cl_command_queue queue = clCreateCommandQueue(on.context, on.device, 0, &code);
  check(code, "clCreateCommandQueue");
  check(clSetKernelArg(kernel, 0, sizeof memory, &memory), "clSetKernelArg");
  const std::size_t one = 1;
  check(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, &one, 0, nullptr, nullptr), "clEnqueueNDRangeKernel");
  check(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof value, &value, 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
  clReleaseCommandQueue(queue);
  clReleaseMemObject(memory);
  clReleaseKernel(kernel);
  clReleaseProgram(built.program);
  return value == 42;
}

/// A kernel that writes 42, and that no probe had before: drivers keep what they compiled, and a probe is to try the
/// compiler, and not to find what is damaged there.
std::string new_probe() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  const long long number = (now.tv_sec % 1000000) * 1000 + now.tv_nsec / 1000000 % 1000;
  return "__kernel void probe(__global float* x) { x[0] = get_global_size(0) == " + std::to_string(number) +
         std::to_string(getpid()) + "ul ? 1.0f : 42.0f; }";
}

Message probe() {
  Message found = {"devices"};
  const std::vector<cl_platform_id> all = platforms();
  for (std::size_t p = 0; p < all.size(); ++p) {
    about_to("platform " + std::to_string(p));
    const std::string name = name_of(all[p]);
    about_to("platform '" + name + "'");
    const std::vector<cl_device_id> devices = devices_of(all[p]);
    for (std::size_t d = 0; d < devices.size(); ++d) {
      if (!is_usable(devices[d])) continue;
      about_to("device " + std::to_string(d) + " of platform '" + name + "', with a small kernel");
      std::size_t multiple = 0;
      if (!writes_42(open(devices[d]), new_probe(), &multiple))
        throw std::runtime_error("device " + std::to_string(d) + " of platform '" + name + "' runs no kernel");
      found.insert(found.end(), {name, name_of(devices[d]), std::to_string(multiple)});
    }
  }
  return found;
}

/// Whether a library opens, as a loader does it; after `probe` those of drivers are open already.
Message library(const std::string& name) {
  if (dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return {"opened"};
  const char* why = dlerror();
  return {"missing", why == nullptr ? name : why};
}

Message fp16(const Opened& on) {
  const bool works = writes_42(on,
                               "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
                               "__kernel void probe(__global float* x) {\n"
                               "  half a = (half)(x[0] + 6.0f);\n"
                               "  x[0] = (float)(a * a + a);\n"
                               "}\n");
  return {works ? "yes" : "no"};
}

std::string binary_of(const Built& built) {
  std::size_t bytes = 0;
  check(clGetProgramInfo(built.program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr), "clGetProgramInfo");
  std::string binary(bytes, '\0');
  char* to = binary.data();
  check(clGetProgramInfo(built.program, CL_PROGRAM_BINARIES, sizeof to, &to, nullptr), "clGetProgramInfo");
  return binary;
}

/// The last program that was built: machine code of its kernels is often what is asked for next, several times.
struct Last {
  cl_device_id device = nullptr;
  std::string options = {};
  std::string source = {};
  cl_program program = nullptr;
};
Last last;

void keep(Last built) {
  if (last.program != nullptr) clReleaseProgram(last.program);
  last = std::move(built);
}

/// Null where it cannot be built.
cl_program program_of(const Opened& on, const std::string& options, const std::string& source) {
  if (last.device == on.device && last.options == options && last.source == source) return last.program;
  const Built built = build(on, source, options);
  if (built.code != CL_SUCCESS) return nullptr;
  keep({on.device, options, source, built.program});
  return built.program;
}

Message build_for(const Opened& on, const std::string& options, const std::string& source, bool binary) {
  const Built built = build(on, source, options);
  Message answer = {"built", ""};
  if (built.code == CL_SUCCESS) {
    if (binary) answer[1] = binary_of(built);
    keep({on.device, options, source, built.program});
  } else {
    answer = {"failed", std::to_string(built.code), text_of([&](std::size_t bytes, char* to, std::size_t* size) {
                return clGetProgramBuildInfo(built.program, on.device, CL_PROGRAM_BUILD_LOG, bytes, to, size);
              })};
    clReleaseProgram(built.program);
  }
  return answer;
}

/// As a kernel that is disarmed reads none of its arguments, zeros of the right size do for each.
bool set_any(cl_kernel kernel, cl_uint parameter) {
  static const char zeros[1024] = {};
  if (clSetKernelArg(kernel, parameter, 16, nullptr) == CL_SUCCESS) return true;  // local memory
  for (std::size_t bytes = 1; bytes <= sizeof zeros; ++bytes)
    if (clSetKernelArg(kernel, parameter, bytes, zeros) == CL_SUCCESS) return true;
  return false;
}

bool set_any(cl_kernel kernel) {
  cl_uint parameters = 0;
  check(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof parameters, &parameters, nullptr), "clGetKernelInfo");
  for (cl_uint i = 0; i < parameters; ++i)
    if (!set_any(kernel, i)) return false;
  return true;
}

/// Whether a kernel that is started now does nothing.
bool can_be_disarmed(const Opened& on) {
  static std::map<cl_device_id, bool> known;
  const auto at = known.find(on.device);
  if (at != known.end()) return at->second;
  return known[on.device] = !writes_42(on, new_probe());
}

/// Has a launch start whose kernel does nothing. Where that cannot be had, or its kernel would run, the answer is that
/// whoever asks has to do it.
Message machine_code(const Opened& on, const Message& request) {
  const Disarmed disarmed;
  if (!disarmed.is() || !can_be_disarmed(on)) return {"unknown"};
  take_loaded_code();
  cl_program program = program_of(on, request.at(3), request.at(4));
  if (program == nullptr) return {"unknown"};
  std::size_t sizes[6] = {};
  for (std::size_t i = 0; i < 6; ++i) sizes[i] = std::stoull(request.at(6 + i));
  const std::size_t* local = sizes[3] == 0 ? nullptr : sizes + 3;
  cl_int code = CL_SUCCESS;
  cl_kernel kernel = clCreateKernel(program, request.at(5).c_str(), &code);
  if (code != CL_SUCCESS || !set_any(kernel)) return {"unknown"};
  cl_command_queue queue = clCreateCommandQueue(on.context, on.device, 0, &code);
  check(code, "clCreateCommandQueue");
  cl_event done = nullptr;
  if (clEnqueueNDRangeKernel(queue, kernel, 3, nullptr, sizes, local, 0, nullptr, &done) != CL_SUCCESS)
    return {"unknown"};
  check(clWaitForEvents(1, &done), "making the machine code");
  clReleaseEvent(done);
  clReleaseCommandQueue(queue);
  clReleaseKernel(kernel);
  return {"made", take_loaded_code()};
}

Message answer(const Message& request) {
  static const std::string missing = load_opencl();
  if (!missing.empty()) return {"no_loader", missing};
  if (request[0] == "probe") return probe();
  if (request[0] == "library") return library(request.at(1));
  cl_device_id device = device_named(request.at(1), request.at(2));
  if (device == nullptr) return {"unknown"};
  if (request[0] == "machine_code") return machine_code(open(device), request);
  if (request[0] == "fp16") return fp16(open(device));
  return build_for(open(device), request.at(3), request.at(4), request.at(5) == "binary");
}

int serve() {
  for (;;) {
    Message request;
    if (receive_message(socket_handle, request, std::chrono::steady_clock::now() + idle) != Received::message) return 0;
    // The last word is the limit in seconds: whoever asked may be gone when it has passed.
    alarm(static_cast<unsigned>(std::stoul(request.back())) + 1);
    request.pop_back();
    Message said;
    try {
      said = answer(request);
    } catch (const std::exception& error) {
      said = {"error", error.what()};
    }
    alarm(0);
    if (!send_message(socket_handle, said)) return 0;
  }
}

}  // namespace
}  // namespace xpuruntime::opencl

int main() {
  // What its parent has open is not its own, and a crash leaves nothing.
  syscall(SYS_close_range, 3U, ~0U, 0U);
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  // Not exit: what drivers do then may hang.
  _exit(xpuruntime::opencl::serve());
}
