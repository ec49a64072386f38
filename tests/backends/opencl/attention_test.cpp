
#include "backends/opencl/device_fixture.h"

namespace xpuruntime::opencl {
namespace {

constexpr const char* kernels[] = {"ATTENTION_SINGLE_QUERY", "ATTENTION_TILED", "ATTENTION_DIRECT"};

class AttentionTest : public OpenClTest {
 protected:
  /// Two sequences of up to 700 keys on 9 pages of 100, with these lengths and this page in the second place of each.
  static Status run_pages(const char* name, std::int64_t first_length, std::int64_t second_length, int page) {
    const Problem problem =
        parse_problem("attention(f32[2,2,1,8], f32[9,100,2,8], f32[9,100,2,8], none, i64[2], i32[2,7])", device);
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
      HostTensor host(problem.inputs[i]);
      for (std::size_t e = 0; e < host.bytes.size() / host.width(); ++e) {
        double value = 0.5;
        if (i == 4) value = static_cast<double>(e == 0 ? first_length : second_length);
        if (i == 5) value = e % 7 == 1 ? page : static_cast<double>(e % 7);
        host.set(e, value);
      }
      inputs.push_back(upload(host));
    }
    const Tensor output = upload(HostTensor(problem.outputs[0]));
    const auto plan = prepare(name, problem);
    run(*plan, inputs, output);
    return driver().synchronize(device.index, {});
  }
};

TEST_F(AttentionTest, ReportsLengthsAndPagesThatCannotBeRight) {
  const std::string message = "attention: a length is negative or more than the keys, or a page not one of the 9 pages";
  for (const char* name : kernels) {
    SCOPED_TRACE(name);
    EXPECT_EQ(run_pages(name, 700, 650, 8).message(), "");
    EXPECT_EQ(run_pages(name, 701, 5, 8).message(), message);
    EXPECT_EQ(run_pages(name, 5, -1, 8).message(), message);
    EXPECT_EQ(run_pages(name, 150, 0, 9).message(), message);
    EXPECT_EQ(run_pages(name, 150, 0, -1).message(), message);
    EXPECT_EQ(run_pages(name, 100, 100, -1).message(), "");  // a page that no key lies on
  }
}

TEST_F(AttentionTest, SayWhatTheyDoNotTake) {
  const auto refused = [&](std::string_view name, const std::string& text) {
    return refusal(name, parse_problem(text, device), profile());
  };
  EXPECT_EQ(refused("ATTENTION_SINGLE_QUERY", "attention(f32[1,1,5,8], f32[1,1,9,8], f32[1,1,9,8])"),
            "queries = 5 is over 4");
  EXPECT_EQ(refused("ATTENTION_TILED", "attention(f32[1,1,5,260], f32[1,1,9,260], f32[1,1,9,260])"),
            "the head size = 260 is over 256");
  EXPECT_EQ(refused("ATTENTION_DIRECT", "attention(f32[1,1,5,260], f32[1,1,9,260], f32[1,1,9,260])"), "");
  EXPECT_EQ(refused("ATTENTION_DIRECT", "attention(f32[1,1,5,8], f32[1,1,9,8], f32[1,1,9,8], f64[5,9])"),
            "input 3 is f64, and this kernel takes f32, f16 and bf16");
}

}  // namespace
}  // namespace xpuruntime::opencl
