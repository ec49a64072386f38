#include "device/cpu_probe.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "xpuruntime/device/device_manager.h"

namespace xpuruntime {
namespace {

// As the kernel prints them, shortened to what differs.
constexpr const char* neoverse_n1 = R"(processor	: 0
BogoMIPS	: 50.00
Features	: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp ssbs
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x3
CPU part	: 0xd0c
CPU revision	: 1

)";

constexpr const char* neoverse_v1 = R"(processor	: 0
BogoMIPS	: 2100.00
Features	: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop sha3 asimddp sha512 sve asimdfhm dit uscat ilrcpc flagm paca pacg dcpodp svei8mm svebf16 i8mm bf16 dgh rng
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x1
CPU part	: 0xd40
CPU revision	: 1
)";

constexpr const char* xeon_amx = R"(processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
model		: 143
model name	: Intel(R) Xeon(R) Platinum 8480+
flags		: fpu vme de sse sse2 ss ht pni pclmulqdq ssse3 fma cx16 sse4_1 sse4_2 popcnt aes xsave avx f16c bmi1 avx2 bmi2 avx512f avx512dq avx512bw avx512vl avx_vnni avx512_bf16 avx512_vnni amx_bf16 avx512_fp16 amx_tile amx_int8 flush_l1d
bugs		: spectre_v1
)";

DeviceProfile profile_of(const char* cpuinfo) {
  DeviceProfile profile;
  profile.cpu_features = parse_cpuinfo(cpuinfo).features;
  set_arithmetic(profile);
  return profile;
}

TEST(CpuInfo, KnowsANeoverseN1) {
  const CpuInfo info = parse_cpuinfo(neoverse_n1);
  EXPECT_EQ(info.vendor, "arm");
  EXPECT_EQ(info.name, "Neoverse-N1");
  const DeviceProfile profile = profile_of(neoverse_n1);
  EXPECT_TRUE(profile.has_cpu_feature("neon") && profile.has_cpu_feature("asimddp"));
  EXPECT_FALSE(profile.has_cpu_feature("sve"));
  EXPECT_TRUE(profile.fp16 && profile.int8 && profile.fp64);
  EXPECT_FALSE(profile.bf16 || profile.fp8 || profile.tensor_cores);
}

TEST(CpuInfo, KnowsANeoverseV1WithSve) {
  EXPECT_EQ(parse_cpuinfo(neoverse_v1).name, "Neoverse-V1");
  const DeviceProfile profile = profile_of(neoverse_v1);
  EXPECT_TRUE(profile.has_cpu_feature("sve") && profile.has_cpu_feature("svebf16"));
  EXPECT_TRUE(profile.fp16 && profile.bf16 && profile.int8);
  EXPECT_FALSE(profile.tensor_cores);
}

TEST(CpuInfo, KnowsAXeonWithAmx) {
  const CpuInfo info = parse_cpuinfo(xeon_amx);
  EXPECT_EQ(info.vendor, "intel");
  EXPECT_EQ(info.name, "Intel(R) Xeon(R) Platinum 8480+");
  const DeviceProfile profile = profile_of(xeon_amx);
  for (const char* feature : {"sse3", "avx2", "fma", "avx512f", "amx_bf16", "amx_tile"}) {
    EXPECT_TRUE(profile.has_cpu_feature(feature)) << feature;
  }
  EXPECT_FALSE(profile.has_cpu_feature("aes")) << "only features that kernels ask for";
  EXPECT_TRUE(profile.fp16 && profile.bf16 && profile.int8 && profile.tensor_cores);
}

