#include "xpuruntime/runtime/report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "xpuruntime/runtime/replay.h"

namespace xpuruntime {
namespace {

using nlohmann::json;

constexpr char relu[] = "relu(f32[64]) @cpu:0";
constexpr char mixed[] = "softmax(f32[8,8]) -> f16[8,8] @cpu:0";

class Report : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("report_test_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  json data(const ReportOptions& options) { return json::parse(report_json(runtime, options)); }
  json only_row(const ReportOptions& options) {
    const json document = data(options);
    EXPECT_EQ(document["decisions"].size(), 1u);
    return document["decisions"][0];
  }
  static json candidate(const json& row, const std::string& kernel) {
    for (const json& each : row["candidates"]) {
      if (each["kernel"] == kernel) return each;
    }
    return nullptr;
  }
  std::shared_ptr<const KernelLock> recorded(const std::vector<std::string>& texts) {
    std::vector<Problem> problems;
    for (const std::string& text : texts) problems.push_back(parse_problem(text));
    return std::make_shared<const KernelLock>(record_lock(runtime, problems));
  }
  std::shared_ptr<const KernelLock> recorded_range(const std::string& text) {
    KernelLock lock;
    record_ranges(lock, runtime, std::vector<ProblemRange>{parse_problem_range(text)});
    return std::make_shared<const KernelLock>(std::move(lock));
  }
  /// What was put into a new store for a CPU with other software.
  std::shared_ptr<MeasurementStore> store_of(const TuneRecord& record, const std::string& changed_version = {}) {
    Environment environment = environment_at(runtime, {});
    if (!changed_version.empty()) environment.versions["xpuruntime"] = changed_version;
    std::shared_ptr<MeasurementStore> store = open_store((folder / "store.sqlite").string());
    store->put(environment, record);
    return store;
  }
  static Measurement measured(const std::string& kernel, double time_us, const std::string& plan = {}) {
    return {relu, kernel, plan, time_us, 0.1, 10, 32, 0, 1000};
  }

  Runtime runtime{{false, false, {}}};
  std::filesystem::path folder;
};

TEST_F(Report, ShowsTheSamplesWhereNothingIsAsked) {
  std::set<std::string> shown, samples;
  const json document = data({});
  for (const json& row : document["decisions"]) shown.insert(row["problem"].get<std::string>());
  for (const Problem& problem : sample_problems()) samples.insert(to_string(problem));
  EXPECT_EQ(shown, samples);
  EXPECT_GT(samples.size(), 10u);
}

TEST_F(Report, AgreesWithExplainAndNamesWhoDecided) {
  ReportOptions options;
  options.problems = {parse_problem(mixed)};
  KernelPolicy policy;
  policy.set("softmax", "simd");
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  const Decision decision = runtime.dispatcher().explain(options.problems.front());
  const json row = only_row(options);
  EXPECT_EQ(row["kernel"], decision.kernel);
  EXPECT_EQ(row["because"], decision.because);
  EXPECT_EQ(row["level"], to_string(decision.level));
  EXPECT_EQ(candidate(row, "simd")["verdict"], "refused");
  EXPECT_EQ(candidate(row, "simd")["reason"], "output 0 is f16, and this kernel takes the input's f32");
}

TEST_F(Report, ALockIsShownAsItIsWhateverThePolicySays) {
  ReportOptions options;
  options.lock = recorded({relu});
  KernelPolicy policy;
  policy.set("relu", "reference").deterministic = true;
  policy.default_precision = DataType::bfloat16;
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  const json row = only_row(options);
  EXPECT_EQ(row["problem"], relu);
  EXPECT_EQ(row["kernel"], "simd");
  ASSERT_EQ(row["notes"].size(), 1u);
  EXPECT_NE(row["notes"][0].get<std::string>().find("here and now reference would run"), std::string::npos);
}

TEST_F(Report, ALockThatVerifyWouldRefuseSaysWhy) {
  const auto note_of = [&](const LockEntry& entry, const Environment& environment) {
    KernelLock lock;
    lock.add(entry, environment);
    ReportOptions options;
    options.lock = std::make_shared<const KernelLock>(lock);
    const json notes = only_row(options)["notes"];
    EXPECT_EQ(verify_lock(runtime, {options.lock}).fine(), notes.empty());
    EXPECT_LE(notes.size(), 1u) << notes;
    return notes.empty() ? "" : notes[0].get<std::string>();
  };
  const Environment here = environment_at(runtime, {});
  Environment older = here;
  older.versions["xpuruntime"] = "0.0.1";
  const LockEntry entry{.problem = relu, .kernel = "simd"};
  LockEntry other_plan = entry;
  other_plan.plan = "tile=9x9";
  EXPECT_EQ(note_of(entry, here), "");
  EXPECT_EQ(note_of(other_plan, here).find("it cannot be replayed here: the lock holds the plan 'tile=9x9' of simd"),
            0u);
  EXPECT_NE(note_of(entry, older).find("recorded in another environment: "), std::string::npos);
}

TEST_F(Report, EachMeasuredPlanIsACandidateAndTheLocksPlanIsTheChosenOne) {
  TuneRecord record;
  record.measurements = {measured("simd", 2, ""), measured("simd", 1, "tasks=2"), measured("reference", 9)};
  ReportOptions options;
  options.lock = recorded({relu});
  options.store = store_of(record);
  const json row = only_row(options);
  EXPECT_EQ(row["time_us"], 2.0);
  std::map<std::string, std::string> verdicts;
  for (const json& each : row["candidates"]) {
    verdicts[each["kernel"].get<std::string>() + "/" + each["plan"].get<std::string>()] = each["verdict"];
  }
  EXPECT_EQ(verdicts, (std::map<std::string, std::string>{
                          {"simd/", "chosen"}, {"simd/tasks=2", "passed"}, {"reference/", "passed"}}));
}

TEST_F(Report, TimesTakenWithOtherSoftwareAreMarked) {
  TuneRecord record;
  record.measurements = {measured("simd", 2)};
  record.choices = {{relu, "simd", "", "reference", "it won", false, 1000}};
  ReportOptions options;
  options.problems = {parse_problem(relu)};
  options.store = store_of(record, "0.0.1");
  const json row = only_row(options);
  EXPECT_EQ(row["time_us"], 2.0);
  EXPECT_TRUE(row["default"].is_null());  // what a race chose there is no choice here
  ASSERT_EQ(row["notes"].size(), 1u);
  EXPECT_NE(row["notes"][0].get<std::string>().find("0.0.1"), std::string::npos) << row["notes"];
}

TEST_F(Report, QuarantineAndRacesCutShortAreTold) {
  TuneRecord record;
  record.measurements = {measured("simd", 2)};
  record.choices = {{relu, "simd", "", "reference", "it was ahead", true, 1000}};
  record.quarantine = {{relu, "reference", "wrong numbers", 1000}, {relu, "gone", "it crashed", 1000}};
  ReportOptions options;
  options.store = store_of(record);
  options.list_store = true;
  const json row = only_row(options);
  EXPECT_EQ(row["source"], "store");
  EXPECT_EQ(candidate(row, "reference")["verdict"], "quarantined");
  EXPECT_EQ(candidate(row, "reference")["reason"], "wrong numbers");
  EXPECT_EQ(candidate(row, "gone")["verdict"], "quarantined");
  EXPECT_EQ(row["notes"], json({"the budget ended the race before it was sure"}));
}

TEST_F(Report, ALockOfAnotherDeviceSaysNothingOfRefusalsHere) {
  KernelLock lock;
  Environment there = environment_at(runtime, {});
  there.device = "cpu another One";
  lock.add(LockEntry{mixed, "reference"}, there);
  ReportOptions options;
  options.lock = std::make_shared<const KernelLock>(lock);
  const json document = data(options);
  EXPECT_EQ(document["environments"][0]["verdict"], "refuse");
  ASSERT_EQ(document["decisions"][0]["candidates"].size(), 1u);
  EXPECT_EQ(document["decisions"][0]["candidates"][0]["verdict"], "chosen");
}

TEST_F(Report, AProblemOfAnAbsentDeviceIsGoneAgainstTheOldLock) {
  KernelLock old;
  Environment gpu = environment_at(runtime, {});
  gpu.device = "cuda nvidia Old";
  old.add(LockEntry{"relu(f32[8]) @cuda:0", "elementwise"}, gpu);
  ReportOptions options;
  options.against = std::make_shared<const KernelLock>(old);
  const json document = data(options);
  EXPECT_TRUE(document["decisions"][0]["kernel"].is_null());
  EXPECT_NE(document["decisions"][0]["because"].get<std::string>().find("cuda:0 is not here"), std::string::npos);
  EXPECT_EQ(document["changes"], json::parse(R"([{"problem": "relu(f32[8]) @cuda:0", "field": "entry",
                                                 "before": "elementwise", "after": ""}])"));
}

TEST_F(Report, SizesThatAreDecidedAsTheLockedRangeSaysAreNoChange) {
  ReportOptions options;
  options.against = recorded_range("relu(f32[n]) where n=1..512");
  EXPECT_EQ(data(options)["changes"], json::array());
  options.problems = {parse_problem("relu(f32[7])")};
  EXPECT_EQ(data(options)["changes"], json::array());
  options.ranges = {parse_problem_range("relu(f32[n]) where n=3..512")};
  EXPECT_EQ(data(options)["changes"], json::array());
  options.ranges = {parse_problem_range("relu(f32[n]) where n=500..600")};
  EXPECT_EQ(data(options)["changes"], json::parse(R"([{"problem": "relu(f32[n]) @cpu:0 where n=513..600",
                                                     "field": "entry", "before": "", "after": "simd"}])"));
}

