#include <thread>

#include "backends/opencl/device_fixture.h"

// Queues of others, and calls that fail: the functions of OpenCL are pointers, which a test may exchange.

namespace xpuruntime::opencl {
namespace {

using QueueTest = OpenClTest;
constexpr int index = 0;

/// Replaces a function for a block.
template <class Function>
class Replaced {
 public:
  Replaced(Function& place, Function other) : place_(place), before_(place) { place_ = other; }
  ~Replaced() { place_ = before_; }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  Function& place_;
  Function before_;
};

decltype(&::clEnqueueNDRangeKernel) real_enqueue = nullptr;
decltype(&::clCreateBuffer) real_create = nullptr;
int failures = 0;
cl_int failure = CL_SUCCESS;

cl_int enqueue_that_fails(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const std::size_t* offset,
                          const std::size_t* global, const std::size_t* local, cl_uint count, const cl_event* events,
                          cl_event* event) {
  if (failures-- > 0) return failure;
  return real_enqueue(queue, kernel, dims, offset, global, local, count, events, event);
}

cl_mem create_that_fails(cl_context context, cl_mem_flags flags, std::size_t bytes, void* host, cl_int* code) {
  if (failures-- <= 0) return real_create(context, flags, bytes, host, code);
  *code = failure;
  return nullptr;
}

struct Adding {
  TensorSpec spec = make_spec(DataType::float32, {64});
  Problem problem = problem_of(OpId::add, {spec, spec}, Attributes(OpId::add));
};

class FaultTest : public OpenClTest {
 protected:
  /// One run of an addition while the next `count` launches fail with `code`.
  Status run_failing(int count, cl_int code) {
    const Adding adding;
    const auto plan = prepare("ADD_DIRECT", adding.problem);
    const Tensor a = upload(random_tensor(adding.spec)), c = upload(HostTensor(adding.spec));
    const Tensor* inputs[] = {&a, &a};
    const Tensor* outputs[] = {&c};
    real_enqueue = clEnqueueNDRangeKernel;
    const Replaced fake(clEnqueueNDRangeKernel, &enqueue_that_fails);
    failures = count;
    failure = code;
    return plan->run({inputs, outputs, nullptr, {}});
  }
};

TEST_F(FaultTest, ALaunchThatLacksMemoryIsTriedOnceMore) {
  for (const cl_int code : {CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE}) {
    EXPECT_TRUE(run_failing(1, code).ok());
    const Status status = run_failing(2, code);
    EXPECT_EQ(status.code(), ErrorCode::out_of_memory);
    EXPECT_NE(status.message().find("free device memory"), std::string::npos) << status.message();
  }
  EXPECT_TRUE(run_failing(0, CL_SUCCESS).ok());
}

TEST_F(FaultTest, AnAllocationThatLacksMemoryIsTriedOnceMore) {
  real_create = clCreateBuffer;
  const Replaced fake(clCreateBuffer, &create_that_fails);
  failure = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  failures = 1;
  driver().deallocate(index, driver().allocate(index, 64));
  failures = 2;
  EXPECT_THROW(driver().allocate(index, 64), Error);
  failures = 0;
  driver().deallocate(index, driver().allocate(index, 64));
}

TEST_F(FaultTest, ADeviceThatVanishesIsLost) {
  EXPECT_EQ(run_failing(1, CL_DEVICE_NOT_AVAILABLE).code(), ErrorCode::device_lost);
}

/// Every call that puts work into a queue or waits for it fails as if the device had gone.
class LostDevice {
  static constexpr cl_int gone = CL_DEVICE_NOT_AVAILABLE;
  template <class... Any>
  static cl_int fails(Any...) {
    return gone;
  }
  template <class... Any>
  static Replaced<cl_int (*)(Any...)> failing(cl_int (*&place)(Any...)) {
    return {place, &fails<Any...>};
  }
  static cl_mem creates_nothing(cl_context, cl_mem_flags, std::size_t, void*, cl_int* code) {
    *code = gone;
    return nullptr;
  }

