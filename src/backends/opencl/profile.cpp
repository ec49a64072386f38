#include "backends/opencl/profile.h"

#include <algorithm>
#include <cctype>

#include "backends/opencl/clblast.h"
#include "core/environment_variable.h"
#include "core/names.h"

namespace xpuruntime::opencl {
namespace {

// From vendors' extensions; not every header has them.
constexpr const char* nv_attributes = "cl_nv_device_attribute_query";
constexpr cl_device_info nv_compute_capability_major = 0x4000;
constexpr cl_device_info nv_compute_capability_minor = 0x4001;
constexpr cl_device_info nv_warp_size = 0x4003;
constexpr cl_device_info nv_integrated_memory = 0x4006;
constexpr cl_device_info amd_wavefront_width = 0x4043;

std::string trim(std::string text) {
  while (!text.empty() && (text.back() == '\0' || std::isspace(static_cast<unsigned char>(text.back()))))
    text.pop_back();
  const std::size_t start = text.find_first_not_of(" \t\n");
  return start == std::string::npos ? std::string() : text.substr(start);
}

void read_limits(DeviceProfile& profile, cl_device_id device) {
  profile.compute_units = static_cast<int>(device_value<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS));
  profile.integrated = device_value<cl_bool>(device, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  profile.global_memory_bytes = device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
  profile.local_memory_bytes = device_value<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE);
  profile.cache_line_bytes = device_value<cl_uint>(device, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE);
  profile.max_work_group_size =
      static_cast<std::uint32_t>(device_value<std::size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  std::vector<std::size_t> sizes(device_value<cl_uint>(device, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS));
  if (clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizes.size() * sizeof(std::size_t), sizes.data(),
                      nullptr) != CL_SUCCESS)
    return;
  for (const std::size_t size : sizes) profile.max_work_item_sizes.push_back(static_cast<std::uint32_t>(size));
}

void read_arithmetic(DeviceProfile& profile, const TriedDevice* tried) {
  // NVIDIA's computes in half and does not say so; others say so and cannot compile it.
  profile.fp16 = tried != nullptr ? tried->fp16 : profile.has_extension("cl_khr_fp16");
  profile.fp64 = profile.has_extension("cl_khr_fp64");
  profile.int8 = profile.has_extension("cl_khr_integer_dot_product");
}

void read_vendor_attributes(DeviceProfile& profile, cl_device_id device) {
  if (profile.has_extension(nv_attributes)) {
    profile.compute_capability_major = static_cast<int>(device_value<cl_uint>(device, nv_compute_capability_major));
    profile.compute_capability_minor = static_cast<int>(device_value<cl_uint>(device, nv_compute_capability_minor));
    profile.sub_group_size = device_value<cl_uint>(device, nv_warp_size);
    profile.integrated = device_value<cl_bool>(device, nv_integrated_memory) != 0;
  } else if (profile.has_extension("cl_amd_device_attribute_query")) {
    profile.sub_group_size = device_value<cl_uint>(device, amd_wavefront_width);
  }
}

}  // namespace

std::string native_options(cl_device_id device) {
  const std::vector<std::string> extensions = split_words(device_text(device, CL_DEVICE_EXTENSIONS));
  const bool nvidia = std::find(extensions.begin(), extensions.end(), nv_attributes) != extensions.end();
  return nvidia && device_value<cl_uint>(device, nv_compute_capability_major) >= 8 ? " -D NVIDIA_PAIRS" : "";
}

