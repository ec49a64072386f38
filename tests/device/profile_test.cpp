#include "xpuruntime/device/profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/expect_error.h"

namespace xpuruntime {
namespace {

const std::string folder = std::string(XRT_TEST_DATA) + "/profiles/";

/// A profile in which no field has its default.
DeviceProfile full_profile() {
  DeviceProfile p;
  p.type = DeviceType::opencl;
  p.vendor = "intel";
  p.name = "Gerät \"7\"\n\\";
  p.driver_version = "1.2.3";
  p.library_versions = {{"a", "1"}, {"b", "2"}};
  p.compute_capability_major = 9;
  p.compute_capability_minor = 1;
  p.compute_units = 96;
  p.integrated = true;
  p.global_memory_bytes = UINT64_MAX;
  p.local_memory_bytes = 65536;
  p.l1_bytes = 1;
  p.l2_bytes = 2;
  p.l3_bytes = 3;
  p.cache_line_bytes = UINT32_MAX;
  p.max_work_group_size = 512;
  p.max_work_item_sizes = {512, 256, 64};
  p.sub_group_size = 16;
  p.fp16 = p.bf16 = p.fp64 = p.int8 = p.fp8 = p.tensor_cores = true;
  p.cpu_features = {"avx2", "fma"};
  p.extensions = {"cl_khr_fp16"};
  return p;
}

/// Expects that the text is refused with this code and that the error names every part.
void expect_refused(const std::string& text, ErrorCode code, const std::vector<std::string>& parts) {
  const std::string what = error_text(code, [&] { DeviceProfile::from_json(text); });
  EXPECT_TRUE(what.starts_with("[DeviceProfile::from_json] ")) << what << "\nof: " << text.substr(0, 200);
  for (const std::string& part : parts) EXPECT_HAS(what, part) << "\nlacks: " << part;
}

TEST(DeviceProfile, ComesBackFromJsonAsItWas) {
  EXPECT_EQ(DeviceProfile::from_json(full_profile().to_json()), full_profile());
  EXPECT_EQ(DeviceProfile::from_json(DeviceProfile().to_json()), DeviceProfile());
}

TEST(DeviceProfile, WritesEveryFieldUnderItsName) {
  // Read by another parser call than ours, field by field.
  const auto json = nlohmann::json::parse(full_profile().to_json());
  EXPECT_EQ(json.size(), 27U);
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["type"], "opencl");
  EXPECT_EQ(json["name"], "Gerät \"7\"\n\\");
  EXPECT_EQ(json["library_versions"]["b"], "2");
  EXPECT_EQ(json["global_memory_bytes"], UINT64_MAX);
  EXPECT_EQ(json["max_work_item_sizes"], (std::vector<int>{512, 256, 64}));
  EXPECT_EQ(json["integrated"], true);
  const auto defaults = nlohmann::json::parse(DeviceProfile().to_json());
  for (const auto& [name, value] : defaults.items()) {
    if (name == "version") continue;
    EXPECT_NE(json[name], value) << name << " is the default in the full profile";
  }
}

TEST(DeviceProfile, IsIndentedForPeople) {
  EXPECT_TRUE(DeviceProfile().to_json().starts_with("{\n  \"version\": 1,\n  \"type\": \"cpu\",\n"));
}

TEST(DeviceProfile, WritesANameThatIsNotUtf8) {
  DeviceProfile profile;
  profile.name = "GPU \xff\xfe";
  EXPECT_TRUE(DeviceProfile::from_json(profile.to_json()).name.starts_with("GPU "));
}

TEST(DeviceProfile, KeepsDefaultsForFieldsLeftOut) {
  EXPECT_EQ(DeviceProfile::from_json("{}"), DeviceProfile());
  DeviceProfile expected;
  expected.type = DeviceType::nvidia;
  expected.fp8 = true;
  EXPECT_EQ(DeviceProfile::from_json(R"({"type": "cuda", "fp8": true})"), expected);
  EXPECT_EQ(DeviceProfile::from_json(R"({"type": "NVIDIA", "fp8": true, "version": 1})"), expected);
}

TEST(DeviceProfile, RefusesUnknownFieldsAndNamesNearOnes) {
  expect_refused(R"({"compute_unit": 3})", ErrorCode::invalid_argument, {"'compute_unit'", "compute_units"});
  expect_refused(R"({"zzz": 3})", ErrorCode::invalid_argument, {"'zzz'"});
  expect_refused(R"({"": 3})", ErrorCode::invalid_argument, {"''"});
}

TEST(DeviceProfile, RefusesWrongTypesAndNamesTheField) {
  const auto code = ErrorCode::invalid_argument;
  expect_refused(R"({"vendor": 3})", code, {"'vendor'"});
  expect_refused(R"({"vendor": null})", code, {"'vendor'"});
  expect_refused(R"({"fp16": 1})", code, {"'fp16'"});
  expect_refused(R"({"compute_units": true})", code, {"'compute_units'"});
  expect_refused(R"({"compute_units": "3"})", code, {"'compute_units'"});
  expect_refused(R"({"compute_units": 3.0})", code, {"'compute_units'"});
  expect_refused(R"({"cpu_features": "avx2"})", code, {"'cpu_features'"});
  expect_refused(R"({"cpu_features": ["avx2", 3]})", code, {"'cpu_features[1]'"});
  expect_refused(R"({"max_work_item_sizes": [1, 2, -3]})", code, {"'max_work_item_sizes[2]'"});
  expect_refused(R"({"max_work_item_sizes": {"a": 1}})", code, {"'max_work_item_sizes'"});
  expect_refused(R"({"library_versions": ["a"]})", code, {"'library_versions'"});
  expect_refused(R"({"library_versions": {"cudnn": 9}})", code, {"'library_versions.cudnn'"});
  expect_refused(R"({"type": 1})", code, {"'type'"});
  for (const char* text : {"[]", "3", "null", "\"cpu\"", "true"}) expect_refused(text, code, {"object"});
}

TEST(DeviceProfile, RefusesNumbersOutOfRangeAndSaysTheRange) {
  const auto code = ErrorCode::invalid_argument;
  expect_refused(R"({"compute_units": -1})", code, {"'compute_units'", "0 to 2147483647"});
  expect_refused(R"({"compute_units": 2147483648})", code, {"'compute_units'"});
  expect_refused(R"({"cache_line_bytes": 4294967296})", code, {"'cache_line_bytes'", "4294967295"});
  expect_refused(R"({"l2_bytes": 18446744073709551616})", code, {"'l2_bytes'", "18446744073709551615"});
  expect_refused(R"({"l2_bytes": 1e3})", code, {"'l2_bytes'"});
  expect_refused(R"({"l2_bytes": 1e999})", ErrorCode::corrupt_data, {"1e999"});
}

TEST(DeviceProfile, RefusesAnUnknownDeviceTypeAndNamesNearOnes) {
  expect_refused(R"({"type": "opncl"})", ErrorCode::invalid_argument, {"'type'", "opncl", "opencl"});
}

TEST(DeviceProfile, RefusesAVendorThatNoRuleWouldMatch) {
  expect_refused(R"({"vendor": "NVIDIA"})", ErrorCode::invalid_argument, {"'vendor'", "lower case"});
}

TEST(DeviceProfile, RefusesOtherVersions) {
  for (const char* version : {"2", "0", "-1", "\"1\"", "null", "[1]"}) {
    expect_refused(std::string(R"({"version": )") + version + "}", ErrorCode::invalid_argument, {"'version'", "1"});
  }
}

TEST(DeviceProfile, RefusesAFieldThatStandsTwice) {
  expect_refused(R"({"fp16": true, "fp16": false})", ErrorCode::invalid_argument, {"'fp16'", "a duplicate"});
  expect_refused(R"({"library_versions": {"a": "1", "a": "2"}})", ErrorCode::invalid_argument,
                 {"line 1, column 33", "'library_versions.a'", "a duplicate"});
  EXPECT_NO_THROW(DeviceProfile::from_json(R"({"library_versions": {"fp16": "1"}, "fp16": true})"));
}

TEST(DeviceProfile, SaysLineAndColumnOfBadJson) {
  const auto code = ErrorCode::corrupt_data;
  expect_refused("{\n  \"fp16\": true,\n  \"bf16\": maybe\n}", code, {"line 3, column 11"});
  expect_refused("{\"fp16\": true} more", code, {"line 1, column 16"});
  expect_refused("{\"fp16\": true}\n{}", code, {"line 2, column 1"});
  expect_refused("{\"fp16\": true,}", code, {"line 1, column 15"});
  expect_refused("{\"fp16\": true // comment\n}", code, {"line 1, column 15"});
  expect_refused("", code, {"line 1, column 1"});
  expect_refused("{\"name\": \"\xff\"}", code, {"line 1, column 11"});
  expect_refused("{\"name\": \"open", code, {"line 1, column 15"});
  expect_refused(std::string("{}\0garbage", 10), code, {"line 1, column 3"});
}

TEST(DeviceProfile, RefusesDeepNestingBeforeItCosts) {
  const auto code = ErrorCode::corrupt_data;
  expect_refused(std::string(1000000, '['), code, {"nested"});
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  expect_refused(objects, code, {"nested"});
  expect_refused(R"({"max_work_item_sizes": [[1]]})", code, {"nested"});
}

TEST(DeviceProfile, ErrorsAreShortAndShowNoRawBytes) {
  const std::string long_name(100000, 'a');
  for (const std::string& text :
       {std::string("{\"name\": \x01\x80\xff"), "{\"" + long_name + "\": 1}", "{\"vendor\": \"A" + long_name + "\"}",
        "{\"version\": \"" + long_name + "\"}", std::string("{\"\\u0007ä\": 1}")}) {
    try {
      DeviceProfile::from_json(text);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_LT(what.size(), 500U);
      EXPECT_EQ(what.find_first_of("\x01\x07\x80\xff"), what.npos) << what;
    }
  }
}

TEST(DeviceProfile, SurvivesEveryTruncationAndEveryChangedByte) {
  const std::string text = full_profile().to_json();
  std::size_t accepted = 0;
  const auto attempt = [&](const std::string& damaged) {
    try {
      DeviceProfile::from_json(damaged);
      ++accepted;
    } catch (const Error&) {
    }
  };
  const std::string_view whole = std::string_view(text).substr(0, text.rfind('}'));
  for (std::size_t i = 0; i < whole.size(); ++i) attempt(text.substr(0, i));
  EXPECT_EQ(accepted, 0U);
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'\0', '"', '{', '}', '9', '-', '\xff'}) {
      std::string damaged = text;
      damaged[i] = c;
      attempt(damaged);
    }
  }
  EXPECT_GT(accepted, 0U);
}

