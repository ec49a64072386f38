#include "xpuruntime/device/graph_capture.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "device/fake_driver.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime {
namespace {

constexpr Device npu{DeviceType::npu, 0};

class GraphCaptureTest : public ::testing::Test {
 protected:
  GraphCaptureTest() { devices.add_driver(driver); }

  static std::string error_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  static ::testing::AssertionResult has(const std::string& text, const std::string& part) {
    if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << text;
  }

  std::shared_ptr<testing::FakeDriver> driver = std::make_shared<testing::FakeDriver>();
  DeviceManager devices;
};

TEST_F(GraphCaptureTest, RecordsOnAStreamOfItsOwnAndReplaysOnTheCurrentOne) {
  int address = 0;
  const Stream current{&address, 7};
  const StreamGuard guard(npu, current);
  {
    GraphCapture graph(devices, npu);
    EXPECT_NE(current_stream(npu), current);
    EXPECT_TRUE(driver->capturing(0, current_stream(npu)));
    graph.end();
    EXPECT_EQ(current_stream(npu), current);
    EXPECT_FALSE(driver->capturing(0, current));
    EXPECT_EQ(driver->live_streams(), 0);
    graph.replay();
    graph.replay();
    EXPECT_EQ(driver->graph_launches(), (std::vector<Stream>{current, current}));
    EXPECT_EQ(driver->live_graphs(), 1);
  }
  EXPECT_EQ(driver->live_graphs(), 0);
}

TEST_F(GraphCaptureTest, OneThatIsNotEndedIsDropped) {
  { const GraphCapture graph(devices, npu); }
  EXPECT_EQ(current_stream(npu), Stream{});
  EXPECT_FALSE(driver->is_capturing);
  EXPECT_EQ(driver->live_streams(), 0);
  EXPECT_EQ(driver->live_graphs(), 0);
}

TEST_F(GraphCaptureTest, SaysWhatWasCalledInTheWrongOrder) {
  GraphCapture graph(devices, npu);
  EXPECT_TRUE(has(error_of([&] { graph.replay(); }), "end the recording first"));
  EXPECT_TRUE(has(error_of([&] { GraphCapture(devices, npu); }), "is being recorded already"));
  std::string elsewhere;
  std::thread([&] { elsewhere = error_of([&] { graph.end(); }); }).join();
  EXPECT_TRUE(has(elsewhere, "on the thread whose calls it records"));
  graph.end();
  EXPECT_TRUE(has(error_of([&] { graph.end(); }), "has ended already"));
  driver->is_capturing = true;
  EXPECT_TRUE(has(error_of([&] { graph.replay(); }), "replay before or after"));
  EXPECT_TRUE(driver->graph_launches().empty());
}

TEST_F(GraphCaptureTest, OneThatWasBrokenCannotBeReplayed) {
  GraphCapture graph(devices, npu);
  driver->end_capture_status = Status(ErrorCode::device_error, "somebody waited");
  EXPECT_TRUE(has(error_of([&] { graph.end(); }), "somebody waited"));
  EXPECT_EQ(current_stream(npu), Stream{});
  EXPECT_EQ(driver->live_streams(), 0);
  EXPECT_TRUE(has(error_of([&] { graph.replay(); }), "record it again"));
}

/// One that has streams and no graphs.
class WithoutGraphs final : public testing::FakeDriver {
 public:
  WithoutGraphs() : FakeDriver(DeviceType::opencl) {}
  void begin_capture(int index, Stream stream) override { DeviceDriver::begin_capture(index, stream); }
};

TEST_F(GraphCaptureTest, ADeviceWithoutGraphsSaysSo) {
  const auto without = std::make_shared<WithoutGraphs>();
  devices.add_driver(without);
  EXPECT_TRUE(has(error_of([&] { GraphCapture(devices, {DeviceType::opencl, 0}); }), "opencl record no graphs"));
  EXPECT_EQ(without->live_streams(), 0);
}

}  // namespace
}  // namespace xpuruntime
