#include <algorithm>

#include "tune/store_fixture.h"

namespace xpuruntime {
namespace {

using StoreExchange = StoreTest;

StoreContents sample() { return {{h200(), record_of(problem(1))}, {xeon(), record_of(problem(2))}}; }

TEST(StoreJson, IsOneEntryALineSortedAndRoundTrips) {
  const std::string json = to_json(sample());
  EXPECT_EQ(std::count(json.begin(), json.end(), '\n'), 8);  // head, two environments with an entry and an end, foot
  EXPECT_EQ(store_contents_from_json(json).size(), 2);
  EXPECT_EQ(to_json(store_contents_from_json(json)), json);
  StoreContents turned = sample();
  std::swap(turned[0], turned[1]);
  EXPECT_EQ(to_json(turned), json);
  EXPECT_EQ(to_json({}), "{\"version\": 1, \"environments\": []}\n");
  EXPECT_TRUE(store_contents_from_json(to_json({})).empty());
}

TEST(StoreJson, IsWhatTheManualShows) {
  const Environment environment = {"d", {}, {}};
  EXPECT_EQ(
      to_json({{environment, {{{"p", "k", "t", 1.5, 0.25, 3, 0, 0, 7}}, {}, {{"p", "b", "hung", 8}}}}}),
      R"({"version": 1, "environments": [
{"environment": {"device":"d","traits":{},"versions":{}}, "entries": [
{"problem":"p","choice":null,"measurements":[{"kernel":"k","plan":"t","time_us":1.5,"noise_us":0.25,"runs":3,)"
      R"("workspace_bytes":0,"error":0.0,"measured_at":7}],"quarantine":[{"kernel":"b","reason":"hung","found_at":8}]}
]}
]}
)");
}

TEST(StoreJson, NamesTheVersionsOfKernelsThatSomebodyBrought) {
  StoreContents contents = sample();
  contents[0].record.measurements[1].kernel_version = "1.2";
  contents[1].record.quarantine[0].kernel_version = "1.3";
  const std::string json = to_json(contents);
  EXPECT_TRUE(json.starts_with("{\"version\": 2, ")) << json;
  EXPECT_EQ(to_json(store_contents_from_json(json)), json);
  const StoreContents read = store_contents_from_json(json);
  EXPECT_EQ(read[0].record.quarantine[0].kernel_version, "1.3");  // sorted: the CPU comes first
  EXPECT_EQ(read[1].record.measurements[1].kernel_version, "1.2");
}

TEST_F(StoreExchange, MovesAStoreToAnother) {
  const auto from = open_store(path_);
  from->merge(sample());
  const auto to = open_store((folder_ / "other").string());
  EXPECT_EQ(to->merge(store_contents_from_json(to_json(from->read()))), 8);
  EXPECT_EQ(to->read(), from->read());
}

TEST(StoreJson, RefusesWhatItCannotBe) {
  const std::string good = to_json(sample());
  const auto refused = [&](ErrorCode code, const std::string& what, const std::string& with, const std::string& part) {
    std::string json = good;
    const auto at = json.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    json.replace(at, what.size(), with);
    expect_error(code, part, [&] { store_contents_from_json(json); });
  };
  constexpr ErrorCode invalid = ErrorCode::invalid_argument, corrupt = ErrorCode::corrupt_data;
  refused(invalid, "\"version\": 1", "\"version\": 3", "must be 1 or 2");
  refused(invalid, "\"version\": 1, ", "", "version");
  refused(invalid, "\"runs\":100", "\"runs\":-100", "runs");
  refused(invalid, "\"runs\":100", "\"runs\":1.5", "runs");
  refused(invalid, "\"time_us\":3.0", "\"time_us\":\"3\"", "measurements[0].time_us");
  refused(invalid, "\"time_us\":3.0", "\"time_us\":-3", "time_us");
  refused(invalid, "\"workspace_bytes\":4096", "\"workspace_bytes\":-1", "workspace_bytes");
  refused(invalid, "\"measured_at\":1000", "\"measured_at\":18446744073709551615", "measured_at");
  refused(invalid, "\"cut_short\":true", "\"cut_short\":1", "choice.cut_short");
  refused(invalid, "\"reason\":", "\"why\":", "reason");
  refused(invalid, "\"plan\":\"\",", "", "plan");
  refused(invalid, "\"device\":\"cpu", "\"colour\":\"red\",\"device\":\"cpu", "colour");
  refused(invalid, "\"kernel\":\"packed\"", "\"kernel\":\"\"", "kernel");
  refused(invalid, "\"entries\": [", "\"entries\": 1, \"more\": [", "entries");
  refused(corrupt, "]}\n]}\n", "", "not JSON");
  refused(corrupt, "]}\n]}\n", "]}\n]} x\n", "not JSON");
  for (const char* json : {"", "[]", "null", "{", "{\"version\": 1}", "{\"version\": 1, \"environments\": [[]]}"}) {
    EXPECT_THROW(store_contents_from_json(json), Error) << json;
  }
}

}  // namespace
}  // namespace xpuruntime
