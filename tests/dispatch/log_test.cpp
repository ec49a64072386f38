#include <nlohmann/json.hpp>
#include <thread>

#include "dispatch/fixture.h"

namespace xpuruntime {
namespace {

class Log : public DispatchTest {
 protected:
  void run(int times) {
    for (int i = 0; i < times; ++i) dispatcher().dispatch(relu.call());
  }
  Relu relu;
};

TEST_F(Log, IsOffUntilTurnedOn) {
  run(3);
  EXPECT_TRUE(dispatcher().logs().empty());
  dispatcher().enable_logging();
  run(3);
  dispatcher().disable_logging();
  run(3);
  EXPECT_EQ(dispatcher().logs().size(), 3u);
}

TEST_F(Log, SaysWhatRanAndWhy) {
  dispatcher().enable_logging();
  run(1);
  const LogEntry entry = dispatcher().logs().at(0);
  EXPECT_EQ(entry.op_name(), "relu");
  EXPECT_EQ(entry.selected_kernel(), "simd");
  EXPECT_EQ(entry.input_shape(), (Dims{8}));
  EXPECT_EQ(entry.dtype(), DataType::float32);
  EXPECT_FALSE(entry.device_time);
  EXPECT_GT(entry.elapsed_us, 0);
  EXPECT_FALSE(entry.decision->because.empty());
}

TEST_F(Log, TellsAHookOfEveryDecisionOnce) {
  std::vector<std::string> told;
  dispatcher().set_decision_hook([&](const auto& decision) { told.push_back(decision->kernel); });
  run(3);
  EXPECT_EQ(told, std::vector<std::string>{"simd"});
  {
    const ScopedPolicy scope(dispatcher(), KernelPolicy().set("relu", "reference"));
    run(2);
  }
  run(2);
  EXPECT_EQ(told, (std::vector<std::string>{"simd", "reference"}));
  dispatcher().set_decision_hook({});
  dispatcher().registry().invalidate();
  run(1);
  EXPECT_EQ(told.size(), 2u);
}

TEST_F(Log, TellsAHookOfEveryCallWithLoggingOnOrOff) {
  std::vector<LogEntry> told;
  dispatcher().set_call_hook([&](const LogEntry& entry) { told.push_back(entry); });
  run(2);
  EXPECT_FALSE(dispatcher().logging_enabled());
  EXPECT_TRUE(dispatcher().logs().empty());
  dispatcher().enable_logging();
  EXPECT_TRUE(dispatcher().logging_enabled());
  run(2);
  dispatcher().disable_logging();
  run(1);
  EXPECT_EQ(told.size(), 5u);
  EXPECT_EQ(dispatcher().logs().size(), 2u);
  EXPECT_EQ(told[4].selected_kernel(), "simd");
  EXPECT_GT(told[4].elapsed_us, 0);
  EXPECT_FALSE(told[4].failed);
  dispatcher().set_call_hook({});
  dispatcher().enable_logging();
  run(1);
  EXPECT_EQ(told.size(), 5u);
  EXPECT_EQ(dispatcher().logs().size(), 3u);
}

TEST_F(Log, BecomesATraceWithTheDecisionsThatItHasDropped) {
  std::vector<std::shared_ptr<const Decision>> decisions;
  dispatcher().set_decision_hook([&](const auto& decision) { decisions.push_back(decision); });
  run(1);
  dispatcher().enable_logging();
  const ScopedPolicy scope(dispatcher(), KernelPolicy().set("relu", "reference"));
  run(2);
  const auto trace = nlohmann::json::parse(to_trace_json(dispatcher().logs(), decisions));
  std::vector<std::pair<std::string, std::string>> events;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "M") events.emplace_back(event["ph"], event["args"]["kernel"]);
  }
  EXPECT_EQ(events,
            (std::vector<std::pair<std::string, std::string>>{{"i", "simd"}, {"X", "reference"}, {"X", "reference"}}));
}

TEST_F(Log, HasTheSpansOfCallersAroundTheirCalls) {
  { const ScopedSpan off(dispatcher(), "off", "node"); }
  EXPECT_TRUE(dispatcher().spans().empty());
  dispatcher().enable_logging(2);
  for (const char* const name : {"first", "second", "third"}) {
    const ScopedSpan span(dispatcher(), name, "node", {{"of", "a model"}});
    run(1);
  }
  const auto spans = dispatcher().spans();
  ASSERT_EQ(spans.size(), 2u);  // the last ones, as of the calls
  EXPECT_EQ(spans[0].name, "second");
  const LogEntry call = dispatcher().logs().front();
  EXPECT_EQ(call.thread, spans[0].thread);
  EXPECT_LE(spans[0].start_us, call.start_us);
  EXPECT_GE(spans[0].start_us + spans[0].elapsed_us, call.start_us + call.elapsed_us);
  const auto trace = nlohmann::json::parse(to_trace_json({}, {}, spans));
  const auto& event = trace["traceEvents"][1];
  EXPECT_EQ(event["name"], "second");
  EXPECT_EQ(event["cat"], "node");
  EXPECT_EQ(event["args"], (nlohmann::json{{"of", "a model"}}));
  dispatcher().clear_logs();
  EXPECT_TRUE(dispatcher().spans().empty());
}

