#include "device/cpu_probe.h"

#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "core/usable_cores.h"
#include "xpuruntime/device/device_manager.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace xpuruntime {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// ---- where /proc is not mounted, the processor or the kernel is asked directly ----

#if defined(__x86_64__)
constexpr std::string_view features_key = "flags\t";
std::vector<std::string> features_without_proc() {
  std::vector<std::string> features = {"sse", "sse2"};  // part of x86_64
  __builtin_cpu_init();
#define XRT_ADD_FEATURE(builtin, name) \
  if (__builtin_cpu_supports(builtin)) features.emplace_back(name)
  XRT_ADD_FEATURE("sse3", "sse3");
  XRT_ADD_FEATURE("ssse3", "ssse3");
  XRT_ADD_FEATURE("sse4.1", "sse4_1");
  XRT_ADD_FEATURE("sse4.2", "sse4_2");
  XRT_ADD_FEATURE("popcnt", "popcnt");
  XRT_ADD_FEATURE("avx", "avx");
  XRT_ADD_FEATURE("fma", "fma");
  XRT_ADD_FEATURE("avx2", "avx2");
  XRT_ADD_FEATURE("avx512f", "avx512f");
  XRT_ADD_FEATURE("avx512bw", "avx512bw");
  XRT_ADD_FEATURE("avx512dq", "avx512dq");
  XRT_ADD_FEATURE("avx512vl", "avx512vl");
  XRT_ADD_FEATURE("avx512vnni", "avx512_vnni");
  XRT_ADD_FEATURE("avx512bf16", "avx512_bf16");
#undef XRT_ADD_FEATURE
  return features;
}
#elif defined(__aarch64__)
struct HwcapBit {
  unsigned long type = 0;
  int bit = 0;
  std::string_view name = {};
};
// The bit numbers are the kernel's interface and never change; headers of older systems lack the later names.
constexpr HwcapBit hwcap_bits[] = {
    {AT_HWCAP, 0, "fp"},        {AT_HWCAP, 1, "asimd"},    {AT_HWCAP, 1, "neon"},     {AT_HWCAP, 8, "atomics"},
    {AT_HWCAP, 9, "fphp"},      {AT_HWCAP, 10, "asimdhp"}, {AT_HWCAP, 20, "asimddp"}, {AT_HWCAP, 22, "sve"},
    {AT_HWCAP, 23, "asimdfhm"}, {AT_HWCAP2, 1, "sve2"},    {AT_HWCAP2, 9, "svei8mm"}, {AT_HWCAP2, 12, "svebf16"},
    {AT_HWCAP2, 13, "i8mm"},    {AT_HWCAP2, 14, "bf16"},   {AT_HWCAP2, 23, "sme"},
};
constexpr std::string_view features_key = "Features\t";
std::vector<std::string> features_without_proc() {
  std::vector<std::string> features;
  for (const HwcapBit& hwcap : hwcap_bits) {
    if ((getauxval(hwcap.type) >> hwcap.bit & 1) != 0) features.emplace_back(hwcap.name);
  }
  return features;
}
#else
constexpr std::string_view features_key = "";
std::vector<std::string> features_without_proc() { return {}; }
#endif

std::string machine_name() {
  utsname system = {};
  return uname(&system) == 0 ? system.machine : "unknown";
}

std::uint64_t memory_bytes() {
  struct sysinfo info = {};
  return sysinfo(&info) == 0 ? std::uint64_t{info.totalram} * info.mem_unit : 0;
}

/// What the C library says, where the folder left a gap; it answers -1 or 0 when it does not know.
void fill_gaps(CpuCaches& caches) {
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  const auto ask = [](auto& value, int name) {
    const long answer = value == 0 ? sysconf(name) : 0;
    if (answer > 0) value = static_cast<std::remove_reference_t<decltype(value)>>(answer);
  };
  ask(caches.l1_bytes, _SC_LEVEL1_DCACHE_SIZE);
  ask(caches.l2_bytes, _SC_LEVEL2_CACHE_SIZE);
  ask(caches.l3_bytes, _SC_LEVEL3_CACHE_SIZE);
  ask(caches.line_bytes, _SC_LEVEL1_DCACHE_LINESIZE);
#endif
}

void set_caches(DeviceProfile& profile) {
  CpuCaches caches = read_caches("/sys/devices/system/cpu/cpu0/cache");
  fill_gaps(caches);
  profile.l1_bytes = caches.l1_bytes;
  profile.l2_bytes = caches.l2_bytes;
  profile.l3_bytes = caches.l3_bytes;
  profile.cache_line_bytes = caches.line_bytes;
}

}  // namespace

CpuCaches read_caches(const std::string& folder) {
  CpuCaches caches;
  constexpr int most_entries = 16;
  for (int i = 0; i < most_entries; ++i) {
    const std::string entry = folder + "/index" + std::to_string(i) + "/";
    const std::string level = read_text(entry + "level");
    if (level.empty()) break;
    if (read_text(entry + "type").starts_with("Instruction")) continue;
    const std::uint64_t size = parse_cache_size(read_text(entry + "size"));
    if (level[0] == '1') caches.l1_bytes = size;
    if (level[0] == '2') caches.l2_bytes = size;
    if (level[0] == '3') caches.l3_bytes = size;
    const std::uint64_t line = parse_cache_size(read_text(entry + "coherency_line_size"));
    if (level[0] == '1') caches.line_bytes = static_cast<std::uint32_t>(line);
  }
  return caches;
}

DeviceProfile probe_cpu() {
  std::string text = read_text("/proc/cpuinfo");
  if (text.find(features_key) == std::string::npos) text.clear();  // an emulator shows the file of the machine below
  CpuInfo info = parse_cpuinfo(text);
  DeviceProfile profile;
  profile.type = DeviceType::cpu;
  profile.vendor = info.vendor.empty() ? "unknown" : std::move(info.vendor);
  profile.name = info.name.empty() ? machine_name() : std::move(info.name);
  profile.cpu_features = info.features.empty() ? features_without_proc() : std::move(info.features);
  profile.compute_units = usable_cores();
  profile.integrated = true;
  profile.global_memory_bytes = memory_bytes();
  set_caches(profile);
  set_arithmetic(profile);
  return profile;
}

}  // namespace xpuruntime
