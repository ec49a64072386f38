#include <atomic>
#include <cstring>
#include <thread>

#include "backends/opencl/device_fixture.h"
#include "backends/opencl/groups.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime::opencl {
namespace {

class MovementTest : public OpenClTest {
 protected:
  static Problem problem(const std::string& text) { return parse_problem(text, device); }

  /// A device that is no CPU, so that the ways of GPUs are taken here too.
  static DeviceProfile gpu() {
    DeviceProfile other = profile();
    other.vendor = "other";
    other.cpu_features = {};
    return other;
  }

  /// Runs it on these tensors and waits for what it reports.
  static Status run_all(const Plan& plan, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
    std::vector<const Tensor*> from, to;
    for (const Tensor& input : inputs) from.push_back(&input);
    for (const Tensor& output : outputs) to.push_back(&output);
    const Status status = plan.run({from, to, nullptr, {}});
    return status.ok() ? driver().synchronize(device.index, {}) : status;
  }

  static HostTensor numbers(const TensorSpec& spec, std::vector<double> values) {
    HostTensor host(spec);
    for (std::size_t i = 0; i < values.size(); ++i) host.set(i, values[i]);
    return host;
  }

  void expect_transposed(const std::string& text, const DeviceProfile& on) {
    SCOPED_TRACE(text + (is_cpu(on) ? " as on a CPU" : " as on a GPU"));
    const Problem turn = problem(text);
    const auto plan = kernel("COPY_DIRECT").prepare(turn, {device, on, driver()});
    const HostTensor in = random_tensor(turn.inputs[0]);
    const Tensor out = upload(HostTensor(turn.outputs[0]));
    ASSERT_TRUE(run_all(*plan, {upload(in)}, {out}).ok());
    const HostTensor got = download(out);
    const std::int64_t rows = turn.inputs[0].shape[0], columns = turn.inputs[0].shape[1];
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        ASSERT_EQ(got.get(element_at(got.spec, {j, i})), in.get(element_at(in.spec, {i, j}))) << i << ", " << j;
  }
};

TEST_F(MovementTest, TilesAreTurnedInEveryUnitWhereSidesAreNoMultiples) {
  for (const DeviceProfile& on : {profile(), gpu()})
    for (const char* dtype : {"i8", "bf16", "f32", "i64"})
      for (const char* shape : {"[64,32]", "[67,33]", "[16,130]"})
        expect_transposed("transpose(" + std::string(dtype) + shape + ")", on);
}

TEST_F(MovementTest, CopiesWhatIsNotAlignedToItsElements) {
  const TensorSpec spec = make_spec(DataType::float32, {3, 5});
  for (const std::size_t offset : {1, 2, 6}) {
    const HostTensor host = random_tensor(spec);
    void* memory = driver().allocate(device.index, 128);
    const std::shared_ptr<void> owner(memory, [](void* held) { driver().deallocate(device.index, held); });
    ASSERT_TRUE(driver().copy_from_host(device.index, memory, offset, host.bytes.data(), host.bytes.size(), {}).ok());
    const Tensor crooked(memory, spec, device, offset, owner), straight = upload(HostTensor(spec));
    const Problem copy = problem_of(OpId::copy, {crooked.spec()}, Attributes(OpId::copy));
    ASSERT_EQ(refusal("COPY_DIRECT", copy, profile()), "");
    ASSERT_TRUE(run_all(*prepare("COPY_DIRECT", copy), {crooked}, {straight}).ok());
    EXPECT_EQ(download(straight).bytes, host.bytes) << offset;
  }
}

TEST_F(MovementTest, OtherDtypesAreRefusedByName) {
  EXPECT_EQ(refusal("COPY_DIRECT", problem("copy(f32[33]) -> bf16[33]"), profile()),
            "input 0 is f32, and this kernel takes the output's bf16");
  EXPECT_EQ(refusal("EMBEDDING_DIRECT", problem("embedding(i64[5], bf16[7,9]) -> f32[5,9]"), profile()),
            "input 1 is bf16, and this kernel takes the output's f32");
}

TEST_F(MovementTest, AnIndexOutsideTheTableIsReportedAndItsRowNotWritten) {
  const Problem look_up = problem("embedding(i32[3], f32[7,5])");
  const HostTensor table = random_tensor(look_up.inputs[1]), before(look_up.outputs[0]);
  for (const double wrong : {-1.0, 7.0}) {
    const Tensor out = upload(before);
    const Status status = run_all(*prepare("EMBEDDING_DIRECT", look_up),
                                  {upload(numbers(look_up.inputs[0], {6, wrong, 0})), upload(table)}, {out});
    EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
    EXPECT_NE(status.message().find("an index is outside the table; give 0 to 6"), std::string::npos)
        << status.message();
    const HostTensor got = download(out);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(got.get(i), table.get(30 + i));
      EXPECT_EQ(std::memcmp(got.bytes.data() + 20 + 4 * i, before.bytes.data(), 4), 0);
      EXPECT_EQ(got.get(10 + i), table.get(i));
    }
  }
}