TEST(DeviceProfile, KnowsItsFeaturesAndExtensions) {
  const DeviceProfile profile = full_profile();
  EXPECT_TRUE(profile.has_cpu_feature("fma"));
  EXPECT_FALSE(profile.has_cpu_feature("avx"));
  EXPECT_FALSE(profile.has_cpu_feature(""));
  EXPECT_TRUE(profile.has_extension("cl_khr_fp16"));
  EXPECT_FALSE(profile.has_extension("cl_khr_fp64"));
}

TEST(DeviceProfile, LoadsTheH200) {
  const DeviceProfile h200 = DeviceProfile::load(folder + "h200.json");
  EXPECT_EQ(h200.type, DeviceType::nvidia);
  EXPECT_EQ(h200.name, "NVIDIA H200");
  EXPECT_EQ(h200.compute_capability_major, 9);
  EXPECT_EQ(h200.compute_units, 132);
  EXPECT_EQ(h200.sub_group_size, 32U);
  EXPECT_TRUE(h200.fp8 && h200.tensor_cores && h200.bf16 && !h200.integrated);
}

TEST(DeviceProfile, LoadsEveryHandWrittenProfileAndWritesItBackTheSame) {
  for (const char* name : {"h200", "apple_m2", "intel_iris_xe", "xeon_amx", "neoverse_n1"}) {
    const std::string path = folder + name + ".json";
    const DeviceProfile profile = DeviceProfile::load(path);
    EXPECT_FALSE(profile.name.empty()) << name;
    EXPECT_EQ(DeviceProfile::from_json(profile.to_json()), profile) << name;
    std::ifstream file(path);
    EXPECT_EQ(nlohmann::json::parse(file), nlohmann::json::parse(profile.to_json())) << name;
  }
}