TEST(CpuInfo, HandWrittenProfilesSayWhatTheProbeWouldSay) {
  for (const auto& [file, text] : {std::pair("neoverse_n1", neoverse_n1), std::pair("xeon_amx", xeon_amx)}) {
    const auto written = DeviceProfile::load(std::string(XRT_TEST_DATA) + "/profiles/" + file + ".json");
    const DeviceProfile probed = profile_of(text);
    EXPECT_EQ(written.vendor, parse_cpuinfo(text).vendor) << file;
    EXPECT_EQ(written.name, parse_cpuinfo(text).name) << file;
    EXPECT_EQ(written.fp16, probed.fp16) << file;
    EXPECT_EQ(written.bf16, probed.bf16) << file;
    EXPECT_EQ(written.int8, probed.int8) << file;
    EXPECT_EQ(written.tensor_cores, probed.tensor_cores) << file;
    for (const std::string& feature : probed.cpu_features) EXPECT_TRUE(written.has_cpu_feature(feature)) << feature;
  }
}

TEST(CpuInfo, AnOldProcessorHasNoneOfTheNewArithmetic) {
  const DeviceProfile profile = profile_of("vendor_id : AuthenticAMD\nflags : sse sse2 avx avx2 fma f16c\n");
  EXPECT_TRUE(profile.fp64);
  EXPECT_FALSE(profile.fp16 || profile.bf16 || profile.int8 || profile.tensor_cores);
  EXPECT_EQ(parse_cpuinfo("vendor_id : AuthenticAMD\n").vendor, "amd");
}

TEST(CpuInfo, CountsOnlyWhatAllProcessorsHave) {
  const CpuInfo info = parse_cpuinfo("flags : avx avx2 avx512f\n\nflags : avx avx2\n\nflags : avx avx2 avx512f\n");
  EXPECT_EQ(info.features, (std::vector<std::string>{"avx", "avx2"}));
}

TEST(CpuInfo, NamesAnUnknownCoreByItsNumbers) {
  EXPECT_EQ(arm_core_name(0x41, 0xd49), "Neoverse-N2");
  EXPECT_EQ(arm_core_name(0x41, 0xd4f), "Neoverse-V2");
  EXPECT_EQ(arm_core_name(0xc0, 0xac3), "Ampere-1");
  EXPECT_EQ(arm_core_name(0x61, 0xfff), "aarch64 core 0x61/0xfff");
  EXPECT_EQ(arm_vendor(0x61), "apple");
  EXPECT_EQ(arm_vendor(0x99), "unknown");
}

TEST(CpuInfo, FindsNothingInGarbage) {
  for (const std::string& text : {std::string(), std::string("\n\n:::\n"), std::string("flags"), std::string("flags :"),
                                  std::string(5000, ':'), std::string("CPU implementer : 0xzz\nCPU part : -1\n"),
                                  std::string("CPU part : 99999999999999\n"), std::string("\0\xff\n:\0", 5)}) {
    const CpuInfo info = parse_cpuinfo(text);
    EXPECT_TRUE(info.vendor.empty() && info.name.empty() && info.features.empty()) << text.substr(0, 40);
  }
}

TEST(CacheSize, ReadsTheSystemsUnitsAndNothingElse) {
  EXPECT_EQ(parse_cache_size("48K\n"), 49152U);
  EXPECT_EQ(parse_cache_size("300M"), 314572800U);
  EXPECT_EQ(parse_cache_size("64"), 64U);
  for (const char* text : {"", "K", "-1K", "48k", "48KB", "4.5M", "99999999999999999999K", "18446744073709551615K"}) {
    EXPECT_EQ(parse_cache_size(text), 0U) << text;
  }
}

class CacheFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    root = std::filesystem::temp_directory_path() / ("xrt_caches_" + std::to_string(getpid()));
    std::filesystem::create_directories(root);
  }
  void TearDown() override { std::filesystem::remove_all(root); }
  void add(int index, const char* level, const char* type, const char* size) {
    const auto entry = root / ("index" + std::to_string(index));
    std::filesystem::create_directories(entry);
    std::ofstream(entry / "level") << level << "\n";
    std::ofstream(entry / "type") << type << "\n";
    std::ofstream(entry / "size") << size << "\n";
    std::ofstream(entry / "coherency_line_size") << 64 << "\n";
  }
  std::filesystem::path root;
};