std::string vendor_name(std::string_view platform_name, std::uint32_t vendor_id, std::string_view device_vendor,
                        bool is_cpu) {
  if (is_cpu && platform_name.find("Portable Computing Language") != std::string_view::npos) return "pocl";
  struct Number {
    std::uint32_t id;
    std::string_view vendor;
  };
  // As on the PCI bus, or as Khronos lists them.
  constexpr Number numbers[] = {{0x10de, "nvidia"}, {0x8086, "intel"},    {0x1002, "amd"},
                                {0x1022, "amd"},    {0x106b, "apple"},    {0x1027f00, "apple"},
                                {0x13b5, "arm"},    {0x5143, "qualcomm"}, {0x1010, "imagination"}};
  for (const Number& number : numbers)
    if (number.id == vendor_id) return std::string(number.vendor);
  struct Spelling {
    std::string_view part;
    std::string_view vendor;
  };
  constexpr Spelling spellings[] = {
      {"nvidia", "nvidia"}, {"intel", "intel"},       {"advanced micro", "amd"},      {"amd", "amd"},
      {"apple", "apple"},   {"qualcomm", "qualcomm"}, {"imagination", "imagination"}, {"mesa", "mesa"},
      {"arm", "arm"}};
  const std::string vendor = lowered(device_vendor);
  for (const Spelling& spelling : spellings)
    if (vendor.find(spelling.part) != std::string::npos) return std::string(spelling.vendor);
  const std::vector<std::string> words = split_words(vendor);
  return words.empty() ? "unknown" : words.front();
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t start = text.find_first_not_of(' ');
    if (start == std::string_view::npos) return words;
    const std::size_t end = std::min(text.find(' ', start), text.size());
    words.emplace_back(text.substr(start, end - start));
    text.remove_prefix(end);
  }
}

std::string device_text(cl_device_id device, cl_device_info what) {
  std::size_t bytes = 0;
  if (clGetDeviceInfo(device, what, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::string text(bytes, '\0');
  if (clGetDeviceInfo(device, what, bytes, text.data(), nullptr) != CL_SUCCESS) return {};
  return trim(std::move(text));
}

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  std::size_t bytes = 0;
  if (clGetPlatformInfo(platform, what, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::string text(bytes, '\0');
  if (clGetPlatformInfo(platform, what, bytes, text.data(), nullptr) != CL_SUCCESS) return {};
  return trim(std::move(text));
}

std::vector<cl_platform_id> all_platforms() {
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return {};
  std::vector<cl_platform_id> ids(count);
  if (clGetPlatformIDs(count, ids.data(), nullptr) != CL_SUCCESS) return {};
  return ids;
}

std::vector<cl_device_id> devices_of(cl_platform_id platform) {
  cl_uint count = 0;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) return {};
  std::vector<cl_device_id> ids(count);
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr) != CL_SUCCESS) return {};
  return ids;
}

bool is_pocl(cl_platform_id platform) {
  return platform_text(platform, CL_PLATFORM_NAME) == "Portable Computing Language";
}

std::string pocl_cache_folder() {
  if (const char* own = environment_variable("POCL_CACHE_DIR"); own != nullptr) return own;
  if (const char* caches = environment_variable("XDG_CACHE_HOME"); caches != nullptr && *caches != '\0')
    return std::string(caches) + "/pocl/kcache";
  if (const char* home = environment_variable("HOME"); home != nullptr)
    return std::string(home) + "/.cache/pocl/kcache";
  return "/tmp/pocl/kcache";
}

DeviceProfile read_profile(cl_platform_id platform, cl_device_id device, const TriedDevice* tried) {
  const bool is_cpu = (device_value<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  DeviceProfile profile;
  profile.type = DeviceType::opencl;
  profile.vendor =
      vendor_name(platform_text(platform, CL_PLATFORM_NAME), device_value<cl_uint>(device, CL_DEVICE_VENDOR_ID),
                  device_text(device, CL_DEVICE_VENDOR), is_cpu);
  profile.name = device_text(device, CL_DEVICE_NAME);
  profile.driver_version = device_text(device, CL_DRIVER_VERSION);
  profile.library_versions["opencl"] = device_text(device, CL_DEVICE_VERSION);
  if (const std::string version = clblast_version(); !version.empty()) profile.library_versions["clblast"] = version;
  profile.extensions = split_words(device_text(device, CL_DEVICE_EXTENSIONS));
  read_limits(profile, device);
  read_arithmetic(profile, tried);
  read_vendor_attributes(profile, device);
  // What a compiled kernel prefers is the sub-group on GPUs; CPUs have none.
  if (profile.sub_group_size == 0 && !is_cpu && tried != nullptr)
    profile.sub_group_size = static_cast<std::uint32_t>(tried->multiple);
  if (is_cpu) profile.cpu_features = {"cpu"};  // tells it from the same vendor's GPU
  // OpenCL tells of one cache without its level: the one next to memory.
  (is_cpu ? profile.l3_bytes : profile.l2_bytes) = device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  return profile;
}

}  // namespace xpuruntime::opencl
