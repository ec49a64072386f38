// What is wrong with a call is said before a byte of its outputs is written.

#include <gtest/gtest.h>

#include "backends/cpu/plan_run.h"
#include "core/expect_error.h"

namespace xpuruntime::cpu_tests {
namespace {

/// A spec from its text.
TensorSpec spec_of(const std::string& text) { return parse_problem("copy(" + text + ")").inputs[0]; }

constexpr std::byte before{0x77};

Tensor filled(const TensorSpec& spec, std::byte byte) {
  Tensor memory = Tensor::empty(DataType::uint8, {static_cast<std::int64_t>(span_bytes(spec))});
  std::fill_n(memory.as<std::byte>(), span_bytes(spec), byte);
  return Tensor(memory.data(), spec, Device{}, 0, memory.owner());
}

bool unchanged(const Tensor& tensor) {
  const auto* bytes = tensor.as<const std::byte>();
  return std::all_of(bytes, bytes + span_bytes(tensor.spec()), [](std::byte b) { return b == before; });
}

/// Calls the op; the error must be `invalid_argument`, hold `part` and, after a semicolon, what to do.
void expect_refused(const Call& call, const std::string& part) {
  const std::string text =
      error_text(ErrorCode::invalid_argument, [&] { Runtime::global().dispatcher().dispatch(call); });
  EXPECT_HAS(text, part) << to_string(call.op) << " lacks: " << part;
  EXPECT_HAS(text, "; ") << "does not say what to do";
}

struct BadCall {
  const char* op;
  std::vector<std::string> inputs;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::string output;
  std::string part;  // of the error
};

void expect_refused(const BadCall& bad) {
  SCOPED_TRACE(bad.op + std::string(": ") + bad.part);
  const OpId op = parse_op(bad.op);
  Attributes attributes(op);
  for (const auto& [name, value] : bad.attributes) attributes.parse(name, value);
  std::vector<Tensor> tensors;
  for (const std::string& text : bad.inputs) tensors.push_back(filled(spec_of(text), std::byte{0}));
  const Tensor output = filled(spec_of(bad.output), before);
  const auto inputs = oracle::pointers(tensors);
  const Tensor* const outputs[] = {&output};
  expect_refused(Call{op, inputs, outputs, &attributes}, bad.part);
  EXPECT_TRUE(unchanged(output));
}

void expect_all_refused(std::initializer_list<BadCall> calls) {
  for (const BadCall& call : calls) expect_refused(call);
}

TEST(BadInput, WrongRanksAreRefused) {
  expect_all_refused({
      {"matmul", {"f32[]", "f32[3,4]"}, {}, "f32[4]", "without dims"},
      {"linear", {"f32[2,3]", "f32[3]"}, {}, "f32[2,3]", "has 1 dims, not 2"},
      {"conv2d", {"f32[3,8,8]", "f32[4,3,3,3]"}, {}, "f32[4,6,6]", "has 3 dims, not 4"},
      {"conv2d", {"f32[1,3,8,8]", "f32[4,27]"}, {}, "f32[1,4,6,6]", "has 2 dims, not 4"},
      {"conv3d", {"f32[1,3,8,8]", "f32[4,3,3,3,3]"}, {}, "f32[1,4,6,6]", "has 4 dims, not 5"},
      {"attention", {"f32[2,8,4]", "f32[2,8,4]", "f32[2,8,4]"}, {}, "f32[2,8,4]", "has 3 dims, not 4"},
      {"max_pool2d", {"f32[8,8]"}, {{"kernel_size", "2"}}, "f32[4,4]", "has 2 dims, not 4"},
      {"avg_pool3d", {"f32[1,3,8,8]"}, {{"kernel_size", "2"}}, "f32[1,3,4,4]", "has 4 dims, not 5"},
      {"batch_norm2d", {"f32[2,3]", "f32[3]", "f32[3]"}, {}, "f32[2,3]", "has 2 dims, not 4"},
      {"softmax", {"f32[]"}, {}, "f32[]", "without dims"},
      {"embedding", {"i64[3]", "f32[7]"}, {}, "f32[3]", "has 1 dims, not 2"},
      {"cross_entropy", {"f32[]", "i64[]"}, {}, "f32[]", "no class dim"},
  });
}

TEST(BadInput, IncompatibleShapesAreRefused) {
  expect_all_refused({
      {"matmul", {"f32[2,3]", "f32[4,5]"}, {}, "f32[2,5]", "inner extents 3 and 4 differ"},
      {"matmul", {"f32[2,2,3]", "f32[3,3,4]"}, {}, "f32[2,2,4]", "do not broadcast"},
      {"linear", {"f32[2,3]", "f32[5,4]"}, {}, "f32[2,5]", "not the 4 features"},
      {"linear", {"f32[2,4]", "f32[5,4]", "f32[4]"}, {}, "f32[2,5]", "bias"},
      {"add", {"f32[3]", "f32[4]"}, {}, "f32[4]", "do not broadcast"},
      {"conv2d", {"f32[1,3,8,8]", "f32[4,2,3,3]"}, {}, "f32[1,4,6,6]", "takes 2 channels"},
      {"conv2d", {"f32[1,3,2,2]", "f32[4,3,3,3]"}, {}, "f32[1,4,1,1]", "larger than the padded input"},
      {"attention", {"f32[1,2,4,8]", "f32[1,2,4,9]", "f32[1,2,4,8]"}, {}, "f32[1,2,4,8]", "different size"},
      {"attention", {"f32[1,3,4,8]", "f32[1,2,4,8]", "f32[1,2,4,8]"}, {}, "f32[1,3,4,8]", "not a multiple"},
      {"attention",
       {"f32[1,2,4,8]", "f32[1,2,4,8]", "f32[1,2,4,8]", "bool[5]"},
       {},
       "f32[1,2,4,8]",
       "do not broadcast"},
      {"layer_norm", {"f32[2,3]", "f32[4]"}, {}, "f32[2,3]", "weight"},
      {"batch_norm1d", {"f32[2,3]", "f32[4]", "f32[4]"}, {}, "f32[2,3]", "running_mean"},
      {"concat", {"f32[2,3]", "f32[2,4]"}, {}, "f32[4,3]", "differ outside dim 0"},
      {"nll_loss", {"f32[4,3]", "i64[5]"}, {}, "f32[]", "target"},
      {"nll_loss", {"f32[4,3]", "i64[4]", "f32[4]"}, {}, "f32[]", "class weight"},
      {"poisson_nll_loss", {"f32[4,3]", "f32[4,2]"}, {}, "f32[]", "do not broadcast"},
      {"dropout", {"f32[4]", "i64[3]"}, {}, "f32[4]", "seed and offset"},
      {"add", {"f32[3]", "f32[3]"}, {}, "f32[4]", "give the shape"},  // the output's
  });
}

TEST(BadInput, BadAxesAndAttributesAreRefused) {
  expect_all_refused({
      {"softmax", {"f32[2,3]"}, {{"dim", "2"}}, "f32[2,3]", "dim 2 is out of range"},
      {"log_softmax", {"f32[2,3]"}, {{"dim", "-3"}}, "f32[2,3]", "dim -3 is out of range"},
      {"reduce_sum", {"f32[2,3]"}, {{"dim", "5"}}, "f32[2]", "dim 5 is out of range"},
      {"reduce_sum", {"f32[2,3]"}, {{"dim", "0,-2"}}, "f32[3]", "reduced twice"},
      {"normalize", {"f32[3]"}, {}, "f32[3]", "dim 1 is out of range"},
      {"concat", {"f32[2]", "f32[2]"}, {{"dim", "1"}}, "f32[4]", "dim 1 is out of range"},
      {"transpose", {"f32[2,3]"}, {{"dims", "0,0"}}, "f32[3,2]", "twice"},
      {"transpose", {"f32[2,3]"}, {{"dims", "0"}}, "f32[3,2]", "entries"},
      {"slice", {"f32[5]"}, {{"step", "0"}}, "f32[5]", "is not positive"},
      {"slice", {"f32[5]"}, {{"dim", "1"}}, "f32[5]", "dim 1 is out of range"},
      {"layer_norm", {"f32[2,3]"}, {{"normalized_rank", "3"}}, "f32[2,3]", "normalized_rank"},
      {"layer_norm", {"f32[2,3]"}, {{"eps", "-1"}}, "f32[2,3]", "eps is negative"},
      {"dropout", {"f32[3]"}, {{"p", "1.5"}}, "f32[3]", "not a probability"},
      {"cross_entropy", {"f32[4,3]", "i64[4]"}, {{"label_smoothing", "2"}}, "f32[]", "label_smoothing"},
      {"conv2d", {"f32[1,3,8,8]", "f32[4,3,3,3]"}, {{"padding", "-1"}}, "f32[1,4,4,4]", "padding is negative"},
      {"conv2d", {"f32[1,3,8,8]", "f32[4,3,3,3]"}, {{"stride", "0"}}, "f32[1,4,6,6]", "stride is not positive"},
      {"conv2d", {"f32[1,3,8,8]", "f32[4,3,3,3]"}, {{"dilation", "0"}}, "f32[1,4,6,6]", "dilation is not positive"},
      {"conv2d", {"f32[1,3,8,8]", "f32[4,3,3,3]"}, {{"groups", "2"}}, "f32[1,4,6,6]", "do not divide"},
      {"conv2d", {"f32[1,3,8,8]", "f32[4,3,3,3]"}, {{"groups", "0"}}, "f32[1,4,6,6]", "groups is 0"},
      {"max_pool2d", {"f32[1,3,8,8]"}, {}, "f32[1,3,4,4]", "kernel_size is 0 or not set"},
      {"max_pool2d",
       {"f32[1,3,8,8]"},
       {{"kernel_size", "2"}, {"padding", "2"}},
       "f32[1,3,6,6]",
       "over half the kernel"},
      {"avg_pool2d",
       {"f32[1,3,8,8]"},
       {{"kernel_size", "2"}, {"padding", "-1"}},
       "f32[1,3,3,3]",
       "padding is negative"},
  });
}

TEST(BadInput, EmptyTensorsAndWrongDtypesAreRefusedWhereTheyMeanNothing) {
  expect_all_refused({
      {"reduce_max", {"f32[0]"}, {}, "f32[]", "no elements to choose from"},
      {"reduce_min", {"f32[3,0]"}, {{"dim", "1"}}, "f32[3]", "no elements to choose from"},
      {"max_pool2d", {"f32[1,3,0,8]"}, {{"kernel_size", "2"}}, "f32[1,3,1,4]", "empty"},
      {"conv2d", {"f32[1,3,8,8]", "f32[4,3,0,3]"}, {}, "f32[1,4,9,6]", "the kernel is empty"},
      {"attention", {"f32[1,2,4,8]", "f32[1,2,0,8]", "f32[1,2,0,8]"}, {}, "f32[1,2,4,8]", "no keys"},
      {"softmax", {"i32[4]"}, {}, "i32[4]", "not floating"},
      {"div", {"i32[4]", "i32[4]"}, {}, "i32[4]", "not an integer"},
      {"add", {"bool[4]", "bool[4]"}, {}, "bool[4]", "boolean"},
      {"embedding", {"f32[4]", "f32[7,3]"}, {}, "f32[4,3]", "not integer"},
      {"nll_loss", {"f32[4,3]", "i16[4]"}, {}, "f32[]", "cast it to i64 or i32"},
      {"batch_norm1d", {"f32[2,3]"}, {}, "f32[2,3]", "no statistics"},
      {"matmul", {"f32[2,3]"}, {}, "f32[2]", "got 1 input"},
  });
}

}  // namespace

void expect_index_refused(const BadIndex& bad, const Kernel& kernel) {
  SCOPED_TRACE(text_of(kernel, parse_problem(bad.problem)) + " with " + std::to_string(bad.value));
  Runtime& runtime = Runtime::global();
  const Problem problem = parse_problem(bad.problem);
  std::vector<oracle::Values> values = oracle::make_inputs(problem, 7, oracle::Fill::usual);
  values[bad.input][bad.position] = bad.value;
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensors.push_back(filled(problem.inputs[i], std::byte{0}));
    const std::vector<std::byte> bytes = oracle::layout(problem.inputs[i], values[i]);
    std::copy(bytes.begin(), bytes.end(), tensors.back().as<std::byte>());
  }
  std::vector<Tensor> results;
  for (const TensorSpec& spec : problem.outputs) results.push_back(filled(spec, before));
  const auto inputs = oracle::pointers(tensors), outputs = oracle::pointers(results);
  KernelPolicy policy;
  policy.force(to_string(problem.op), kernel.name());
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  const Call call{.op = problem.op,
                  .inputs = inputs,
                  .outputs = outputs,
                  .attributes = &problem.attributes,
                  .direction = problem.direction};
  expect_refused(call, std::to_string(static_cast<std::int64_t>(bad.value)));
  EXPECT_TRUE(std::all_of(results.begin(), results.end(), unchanged));
  // It is the caller's mistake, not the kernel's: the next call runs.
  EXPECT_TRUE(runtime.dispatcher().quarantined().empty());
  const oracle::Case good(problem, 7);
  const oracle::Result result = good.through(runtime);
  EXPECT_EQ(result.kernel, kernel.name());
  EXPECT_EQ(good.compare(result), "");
}