  Replaced<cl_int (*)(cl_command_queue)> finish_{clFinish, &fails<cl_command_queue>};
  decltype(failing(clEnqueueNDRangeKernel)) launch_ = failing(clEnqueueNDRangeKernel);
  decltype(failing(clEnqueueReadBuffer)) read_ = failing(clEnqueueReadBuffer);
  decltype(failing(clEnqueueWriteBuffer)) write_ = failing(clEnqueueWriteBuffer);
  decltype(failing(clEnqueueMarkerWithWaitList)) mark_ = failing(clEnqueueMarkerWithWaitList);
  decltype(failing(clWaitForEvents)) wait_ = failing(clWaitForEvents);
  Replaced<decltype(&creates_nothing)> create_{clCreateBuffer, &creates_nothing};
};

TEST_F(FaultTest, OnALostDeviceEveryLaterCallSaysSoAndNothingStaysBroken) {
  const Adding adding;
  const auto plan = prepare("ADD_DIRECT", adding.problem);
  const Tensor a = upload(random_tensor(adding.spec)), c = upload(HostTensor(adding.spec));
  const Tensor* inputs[] = {&a, &a};
  const Tensor* outputs[] = {&c};
  const Stream stream = driver().create_stream(index);
  Event event = driver().create_event(index);
  ASSERT_TRUE(driver().record_event(index, event, stream).ok());
  ASSERT_TRUE(driver().synchronize(index, stream).ok());
  char host[4] = {};
  {
    const LostDevice lost;
    for (int round = 0; round < 3; ++round) {
      const Status all[] = {plan->run({inputs, outputs, nullptr, {}}),
                            plan->run({inputs, outputs, nullptr, stream}),
                            driver().copy_to_host(index, host, a.data(), 0, 4, {}),
                            driver().copy_from_host(index, a.data(), 0, host, 4, {}),
                            driver().synchronize(index, {}),
                            driver().synchronize(index, stream),
                            driver().wait(index),
                            driver().record_event(index, event, stream),
                            driver().wait_event(index, event)};
      for (const Status& status : all) {
        EXPECT_EQ(status.code(), ErrorCode::device_lost);
        EXPECT_NE(status.message().find("CL_DEVICE_NOT_AVAILABLE"), std::string::npos) << status.message();
      }
      try {
        driver().allocate(index, 64);
        ADD_FAILURE() << "memory of a lost device";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::device_lost) << error.what();
      }
    }
    driver().destroy_event(index, event);
    driver().destroy_stream(index, stream);
  }
  EXPECT_TRUE(plan->run({inputs, outputs, nullptr, {}}).ok()) << "one that is there again";
  EXPECT_TRUE(driver().synchronize(index, {}).ok());
}

TEST_F(QueueTest, AQueueOfAnotherContextIsAnInvalidArgument) {
  DeviceContext other(driver().context(index).device());
  const Queue queue = other.make_queue();
  const Stream stream{queue.get(), queue_id(queue.get())};
  const Adding adding;
  const Tensor a = upload(HostTensor(adding.spec)), c = upload(HostTensor(adding.spec));
  const Tensor* inputs[] = {&a, &a};
  const Tensor* outputs[] = {&c};
  const Status status = prepare("ADD_DIRECT", adding.problem)->run({inputs, outputs, nullptr, stream});
  EXPECT_EQ(status.code(), ErrorCode::invalid_argument) << status.message();
  EXPECT_NE(status.message().find("CL_MEM_CONTEXT"), std::string::npos) << status.message();
  char host[4] = {};
  EXPECT_EQ(driver().copy_to_host(index, host, a.data(), 0, 4, stream).code(), ErrorCode::invalid_argument);
}

TEST_F(QueueTest, AQueueOutOfOrderIsRefused) {
  DeviceContext& device = driver().context(index);
  cl_int code = CL_SUCCESS;
  const Queue queue(
      clCreateCommandQueue(device.context(), device.device(), CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code));
  if (code != CL_SUCCESS) GTEST_SKIP() << "the device has none";
  try {
    driver().stream_id(index, queue.get());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("out of order"), std::string::npos) << error.what();
  }
}

