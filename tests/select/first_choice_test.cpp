#include "select/first_choice.h"

#include <gtest/gtest.h>

namespace xpuruntime {
namespace {

std::shared_ptr<const Kernel> named(const char* name) {
  FunctionKernel kernel{OpId::matmul, name};
  kernel.run = [](const Problem&, const RunArguments&) { return Status(); };
  return make_kernel(std::move(kernel));
}

bool always(const Problem&, const DeviceProfile&) { return true; }
bool contiguous(const Problem& problem, const DeviceProfile&) { return problem.inputs[0].contiguous; }

class First : public ::testing::Test {
 protected:
  struct Row {
    const char* kernel;
    std::uint64_t copied_bytes = 0;
  };
  std::string chosen(const std::vector<Row>& rows, std::vector<BuiltinRule> rules = {}) {
    std::vector<std::shared_ptr<const Kernel>> kernels;
    std::vector<Option> options;
    for (const Row& row : rows) {
      kernels.push_back(named(row.kernel));
      options.push_back({kernels.back().get(), row.copied_bytes == 0 ? &strided : &plain, row.copied_bytes});
    }
    const FirstChoice choice = first_choice(options, rules, DeviceProfile{});
    return choice.option ? rows[*choice.option].kernel : "nothing";
  }

  const Problem plain = parse_problem("matmul(f32[64,64], f32[64,64])");  // 262144 products
  const Problem strided = parse_problem("matmul(f32[64,64]{1,64}, f32[64,64])");
};

TEST_F(First, TakesTheTensorsAsTheyAreBeforeItCopies) {
  EXPECT_EQ(chosen({}), "nothing");
  EXPECT_EQ(chosen({{"a", 100}, {"b"}, {"reference"}}), "b");
  EXPECT_EQ(chosen({{"a", 100}, {"b", 50}, {"reference"}}), "a");
}

TEST_F(First, TheReferenceIsTheLastOfAll) {
  EXPECT_EQ(chosen({{"reference"}, {"a", 100}}), "a");
  EXPECT_EQ(chosen({{"reference"}}), "reference");
  EXPECT_EQ(chosen({{"reference", 100}}), "reference");
  EXPECT_EQ(chosen({{"reference"}, {"a"}}), "reference");  // somebody put it first
}

TEST_F(First, ARuleBringsCopiesInWhereTheWorkOutweighsThem) {
  const std::vector<BuiltinRule> rules = {{OpId::matmul, DeviceType::cpu, always, "fast", "it is fast"},
                                          {OpId::matmul, DeviceType::cpu, always, "direct", "it takes all"}};
  EXPECT_EQ(chosen({{"fast", 4096}, {"direct"}, {"reference"}}, rules), "fast");
  EXPECT_EQ(chosen({{"fast", 4097}, {"direct"}, {"reference"}}, rules), "direct");
  // Without another that a rule knows, the copies are made all the same.
  EXPECT_EQ(chosen({{"fast", 1 << 20}, {"unknown"}, {"reference"}}, rules), "fast");
  EXPECT_EQ(chosen({{"fast", 1 << 20}, {"reference"}}, rules), "fast");
}

TEST_F(First, ConditionsSeeTheProblemAsTheKernelGetsIt) {
  const std::vector<BuiltinRule> rules = {{OpId::matmul, DeviceType::cpu, contiguous, "a", "contiguous"}};
  EXPECT_EQ(chosen({{"a"}, {"b"}}, rules), "a");  // by table order
  EXPECT_EQ(chosen({{"b"}, {"a"}}, rules), "b");
  EXPECT_EQ(chosen({{"b"}, {"a", 100}}, rules), "a");
}

}  // namespace
}  // namespace xpuruntime