TEST_F(Report, ChangesOfALockedRangeAreFoundAtEverySize) {
  constexpr char range[] = "relu(f32[n]) @cpu:0 where n=1..20";
  const auto lock = recorded_range(range);
  const ScopedPolicy scope(runtime.dispatcher(), KernelPolicy::from_json(R"({"rules": [
      {"op": "relu", "range": "relu(f32[n]) where n=1..4", "use": "reference"},
      {"op": "relu", "range": "relu(f32[n]) where n=9..9", "use": "reference"}]})"));
  ReportOptions options;
  options.against = lock;
  const json expected = json::parse(R"([
      {"problem": "relu(f32[n]) @cpu:0 where n=1..4", "field": "kernel", "before": "simd", "after": "reference"},
      {"problem": "relu(f32[n]) @cpu:0 where n=9..9", "field": "kernel", "before": "simd", "after": "reference"}])");
  EXPECT_EQ(data(options)["changes"], expected);
  options.ranges = {parse_problem_range(range)};
  EXPECT_EQ(data(options)["changes"], expected);
  options.ranges.clear();
  options.problems = {parse_problem("relu(f32[4])"), parse_problem("relu(f32[5])")};
  EXPECT_EQ(data(options)["changes"], json::parse(R"([{"problem": "relu(f32[4]) @cpu:0", "field": "kernel",
                                                     "before": "simd", "after": "reference"}])"));
  options = {};
  options.lock = lock;
  const json row = only_row(options);
  EXPECT_EQ(row["because"], "the first that can run it (at n=5)");  // the least size that has the lock's kernel
  ASSERT_EQ(row["notes"].size(), 1u) << row["notes"];
  EXPECT_EQ(row["notes"][0].get<std::string>().find("here and now reference would run for n=1..4 and n=9: "), 0u)
      << row["notes"];
}