TEST_F(QueueTest, AQueueOfTheCallersIsUsedAndWaitedFor) {
  DeviceContext& device = driver().context(index);
  cl_int code = CL_SUCCESS;
  const Queue queue(clCreateCommandQueue(device.context(), device.device(), 0, &code));
  ASSERT_EQ(code, CL_SUCCESS);
  const Stream stream{queue.get(), driver().stream_id(index, queue.get())};
  const Problem problem = matmul_of(make_spec(DataType::float32, {192, 192}), make_spec(DataType::float32, {192, 192}));
  const Tensor a = upload(random_tensor(problem.inputs[0])), c = upload(HostTensor(problem.outputs[0]));
  run(*prepare("MATMUL_DIRECT", problem), {a, a}, c, stream);
  cl_event last = nullptr;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue.get(), 0, nullptr, &last), CL_SUCCESS);
  ASSERT_TRUE(driver().synchronize(index, {}).ok());
  EXPECT_TRUE(driver().event_done(index, Event{last}));
  driver().destroy_event(index, Event{last});
}

TEST_F(QueueTest, TheDevicesOwnKeepsTimesFromTheFirstEventOn) {
  OpenClDriver own;
  DeviceContext& device = own.context(index);
  const auto properties = [&] {
    cl_command_queue_properties found = 0;
    clGetCommandQueueInfo(device.use({}), CL_QUEUE_PROPERTIES, sizeof found, &found, nullptr);
    return found & CL_QUEUE_PROFILING_ENABLE;
  };
  EXPECT_EQ(properties(), 0u);
  Event event = own.create_event(index);
  ASSERT_TRUE(own.record_event(index, event, {}).ok());
  EXPECT_NE(properties(), 0u);
  own.destroy_event(index, event);
}

TEST_F(QueueTest, WorkBeforeTheExchangeIsDoneBeforeWorkAfterIt) {
  for (int round = 0; round < 5; ++round) {
    OpenClDriver own;
    const TensorSpec spec = make_spec(DataType::float32, {320, 320});
    const Problem product = matmul_of(spec, spec);
    const PrepareContext context{device, own.devices()[0], own};
    const auto first = kernel("MATMUL_DIRECT").prepare(product, context);
    const auto second =
        kernel("ADD_DIRECT").prepare(problem_of(OpId::add, {spec, spec}, Attributes(OpId::add)), context);
    std::vector<float> ones(320 * 320, 1);
    const auto upload_ones = [&] {
      void* memory = own.allocate(index, ones.size() * 4);
      EXPECT_TRUE(own.copy_from_host(index, memory, 0, ones.data(), ones.size() * 4, {}).ok());
      return Tensor(memory, spec, device);
    };
    const Tensor a = upload_ones(), b = upload_ones(), c = upload_ones();
    run(*first, {a, a}, b);
    Event event = own.create_event(index);
    ASSERT_TRUE(own.record_event(index, event, {}).ok());
    run(*second, {b, b}, c);
    ASSERT_TRUE(own.copy_to_host(index, ones.data(), c.data(), 0, ones.size() * 4, {}).ok());
    EXPECT_EQ(ones[0], 640);
    EXPECT_EQ(ones.back(), 640);
    own.destroy_event(index, event);
    for (const Tensor& tensor : {a, b, c}) own.deallocate(index, tensor.data());
  }
}

TEST_F(QueueTest, ThreadsMayLaunchWhileItIsExchanged) {
  OpenClDriver own;
  const Adding adding;
  const auto plan = kernel("ADD_DIRECT").prepare(adding.problem, PrepareContext{device, own.devices()[0], own});
  void* memory = own.allocate(index, 64 * 4);
  const Tensor c(memory, adding.spec, device);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        run(*plan, {c, c}, c);
        Event event = own.create_event(index);
        if (i % 2 == 0) {
          EXPECT_TRUE(own.record_event(index, event, {}).ok());
        }
        own.destroy_event(index, event);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(own.synchronize(index, {}).ok());
  own.deallocate(index, memory);
}

TEST(QueueStatus, OfAQueueThatTheDriverGaveUpNamesTheCodeThatCame) {
  const Status status = to_status_of_work(CL_INVALID_COMMAND_QUEUE, "clFinish");
  EXPECT_EQ(status.code(), ErrorCode::device_lost);
  EXPECT_EQ(status.message(),
            "clFinish gave CL_INVALID_COMMAND_QUEUE (-36): the device is gone: restart the process when it is back");
  EXPECT_EQ(to_status_of_work(-9999, "clFinish").code(), ErrorCode::device_lost);
}

}  // namespace
}  // namespace xpuruntime::opencl
