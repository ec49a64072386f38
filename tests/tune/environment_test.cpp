#include "xpuruntime/tune/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/expect_error.h"

namespace xpuruntime {
namespace {

DeviceProfile xeon() {
  DeviceProfile profile;
  profile.vendor = "intel";
  profile.name = "Xeon";
  profile.compute_units = 4;
  profile.integrated = true;
  profile.global_memory_bytes = 1 << 30;
  profile.l2_bytes = 1024;
  profile.cpu_features = {"fma", "avx2"};
  profile.library_versions = {{"openblas", "0.3.21"}};
  return profile;
}

DeviceProfile h200() {
  DeviceProfile profile;
  profile.type = DeviceType::nvidia;
  profile.vendor = "nvidia";
  profile.name = "H200";
  profile.driver_version = "580.1";
  profile.compute_capability_major = 9;
  profile.global_memory_bytes = std::uint64_t{141} << 30;
  return profile;
}

EnvironmentMatch compare(const DeviceProfile& there, const DeviceProfile& here) {
  return compare_environments(environment_of(there), environment_of(here));
}

TEST(Environment, SaysWhatBearsOnSpeedAndNothingThatChangesByItself) {
  unsetenv("OMP_NUM_THREADS");
  unsetenv("XPURUNTIME_NUM_THREADS");
  const Environment cpu = environment_of(xeon());
  EXPECT_EQ(cpu.device, "cpu intel Xeon");
  EXPECT_EQ(cpu.traits,
            (std::map<std::string, std::string>{{"cores", "4"}, {"cpu_features", "avx2 fma"}, {"l2_bytes", "1024"}}));
  EXPECT_EQ(cpu.versions.at("openblas"), "0.3.21");
  EXPECT_TRUE(cpu.versions.contains("xpuruntime"));
  const Environment gpu = environment_of(h200());
  EXPECT_EQ(gpu.device, "cuda nvidia H200");
  EXPECT_EQ(gpu.traits.at("compute_capability"), "9.0");
  EXPECT_EQ(gpu.traits.at("memory_mib"), "144384");
  EXPECT_EQ(gpu.versions.at("driver"), "580.1");

  DeviceProfile later = xeon();
  later.global_memory_bytes += 4096;
  later.cpu_features = {"avx2", "fma"};
  EXPECT_EQ(environment_of(later), cpu);
}

TEST(Environment, TellsThreadsThatTheProcessMayUse) {
  setenv("XPURUNTIME_NUM_THREADS", "1", 1);
  const Environment bounded = environment_of(xeon());
  unsetenv("XPURUNTIME_NUM_THREADS");
  EXPECT_EQ(bounded.traits.at("threads"), "1");
  const EnvironmentMatch match = compare_environments(bounded, environment_of(xeon()));
  EXPECT_EQ(match.verdict, EntryVerdict::revalidate);
  EXPECT_EQ(match.reason, "threads 1 there, 4 here");
}

TEST(Environment, AsManyThreadsAsCoresAreWhatNobodyNeedsToSet) {
  setenv("OMP_NUM_THREADS", "4", 1);
  const Environment set = environment_of(xeon());  // it has four cores
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(compare_environments(set, environment_of(xeon())).verdict, EntryVerdict::same);
  EXPECT_EQ(compare_environments(environment_of(xeon()), set).reason, "");
}

TEST(Environment, GivesEachDifferenceAVerdictWithItsReason) {
  EXPECT_EQ(compare(xeon(), xeon()).verdict, EntryVerdict::same);
  EXPECT_EQ(compare(xeon(), xeon()).reason, "");

  DeviceProfile other = xeon();
  other.compute_units = 2;
  other.library_versions["openblas"] = "0.3.28";
  other.cpu_features = {"avx2", "avx512f"};
  EXPECT_EQ(compare(xeon(), other).verdict, EntryVerdict::revalidate);
  EXPECT_EQ(
      compare(xeon(), other).reason,
      "cores 4 there, 2 here; cpu_features fma only there, avx512f only here; openblas 0.3.21 there, 0.3.28 here");

  EXPECT_EQ(compare(xeon(), h200()).verdict, EntryVerdict::refuse);
  EXPECT_EQ(compare(xeon(), h200()).reason, "device cpu intel Xeon there, cuda nvidia H200 here");
  other = h200();
  other.compute_capability_major = 10;
  EXPECT_EQ(compare(other, h200()).verdict, EntryVerdict::refuse);
  EXPECT_EQ(compare(other, h200()).reason, "compute_capability 10.0 there, 9.0 here");
  other = h200();
  other.driver_version = "550.54";
  EXPECT_EQ(compare(other, h200()).reason, "driver 550.54 there, 580.1 here");
  EXPECT_EQ(to_string(EntryVerdict::same), "same");
  EXPECT_EQ(to_string(EntryVerdict::revalidate), "revalidate");
  EXPECT_EQ(to_string(EntryVerdict::refuse), "refuse");
}

TEST(Environment, ComesBackFromItsJson) {
  DeviceProfile strange = xeon();
  strange.name = "a \"name\" with \\ and a byte that is no text: \xff";
  for (const Environment& environment : {environment_of(xeon()), environment_of(h200()), environment_of(strange)}) {
    const std::string json = environment.to_json();
    EXPECT_EQ(json.find('\n'), std::string::npos);
    EXPECT_EQ(Environment::from_json(json), environment);
    EXPECT_EQ(environment.id().size(), 16);
    EXPECT_EQ(environment.id(), Environment::from_json(json).id());
  }
  EXPECT_NE(environment_of(xeon()).id(), environment_of(h200()).id());
  EXPECT_EQ((Environment{"d", {{"b", "2"}, {"a", "1"}}, {}}.to_json()),
            R"({"device":"d","traits":{"a":"1","b":"2"},"versions":{}})");
}

TEST(Environment, RefusesJsonThatIsNone) {
  const auto refused = [](ErrorCode code, const char* json, const char* part) {
    expect_error(code, part, [&] { Environment::from_json(json); });
  };
  refused(ErrorCode::corrupt_data, "", "not JSON");
  refused(ErrorCode::corrupt_data, R"({"device":"d","traits":{},"versions":{}} x)", "not JSON");
  refused(ErrorCode::corrupt_data, R"({"device":"d","traits":{"a":{"b":{}}},"versions":{}})", "nested");
  refused(ErrorCode::invalid_argument, "[]", "JSON object");
  refused(ErrorCode::invalid_argument, R"({"device":"d","traits":{}})", "versions");
  refused(ErrorCode::invalid_argument, R"({"device":1,"traits":{},"versions":{}})", "device");
  refused(ErrorCode::invalid_argument, R"({"device":"d","traits":{"a":1},"versions":{}})", "traits.a");
  refused(ErrorCode::invalid_argument, R"({"device":"d","traits":{},"versions":{},"colour":"red"})", "colour");
}

}  // namespace
}  // namespace xpuruntime