TEST_F(CacheFolder, GivesTheDataCachesOfEachLevel) {
  add(0, "1", "Instruction", "32K");
  add(1, "1", "Data", "48K");
  add(2, "2", "Unified", "2048K");
  add(3, "3", "Unified", "107520K");
  EXPECT_EQ(read_caches(root.string()), (CpuCaches{49152, 2097152, 110100480, 64}));
}

TEST_F(CacheFolder, MayBeIncompleteOrMissing) {
  add(0, "1", "Data", "garbage");
  EXPECT_EQ(read_caches(root.string()), (CpuCaches{0, 0, 0, 64}));
  EXPECT_EQ(read_caches((root / "nothing").string()), CpuCaches{});
}

/// What a command prints, as a number; -1 if it prints none.
long ask(const char* command) {
  FILE* pipe = popen(command, "r");
  if (pipe == nullptr) return -1;
  long value = -1;
  if (std::fscanf(pipe, "%ld", &value) != 1) value = -1;
  pclose(pipe);
  return value;
}

TEST(ProbeCpu, CountsTheCoresThisProcessMayUse) {
  const DeviceProfile profile = probe_cpu();
  EXPECT_GE(profile.compute_units, 1);
  EXPECT_EQ(profile.compute_units, ask("env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc"));
}

TEST(ProbeCpu, AgreesWithTheSystemsOwnToolsOnMemory) {
  const long kilobytes = ask("awk '/^MemTotal:/ {print $2}' /proc/meminfo");
  if (kilobytes < 0) GTEST_SKIP() << "/proc/meminfo cannot be read here";
  EXPECT_EQ(probe_cpu().global_memory_bytes / 1024, static_cast<std::uint64_t>(kilobytes));
}

TEST(ProbeCpu, AgreesWithGetconfOnCaches) {
  const DeviceProfile profile = probe_cpu();
  const auto compare = [](std::uint64_t probed, const char* command, const char* what) {
    const long told = ask(command);
    if (told <= 0) return;  // this C library does not know either
    EXPECT_EQ(probed, static_cast<std::uint64_t>(told)) << what;
  };
  compare(profile.l1_bytes, "getconf LEVEL1_DCACHE_SIZE", "L1");
  compare(profile.cache_line_bytes, "getconf LEVEL1_DCACHE_LINESIZE", "line");
  compare(profile.l2_bytes, "getconf LEVEL2_CACHE_SIZE", "L2");
}

TEST(ProbeCpu, NamesTheProcessor) {
  const DeviceProfile profile = probe_cpu();
  EXPECT_EQ(profile.type, DeviceType::cpu);
  EXPECT_FALSE(profile.name.empty());
  EXPECT_FALSE(profile.vendor.empty());
  EXPECT_EQ(DeviceProfile::from_json(profile.to_json()), profile);
}

#if defined(__x86_64__)
TEST(ProbeCpu, FindsTheFeaturesThatTheProcessorItselfReports) {
  const DeviceProfile profile = probe_cpu();
  __builtin_cpu_init();
  EXPECT_TRUE(profile.has_cpu_feature("sse2"));
  EXPECT_EQ(profile.has_cpu_feature("sse4_2"), __builtin_cpu_supports("sse4.2") != 0);
  EXPECT_EQ(profile.has_cpu_feature("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(profile.has_cpu_feature("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(profile.has_cpu_feature("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(profile.has_cpu_feature("avx512_vnni"), __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(profile.has_cpu_feature("avx512_bf16"), __builtin_cpu_supports("avx512bf16") != 0);
}
#elif defined(__aarch64__)
TEST(ProbeCpu, FindsWhatEveryAarch64Has) {
  EXPECT_TRUE(probe_cpu().has_cpu_feature("neon"));
  EXPECT_TRUE(probe_cpu().has_cpu_feature("asimd"));
}
#endif

}  // namespace
}  // namespace xpuruntime
