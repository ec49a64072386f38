// What kernels do on a GPU, run on whatever device is here: plans are prepared for a profile that says so, and held
// against the plainest kernel of the op, which the conformance suite proves.

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/opencl/device_fixture.h"

namespace xpuruntime::opencl {
namespace {

class OtherDevicesTest : public OpenClTest {
 protected:
  static DeviceProfile gpu() {
    DeviceProfile other = profile();
    other.vendor = "amd";
    other.cpu_features = {};
    other.compute_units = 8;
    other.max_work_group_size = std::min(other.max_work_group_size, 256u);
    other.local_memory_bytes = 48 << 10;
    return other;
  }

  /// The problem with aligned tensors, and with tensors that begin at any element.
  static std::vector<Problem> both_alignments(const std::string& text) {
    const Problem aligned = parse_problem(text, device);
    Problem any = aligned;
    for (auto* specs : {&any.inputs, &any.outputs})
      for (TensorSpec& spec : *specs)
        if (spec != no_input()) spec.alignment = static_cast<std::uint8_t>(size_of(spec.dtype));
    return {aligned, any};
  }
  static std::size_t lead_of(const TensorSpec& spec) { return spec.alignment >= 16 ? 0 : 1; }

  std::vector<Tensor> inputs_of(const Problem& problem) {
    std::vector<Tensor> inputs;
    for (const TensorSpec& spec : problem.inputs) {
      HostTensor host = random_tensor(spec);
      if (!is_floating(spec.dtype)) fill_whole(host);
      if (spoil_ != nullptr) spoil_(host, inputs.size());
      inputs.push_back(upload(host, lead_of(spec)));
    }
    return inputs;
  }

  static std::vector<HostTensor> results_of(const KernelSpec& row, const Problem& problem, const DeviceProfile& on,
                                            const std::vector<Tensor>& inputs, std::string_view token = {},
                                            bool by_class = false) {
    std::vector<Tensor> outputs;
    for (const TensorSpec& spec : problem.outputs) outputs.push_back(upload(HostTensor(spec), lead_of(spec)));
    const auto kernel = make_kernel(row, problem.op, DeviceType::opencl);
    const Problem prepared = by_class ? kernel->plan_problem(problem).value_or(problem) : problem;
    run(*kernel->prepare(prepared, {device, on, driver()}, token), inputs, outputs);
    std::vector<HostTensor> results;
    for (const Tensor& output : outputs) results.push_back(download(output));
    return results;
  }

  /// Plans for a class of problems give the bits of plans for each, with the same tokens.
  void check_class(const std::string& text) {
    SCOPED_TRACE(text);
    const Problem problem = parse_problem(text, device);
    const std::vector<Tensor> inputs = inputs_of(problem);
    const DeviceProfile on = gpu();
    int ran = 0;
    for (const KernelSpec& row : table) {
      if (!row.ops.contains(problem.op) || row.plan_problem == nullptr || !row.accepts(problem, on).supported) continue;
      std::vector<std::string> tokens = {""};
      if (row.variants != nullptr) {
        for (const std::string& token : row.variants(problem, {device, on, driver()})) tokens.push_back(token);
      }
      for (const std::string& token : tokens) {
        EXPECT_EQ(results_of(row, problem, on, inputs, token, true)[0].bytes,
                  results_of(row, problem, on, inputs, token, false)[0].bytes)
            << row.name << " " << token;
        ++ran;
      }
    }
    EXPECT_GT(ran, 0);
  }

  /// Every kernel that takes the problem on a GPU, each of its plans.
  void check(const std::string& text, std::string_view plainest) {
    for (const Problem& problem : both_alignments(text)) check(problem, plainest);
  }
  void check(const Problem& problem, std::string_view plainest) {
    SCOPED_TRACE(to_string(problem));
    const std::vector<Tensor> inputs = inputs_of(problem);
    const auto* plain = std::find_if(std::begin(table), std::end(table), [&](const KernelSpec& row) {
      return row.name == plainest && row.ops.contains(problem.op);
    });
    ASSERT_NE(plain, std::end(table));
    const std::vector<HostTensor> expected = results_of(*plain, problem, profile(), inputs);
    const DeviceProfile on = gpu();
    int ran = 0;
    for (const KernelSpec& row : table) {
      if (!row.ops.contains(problem.op) || !row.accepts(problem, on).supported) continue;
      std::vector<std::string> tokens = {""};
      if (row.variants != nullptr) tokens = row.variants(problem, {device, on, driver()});
      for (const std::string& token : tokens) {
        SCOPED_TRACE(std::string(row.name) + " " + token);
        const std::vector<HostTensor> got = results_of(row, problem, on, inputs, token);
        for (std::size_t i = 0; i < got.size(); ++i) compare(got[i], expected[i]);
        ++ran;
      }
    }
    EXPECT_GT(ran, 0);
  }