namespace {

TEST(BadInput, IndicesOutsideTheirRangeAreRefusedByEveryKernelBeforeItWrites) {
  std::size_t asked = 0;
  for (const BadIndex& bad : {
           BadIndex{"embedding(i64[50], f32[7,9])", 0, 0, 7},
           BadIndex{"embedding(i64[50], f32[7,9])", 0, 49, -1},
           BadIndex{"embedding(i32[5,3], bf16[7,16])", 0, 7, 1e9},
           BadIndex{"embedding(i64[9]{2}, f64[7,16])", 0, 8, 1e15},
           BadIndex{"embedding(i64[3000], f32[64,128])", 0, 2999, 64},  // on several threads
           BadIndex{"embedding(i8[5], f32[7,9])", 0, 4, -3},
           BadIndex{"embedding(i64[1], f32[0,9])", 0, 0, 0},
           BadIndex{"cross_entropy(f32[20,9], i64[20])", 1, 0, 9},
           BadIndex{"cross_entropy(f32[20,9], i64[20]; reduction=none)", 1, 19, -1},
           BadIndex{"cross_entropy(bf16[20,9], i32[20]; reduction=sum)", 1, 11, 12345},
           BadIndex{"cross_entropy(f32[3,5,4], i64[3,4]; ignore_index=2)", 1, 11, -100},
           BadIndex{"cross_entropy(f32[3000,64], i64[3000]; reduction=none)", 1, 2999, 64},
           BadIndex{"nll_loss(f32[20,9], i64[20])", 1, 19, 9},
           BadIndex{"nll_loss(f16[20,9], i32[20]; reduction=none)", 1, 0, -2},
           BadIndex{"nll_loss(f32[9], i64[])", 1, 0, 9},
           BadIndex{"attention(f32[2,2,1,8], f32[2,2,20,8], f32[2,2,20,8], none, i32[2])", 4, 1, 21},
           BadIndex{"attention(f32[2,2,9,8], f32[2,2,20,8], f32[2,2,20,8], none, i64[2])", 4, 0, -1},
           BadIndex{"attention(f32[2,2,1,8], f32[5,4,2,8], f32[5,4,2,8], none, none, i32[2,3])", 5, 5, 5},
           BadIndex{"attention(f32[2,2,1,8], f32[5,4,2,8], f32[5,4,2,8], none, none, i32[2,3])", 5, 0, -1},
           BadIndex{"cross_entropy:backward(f32[20,9], i64[20], f32[])", 1, 19, 9},
           BadIndex{"cross_entropy:backward(bf16[3,5,4], i32[3,4], bf16[3,4]; reduction=none)", 1, 11, -1},
           BadIndex{"nll_loss:backward(f32[20,9], i64[20], f32[9], f32[])", 1, 0, 12345},
       }) {
    const Problem problem = parse_problem(bad.problem);
    for (const auto& kernel : cpu_kernels(problem.op)) {
      if (problem.op == OpId::embedding && problem.inputs[1].shape[0] == 0) continue;  // no good call to go on with
      if (!kernel->supports(problem, cpu_profile()).supported) continue;
      expect_index_refused(bad, *kernel);
      ++asked;
    }
  }
  EXPECT_GE(asked, 20u);
}

/// Three buffers' worth of memory for calls whose tensors overlap.
class Overlap : public ::testing::Test {
 protected:
  Tensor at(const std::string& spec, std::size_t byte) {
    return Tensor(memory_.data(), spec_of(spec), Device{}, byte, memory_.owner());
  }
  void expect_overlap(OpId op, std::vector<Tensor> in, std::vector<Tensor> out, const std::string& part,
                      const Attributes* attributes = nullptr) {
    std::fill_n(memory_.as<std::byte>(), 4096, before);
    const auto inputs = oracle::pointers(in), outputs = oracle::pointers(out);
    expect_refused(Call{op, inputs, outputs, attributes}, part);
    EXPECT_TRUE(
        std::all_of(memory_.as<std::byte>(), memory_.as<std::byte>() + 4096, [](std::byte b) { return b == before; }));
  }