TEST_F(Log, IsBoundedAndCountsWhatItDropped) {
  dispatcher().enable_logging(10);
  run(35);
  EXPECT_EQ(dispatcher().logs().size(), 10u);
  EXPECT_EQ(dispatcher().dropped_logs(), 25u);
  dispatcher().clear_logs();
  EXPECT_TRUE(dispatcher().logs().empty());
  EXPECT_EQ(dispatcher().dropped_logs(), 0u);
  run(4);
  EXPECT_EQ(dispatcher().logs().size(), 4u);
  EXPECT_EQ(dispatcher().dropped_logs(), 0u);
}

TEST_F(Log, KeepsWhatThreadsLoggedThatHaveEnded) {
  dispatcher().enable_logging();
  std::thread([&] { run(2); }).join();
  run(1);
  const auto entries = dispatcher().logs();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_NE(entries.front().thread, entries.back().thread);
  EXPECT_LE(entries[0].start_us, entries[1].start_us);
}

TEST_F(Log, ShowsAFallbackAsTwoEntries) {
  add_kernel("bad", [] { return Status(ErrorCode::device_error, "no"); });
  dispatcher().enable_logging();
  run(1);
  const auto entries = dispatcher().logs();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_TRUE(entries[0].failed);
  EXPECT_EQ(entries[0].selected_kernel(), "bad");
  EXPECT_FALSE(entries[1].failed);
  EXPECT_EQ(entries[1].selected_kernel(), "simd");
}

TEST_F(Log, CanBeReadWhileOthersWrite) {
  dispatcher().enable_logging(64);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    const Relu mine(33);
    while (!stop) dispatcher().dispatch(mine.call());
  });
  for (int i = 0; i < 50; ++i) {
    for (const LogEntry& entry : dispatcher().logs()) ASSERT_EQ(entry.selected_kernel(), "simd");
    if (i % 10 == 9) dispatcher().clear_logs();
  }
  stop = true;
  writer.join();
}

TEST_F(Log, FeedsTheStatistics) {
  dispatcher().enable_logging(4);
  run(50);
  dispatcher().collect_statistics();
  const Problem problem = dispatcher().decide(relu.call()).problem;
  const auto stats = dispatcher().statistics().find(problem, "simd");
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->count(), 50);
  EXPECT_GE(stats->mean_us(), stats->min_us());
  EXPECT_LE(stats->mean_us(), stats->max_us());
  dispatcher().collect_statistics();  // takes each time once
  EXPECT_EQ(dispatcher().statistics().find(problem, "simd")->count(), 50);
}

TEST_F(Log, SurvivesMoreProblemsThanItKeepsRecordsOf) {
  dispatcher().enable_logging(16);
  const Relu relu_memory(1);  // empty tensors need an address, not memory
  for (std::int64_t n = 1; n < 40000; ++n) {
    const Tensor in(relu_memory.in.data(), make_spec(DataType::float32, {n, 0}));
    const Tensor out(relu_memory.out.data(), make_spec(DataType::float32, {n, 0}));
    const std::array<const Tensor*, 1> inputs = {&in};
    const std::array<const Tensor*, 1> outputs = {&out};
    dispatcher().dispatch({OpId::relu, inputs, outputs});
  }
  const auto entries = dispatcher().logs();
  ASSERT_EQ(entries.size(), 16u);
  EXPECT_EQ(entries.back().input_shape(), (Dims{39999, 0}));
}

TEST_F(Log, ExportsATraceThatChromeReads) {
  dispatcher().enable_logging();
  run(2);
  const auto entries = dispatcher().logs();
  const auto trace = nlohmann::json::parse(to_trace_json(entries));
  std::size_t slices = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++slices;
    EXPECT_EQ(event.at("name"), "relu");
    EXPECT_EQ(event.at("args").at("kernel"), "simd");
    EXPECT_TRUE(event.at("ts").is_number());
    EXPECT_GE(event.at("dur").get<double>(), 0);
  }
  EXPECT_EQ(slices, 2u);
}

TEST_F(Log, ThreadsThatHaveEndedShareOneRingsWorthOfEntries) {
  dispatcher().enable_logging(8);
  for (int i = 0; i < 20; ++i) std::thread([&] { run(2); }).join();
  run(1);  // a new ring takes in those of the ended threads
  EXPECT_EQ(dispatcher().logs().size(), 9u);
  EXPECT_EQ(dispatcher().dropped_logs(), 32u);
}

TEST(Trace, DrawsDeviceSlicesOneAfterTheOther) {
  const auto decision = std::make_shared<const Decision>(Decision{parse_problem("relu(f32[4]) @opencl:0"), "k"});
  std::vector<LogEntry> entries = {
      {decision, 10, 100, true, false, 1}, {decision, 20, 50, true, false, 1}, {decision, 500, 5, true, false, 2}};
  const auto trace = nlohmann::json::parse(to_trace_json(entries));
  std::vector<double> starts;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    starts.push_back(event.at("ts").get<double>());
    EXPECT_EQ(event.at("tid"), 3000);
  }
  EXPECT_EQ(starts, (std::vector<double>{10, 110, 500}));
}

TEST_F(Log, RefusesARingThatWouldEatTheMachine) {
  error_text(ErrorCode::invalid_argument, [&] { dispatcher().enable_logging(std::size_t{1} << 40); });
}

}  // namespace
}  // namespace xpuruntime