  void (*spoil_)(HostTensor& host, std::size_t input) = nullptr;  // changes what inputs hold

 private:
  /// Lengths, pages and masks: 0 or 1.
  static void fill_whole(HostTensor& host) {
    for (std::size_t i = 0; i < host.bytes.size() / host.width(); ++i) host.set(i, static_cast<double>(i % 3 != 1));
  }

  static void compare(const HostTensor& got, const HostTensor& expected) {
    const bool narrow = got.width() == 2;
    Dims at = Dims::filled(got.spec.shape.size(), 0);
    do {
      const double right = expected.get(element_at(expected.spec, at));
      const double bound = (narrow ? 1e-2 : 2e-4) * (1 + std::abs(right)), here = got.get(element_at(got.spec, at));
      ASSERT_TRUE(std::abs(here - right) <= bound || here == right || (std::isnan(here) && std::isnan(right)))
          << here << " for " << right << " at " << to_string(at);
    } while (step(at, got.spec.shape));
  }
};

TEST_F(OtherDevicesTest, ProductsAgree) {
  for (const char* text :
       {"matmul(f32[70,300], f32[300,133])", "linear(f16[33,40], f16[50,40], f16[50]; activation=gelu)",
        "matmul(f32[3,20,30], f32[30,40], f32[3,1,40]; alpha=0.5 beta=2)", "linear(f32[130,64], f32[140,64])",
        "linear(f32[3,77], f32[50,77], f32[50]; activation=silu)", "matmul(bf16[7,77], bf16[77,50])"})
    check(text, "MATMUL_DIRECT");
}

TEST_F(OtherDevicesTest, ConvolutionsAgree) {
  for (const char* text :
       {"conv2d(f32[2,5,19,17], f32[20,5,3,3], f32[20]; padding=1)", "conv2d(f32[1,8,12,12], f32[70,8,1,1])",
        "conv2d(f32[1,6,15,20], f32[8,3,5,3], f32[8]; groups=2 stride=2,1 padding=2,1 dilation=1,2)",
        "conv2d(bf16[1,16,9,9]{1296,1,144,16}, bf16[16,16,3,3]; padding=1)",
        "conv2d(f32[1,12,10,10], f32[12,1,3,3]; groups=12 padding=1)",
        "conv3d(f32[1,4,5,6,7], f32[9,4,2,3,3], f32[9]; padding=1)"})
    check(text, "CONV2D_NAIVE_SMALL");
}

TEST_F(OtherDevicesTest, AttentionsAgree) {
  for (const char* text : {"attention(f32[1,4,40,64], f32[1,2,70,64], f32[1,2,70,64]; causal=true)",
                           "attention(f32[2,2,9,20], f32[2,2,33,20], f32[2,2,33,36], bool[9,33])",
                           "attention(f32[1,2,9,200], f32[1,2,40,200], f32[1,2,40,24])",
                           "attention(bf16[2,16,1,64], bf16[2,2,1200,64], bf16[2,2,1200,64]; lse=true)",
                           "attention(f32[1,2,130,128], f32[1,2,100,128], f32[1,2,100,128]; causal=true lse=true)",
                           "attention(f16[1,4,37,80], f16[1,2,70,80], f16[1,2,70,80], f32[1,4,37,70])",
                           "attention(f32[3,4,2,33], f32[3,4,300,33], f32[3,4,300,33], none, i64[3]; lse=true)",
                           "attention(f32[2,2,3,16], f32[5,8,2,16], f32[5,8,2,16], none, i32[2], i32[2,3])"})
    check(text, "ATTENTION_DIRECT");
}

/// NaN as every third key and its value, beginning with key `first`.
template <std::size_t first>
void spoil_keys(HostTensor& host, std::size_t input) {
  if (input != 1 && input != 2) return;
  const auto keys = static_cast<std::size_t>(host.spec.shape[2]), size = static_cast<std::size_t>(host.spec.shape[3]);
  for (std::size_t i = 0; i < host.bytes.size() / host.width(); ++i)
    if (i / size % keys % 3 == first) host.set(i, std::numeric_limits<double>::quiet_NaN());
}

TEST_F(OtherDevicesTest, AttentionsAgreeAboutNan) {
  const std::string few = "attention(f32[1,2,3,20], f32[1,2,33,20], f32[1,2,33,20]";
  const std::string many = "attention(f32[1,2,40,20], f32[1,2,33,20], f32[1,2,33,20]";
  spoil_ = spoil_keys<1>;
  check(few + ", bool[3,33])", "ATTENTION_DIRECT");  // masked: every third
  check(many + ", bool[40,33])", "ATTENTION_DIRECT");
  spoil_ = spoil_keys<2>;
  check(few + "; causal=true)", "ATTENTION_DIRECT");  // the third query on
  check(many + "; causal=true)", "ATTENTION_DIRECT");
}

// On a GPU an item has 4 neighbours, 8 of 16-bit types; aligned or not.
TEST_F(OtherDevicesTest, ElementwiseAgrees) {
  for (const char* text :
       {"sub(f16[70,64], f16[70,64])", "mul(bf16[70,33], bf16[33])", "sub(f32[9,20], f16[20])", "gelu(bf16[5,1000])",
        "relu(f16[77])", "silu_mul(f16[7,64])", "sub(f32[9,20], f32[20])", "div(bf16[13,40], bf16[13,1])",
        "dropout(bf16[5,33]; p=0.3 seed=9)", "dropout(f16[7,64]; p=0.5 seed=3)", "dropout(f32[1001]; p=0.1 seed=1)",
        "silu(f32[9,40])", "dropout(f32[1000]; p=0.1 seed=1)", "tanh(f32[1003])", "silu(bf16[9,40])",
        "tanh(bf16[1003])", "gelu(f16[5,1000]; approximate=tanh)", "sigmoid(f16[77])", "sub(bf16[5,16], bf16[5,16])"})
    check(text, "ELEMENTWISE_DIRECT");
  for (const char* text : {"rope(f32[5,3,40], i64[5], f32[64,16], f32[64,16])",
                           "rope(f16[5,3,40], i64[5], f16[64,20], f16[64,20]; interleaved=true)",
                           "rope(f32[5,3,22], i64[5], f32[64,9], f32[64,9])"})
    check(text, "ROPE_DIRECT");
  check("cast(f16[70,64]; dtype=bf16)", "CAST_DIRECT");
}

TEST_F(OtherDevicesTest, PointwiseAgrees) {
  for (const char* text : {"prelu(f16[5,1000], f16[1000])", "sin(f32[1003])", "less(f32[70,64], f32[64])"})
    check(text, "ELEMENTWISE_SINGLE");
  check("where(bool[70,1], f32[64], f32[70,64])", "WHERE_DIRECT");
}

TEST_F(OtherDevicesTest, IndexingAgrees) {
  check("gather(f32[7,130], i64[9])", "GATHER_DIRECT");
  check("pad(f16[5,70]; pads=3,1,1,2)", "ARRANGE_DIRECT");
  check("pad(f32[5,70]; pads=3,9 mode=reflect)", "ARRANGE_DIRECT");
  // Few values and many: where several are the largest the first or the last is meant.
  for (const char* text : {"arg_max(f32[3,1000])", "arg_min(i8[9,300]; select_last_index=true)",
                           "arg_max(i64[300,5]; dim=0)", "arg_max(bf16[2,257]; select_last_index=true)"})
    check(text, "ARG_LINES");
}

TEST_F(OtherDevicesTest, RowsAgree) {
  for (const char* text : {"softmax(f16[40,2048])", "softmax(bf16[3,1000])", "log_softmax(f32[300,1030])"})
    check(text, "SOFTMAX_LINES");
  for (const char* text :
       {"layer_norm(f16[9,768], f16[768], f16[768])", "layer_norm(bf16[3,9000], bf16[9000])", "normalize(f32[7,1030])"})
    check(text, "NORM_LINES");
}

TEST_F(OtherDevicesTest, ReductionsAgree) {
  for (const char* text : {"reduce_sum(f32[70,1024]; dim=1)", "reduce_mean(f16[9,3000]; dim=1)",
                           "reduce_max(bf16[3,5,77]; dim=1,2)", "reduce_sum(f32[3,20000]; dim=1)"})
    check(text, "REDUCE_PARTS");
}

TEST_F(OtherDevicesTest, PlansOfAClassGiveTheSameBits) {
  for (const char* text :
       {"softmax(f32[3,1000])", "softmax(f16[70,36])", "layer_norm(f32[70,96], f32[96])",
        "softmax(f32[2,100,20]; dim=1)", "layer_norm(bf16[21,1000], bf16[1000])", "matmul(f32[70,300], f32[300,133])",
        "linear(f16[33,40], f16[50,40])", "attention(bf16[2,8,1,64], bf16[2,2,900,64], bf16[2,2,900,64])",
        "add(f32[17,36], f32[36])", "attention(f32[1,4,40,64], f32[1,2,70,64], f32[1,2,70,64]; causal=true)",
        "transpose(f32[70,90])"})
    check_class(text);
}

}  // namespace
}  // namespace xpuruntime::opencl