TEST_F(Report, AnEmptyLockIsAnEmptyReport) {
  ReportOptions options;
  options.lock = std::make_shared<const KernelLock>();
  EXPECT_TRUE(data(options)["decisions"].empty());
}

TEST_F(Report, ThePageHoldsItsDataWhole) {
  ReportOptions options;
  options.title = "</script><!-- \xff & \"quoted\"";
  options.problems = {parse_problem(relu)};
  const std::string json_text = report_json(runtime, options), page = report_page(json_text);
  const std::string mark = "id=\"data\">";
  const std::size_t begin = page.find(mark) + mark.size();
  const std::string held = page.substr(begin, page.find("</script>", begin) - begin);
  EXPECT_EQ(held.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(json::parse(held), json::parse(json_text));
  for (const char* left : {"@STYLE@", "@TABLE@", "@DATA@", "@SCRIPT@"}) EXPECT_EQ(page.find(left), std::string::npos);
}

TEST_F(Report, ATextThatIsNoReportIsRefused) {
  for (const char* text :
       {"", "{}", "[]", "{\"decisions\": 3}", "{\"decisions\": [3]}", "{\"decisions\": [{}]}", "no"}) {
    EXPECT_THROW(report_page(text), Error) << text;
  }
}

TEST_F(Report, IsWrittenWholeOrNotAtAll) {
  const std::string path = (folder / "report.html").string();
  save_report(path, "old");
  save_report(path, "new");
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "new");
  EXPECT_THROW(save_report((folder / "no" / "report.html").string(), "x"), Error);
  EXPECT_THROW(save_report(folder.string(), "x"), Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

}  // namespace
}  // namespace xpuruntime