TEST_F(MovementTest, GatherCountsFromTheBackAndReportsWhatIsOutside) {
  for (const char* text : {"gather(f32[5,7], i32[3]; dim=1)", "gather_elements(f32[1,7], i32[1,3]; dim=1)"}) {
    const Problem take = problem(text);
    const auto plan = prepare("GATHER_DIRECT", take);
    const HostTensor data = random_tensor(take.inputs[0]);
    const Tensor out = upload(HostTensor(take.outputs[0]));
    EXPECT_TRUE(run_all(*plan, {upload(data), upload(numbers(take.inputs[1], {6, -7, -2}))}, {out}).ok());
    const HostTensor got = download(out);
    EXPECT_EQ(got.get(0), data.get(6));
    EXPECT_EQ(got.get(1), data.get(0));
    EXPECT_EQ(got.get(2), data.get(5));
    for (const double wrong : {-8.0, 7.0}) {
      const Status status = run_all(*plan, {upload(data), upload(numbers(take.inputs[1], {6, wrong, 0}))}, {out});
      EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
      EXPECT_NE(status.message().find("an index is outside a dim of 7; give -7 to 6"), std::string::npos)
          << status.message();
    }
  }
}

TEST_F(MovementTest, WrongIndicesAreReportedTogetherAlsoThatOfAPlanThatIsGone) {
  const Problem first = problem("embedding(i32[3], f32[7,5])"), second = problem("embedding(i32[2], f32[9,5])");
  const auto run_wrong = [this](const Plan& plan, const Problem& look_up) {
    const Tensor out = upload(HostTensor(look_up.outputs[0]));
    const std::vector<double> indices(static_cast<std::size_t>(look_up.inputs[0].shape[0]), 99.0);
    run(plan, {upload(numbers(look_up.inputs[0], indices)), upload(random_tensor(look_up.inputs[1]))}, out);
    EXPECT_TRUE(driver().wait(device.index).ok());
  };
  auto gone = prepare("EMBEDDING_DIRECT", first);
  run_wrong(*gone, first);
  gone.reset();
  const auto kept = prepare("EMBEDDING_DIRECT", second);
  run_wrong(*kept, second);
  const Status status = driver().synchronize(device.index, {});
  EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
  EXPECT_NE(status.message().find("give 0 to 6"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("give 0 to 8"), std::string::npos) << status.message();
  EXPECT_TRUE(driver().synchronize(device.index, {}).ok());
}

TEST_F(MovementTest, AWrongIndexIsReportedToItsStreamAndOnce) {
  const Problem look_up = problem("embedding(i32[3], f32[7,5])");
  const auto plan = prepare("EMBEDDING_DIRECT", look_up);
  const Tensor table = upload(random_tensor(look_up.inputs[1])), out = upload(HostTensor(look_up.outputs[0]));
  const Tensor bad = upload(numbers(look_up.inputs[0], {6, 9, 0})),
               good = upload(numbers(look_up.inputs[0], {6, 1, 0}));
  const auto launch = [&](const Tensor& indices, Stream stream) {
    const Tensor *inputs[] = {&indices, &table}, *outputs[] = {&out};
    EXPECT_TRUE(plan->run({.inputs = inputs, .outputs = outputs, .stream = stream}).ok());
  };
  const Stream one = driver().create_stream(device.index), other = driver().create_stream(device.index);
  for (int round = 0; round < 20; ++round) {
    launch(bad, other);
    EXPECT_TRUE(driver().synchronize(device.index, one).ok());
    EXPECT_EQ(driver().synchronize(device.index, other).code(), ErrorCode::invalid_argument);
    launch(good, other);
    EXPECT_TRUE(driver().synchronize(device.index, other).ok());
    launch(bad, one);
    EXPECT_EQ(driver().synchronize(device.index, {}).code(), ErrorCode::invalid_argument) << "waits for all";
    EXPECT_TRUE(driver().synchronize(device.index, one).ok());
  }
  for (const Stream& stream : {one, other}) driver().destroy_stream(device.index, stream);
}

TEST_F(MovementTest, NoWrongIndexIsLostWhereThreadsWaitMeanwhile) {
  const Problem look_up = problem("embedding(i32[3], f32[7,5])");
  const auto plan = prepare("EMBEDDING_DIRECT", look_up);
  const Tensor table = upload(random_tensor(look_up.inputs[1])), out = upload(HostTensor(look_up.outputs[0]));
  const Tensor bad = upload(numbers(look_up.inputs[0], {6, 9, 0}));
  constexpr int calls = 300;
  std::atomic<int> reported = 0;
  std::atomic<bool> done = false;
  const auto wait = [&] { reported += !driver().synchronize(device.index, {}).ok(); };
  std::thread waiting([&] {
    while (!done) wait();
  });
  for (int i = 0; i < calls; ++i) {
    const Tensor *inputs[] = {&bad, &table}, *outputs[] = {&out};
    EXPECT_TRUE(plan->run({.inputs = inputs, .outputs = outputs}).ok());
    wait();
  }
  done = true;
  waiting.join();
  EXPECT_EQ(reported, calls);
}

TEST_F(MovementTest, AWrongPositionIsReported) {
  const Problem turn = problem("rope(f32[3,2,16], i64[3], f32[9,4], f32[9,4])");
  std::vector<Tensor> inputs = {upload(random_tensor(turn.inputs[0])), upload(numbers(turn.inputs[1], {0, 9, 8})),
                                upload(random_tensor(turn.inputs[2])), upload(random_tensor(turn.inputs[3]))};
  const Status status = run_all(*prepare("ROPE_DIRECT", turn), inputs, {upload(HostTensor(turn.outputs[0]))});
  EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
  EXPECT_NE(status.message().find("a position is outside the tables; give 0 to 8"), std::string::npos);
}

TEST_F(MovementTest, AWrongLengthOrPageIsReportedAndCachesInPlaceKeepTheRest) {
  for (const bool paged : {false, true}) {
    const std::string cache = paged ? "f32[4,2,1,8]" : "f32[2,1,4,8]";
    const Problem append = problem("kv_append(" + cache + ", " + cache + ", f32[2,1,2,8], f32[2,1,2,8], i64[2]" +
                                   (paged ? ", i32[2,1])" : ")"));
    const HostTensor keys = random_tensor(append.inputs[0]), values = random_tensor(append.inputs[1]);
    const HostTensor key = random_tensor(append.inputs[2]), value = random_tensor(append.inputs[3]);
    const Tensor key_cache = upload(keys, 0), value_cache = upload(values, 0);
    std::vector<Tensor> inputs = {key_cache, value_cache, upload(key, 0), upload(value, 0),
                                  upload(numbers(append.inputs[4], {paged ? 0.0 : 2.0, paged ? 0.0 : 3.0}))};
    if (paged) inputs.push_back(upload(numbers(append.inputs[5], {3, 4})));
    const Status status = run_all(*prepare("KV_APPEND_DIRECT", append), inputs, {key_cache, value_cache});
    EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
    const std::string advice = paged ? "lengths from 0 to 0 and pages from 0 to 3" : "give lengths from 0 to 2";
    EXPECT_NE(status.message().find(advice), std::string::npos) << status.message();
    const HostTensor got = download(key_cache);
    const std::size_t begin = paged ? 3 * 16 : 16;  // of the two tokens of the first sequence
    for (std::size_t i = 0; i < 64 && i < got.bytes.size() / 4; ++i)
      EXPECT_EQ(got.get(i), i >= begin && i < begin + 16 ? key.get(i - begin) : keys.get(i)) << i;
  }
}

}  // namespace
}  // namespace xpuruntime::opencl