/// A file of this content for the life of a test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    path_ = (std::filesystem::temp_directory_path() / ("xrt_profile_" + std::to_string(getpid()) + ".json")).string();
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void expect_load_refused(const std::string& path, ErrorCode code, const std::vector<std::string>& parts) {
  const std::string what = error_text(code, [&] { DeviceProfile::load(path); });
  EXPECT_HAS(what, "'" + path + "'");
  for (const std::string& part : parts) EXPECT_HAS(what, part) << "\nlacks: " << part;
}

TEST(DeviceProfile, LoadNamesTheFileInEveryError) {
  expect_load_refused("/no/such/file.json", ErrorCode::io_error, {"check"});
  expect_load_refused("/", ErrorCode::io_error, {});
  const TemporaryFile syntax("{\n!");
  expect_load_refused(syntax.path(), ErrorCode::corrupt_data, {"line 2, column 1"});
}

TEST(DeviceProfile, LoadNamesTheFileOfAWrongFieldAndOfAHugeFile) {
  {
    const TemporaryFile semantics(R"({"fp16": 3})");
    expect_load_refused(semantics.path(), ErrorCode::invalid_argument, {"'fp16'"});
  }
  const TemporaryFile huge(std::string(2 << 20, ' '));
  expect_load_refused(huge.path(), ErrorCode::corrupt_data, {"larger"});
}

}  // namespace
}  // namespace xpuruntime