 private:
  Tensor memory_ = Tensor::empty(DataType::uint8, {4096});
};

TEST_F(Overlap, AnOutputThatLiesPartlyOverAnInputIsRefused) {
  expect_overlap(OpId::add, {at("f32[64]", 0), at("f32[64]", 1024)}, {at("f32[64]", 64)}, "output 0 overlaps input 0");
  expect_overlap(OpId::add, {at("f32[64]", 0), at("f32[64]", 1024)}, {at("f32[64]", 1020)},
                 "output 0 overlaps input 1");
  expect_overlap(OpId::relu, {at("f32[64]", 4)}, {at("f32[64]", 0)}, "output 0 overlaps input 0");
  expect_overlap(OpId::copy, {at("f32[8,8]", 0)}, {at("f32[8,8]", 128)}, "output 0 overlaps input 0");
  // The same memory in another order or dtype is not in place.
  expect_overlap(OpId::relu, {at("f32[8,8]", 0)}, {at("f32[8,8]{1,8}", 0)}, "output 0 overlaps input 0");
  expect_overlap(OpId::add, {at("f32[8]", 0), at("f32[8,8]", 1024)}, {at("f32[8,8]", 0)}, "output 0 overlaps input 0");
}

TEST_F(Overlap, AnOutputInTheMemoryOfAnInputIsRefusedWhereEachElementNeedsMany) {
  expect_overlap(OpId::matmul, {at("f32[8,8]", 0), at("f32[8,8]", 1024)}, {at("f32[8,8]", 0)},
                 "output 0 overlaps input 0");
  expect_overlap(OpId::matmul, {at("f32[8,8]", 0), at("f32[8,8]", 1024), at("f32[8,8]", 2048)}, {at("f32[8,8]", 2048)},
                 "output 0 overlaps input 2");
  expect_overlap(OpId::softmax, {at("f32[8,8]", 0)}, {at("f32[8,8]", 0)}, "output 0 overlaps input 0");
  expect_overlap(OpId::transpose, {at("f32[8,8]", 0)}, {at("f32[8,8]", 0)}, "output 0 overlaps input 0");
  expect_overlap(OpId::layer_norm, {at("f32[8,8]", 0)}, {at("f32[8,8]", 0)}, "output 0 overlaps input 0");
}

TEST_F(Overlap, AnOutputThatLiesOverItselfIsRefused) {
  expect_overlap(OpId::relu, {at("f32[4,8]", 0)}, {at("f32[4,8]{0,1}", 1024)}, "overlap");
  expect_overlap(OpId::copy, {at("f32[4,8]", 0)}, {at("f32[4,8]{1,1}", 1024)}, "overlap");
  expect_overlap(OpId::copy, {at("f32[3,4]", 0)}, {at("f32[3,4]{2,4}", 1024)}, "overlap");
}

TEST_F(Overlap, TwoOutputsOneOverTheOtherAreRefused) {
  Attributes attributes(OpId::batch_norm1d);
  attributes.parse("training", "true");
  const std::vector<Tensor> inputs = {at("f32[4,8]", 0), at("f32[8]", 1024), at("f32[8]", 1088)};
  expect_overlap(OpId::batch_norm1d, inputs, {at("f32[4,8]", 2048), at("f32[8]", 3072), at("f32[8]", 3080)}, "output",
                 &attributes);
  expect_overlap(OpId::batch_norm1d, inputs, {at("f32[4,8]", 2048), at("f32[8]", 2052), at("f32[8]", 3080)}, "output",
                 &attributes);
}

TEST_F(Overlap, NeighboursAndExactPlacesAreTaken) {
  const auto runs = [&](OpId op, const std::vector<Tensor>& in, const Tensor& out) {
    const auto inputs = oracle::pointers(in);
    const Tensor* const outputs[] = {&out};
    EXPECT_NO_THROW(Runtime::global().dispatcher().dispatch(Call{op, inputs, outputs})) << to_string(op);
  };
  runs(OpId::add, {at("f32[64]", 0), at("f32[64]", 1024)}, at("f32[64]", 256));
  runs(OpId::add, {at("f32[64]", 0), at("f32[64]", 1024)}, at("f32[64]", 1024));
  runs(OpId::relu, {at("f32[8,4]{16,1}", 0)}, at("f32[8,4]{16,1}", 16));  // columns side by side
}

}  // namespace
}  // namespace xpuruntime::cpu_tests
