#include <cmath>

#include "backends/cuda_fixture.h"
#include "backends/oracle.h"
#include "xpuruntime/runtime/runtime.h"

// Ops that read where indices say, arrange elements along dims or find places: sizes and layouts that decide how they
// are computed, beyond those of the conformance suite.

namespace xpuruntime::cuda_tests {
namespace {

using CudaIndexing = CudaTest;

/// Against float64, by the kernel named, with `T` for several dtypes.
void expect_right(std::initializer_list<const char*> texts, const std::string& kernel) {
  Runtime& runtime = Runtime::global();
  for (const char* text : texts) {
    for (const char* dtype : {"f32", "bf16", "f64", "i8"}) {
      const std::string problem = with_dtype(text, dtype);
      KernelPolicy policy;
      policy.force(to_string(parse_problem(problem).op), kernel);
      const ScopedPolicy scope(runtime.dispatcher(), policy);
      const auto run = oracle::case_of(problem, {DeviceType::nvidia, 0});
      const oracle::Result result = run->through(runtime);
      EXPECT_EQ(result.kernel, kernel);
      EXPECT_EQ(run->compare(result), "") << problem;
    }
  }
}

TEST_F(CudaIndexing, ArrangesByVectorsAndByElements) {
  expect_right(
      {"pad(T[30,64], T[]; pads=16,32,1,2)", "pad(T[30,64]; pads=-16,48)", "pad(T[4,64]; pads=16,16 mode=wrap)",
       "pad(T[3,50,64]; pads=0,0,70,9 mode=reflect)", "pad(T[3,50,64]; pads=0,0,2,1 mode=replicate)",
       "pad(T[64,96]{1,64}; pads=0,0,16,16) -> T[96,96]{1,96}", "pad(T[30,64]/8; pads=16,16)",
       "pad(T[300,333], T[]; pads=1,1,1,1)", "tile(T[6,48]; repeats=2,3)", "tile(T[1,64]; repeats=70,2)",
       "tile(T[7,3]; repeats=50,60)", "trilu(T[3,100,96]; diagonal=-5 upper=false)",
       "trilu(T[96,112]{1,96}; diagonal=3) -> T[96,112]{1,96}", "trilu(T[48,12,20]{1,960,48}) -> T[48,12,20]{1,960,48}",
       "flip(T[40,64]; dims=0)", "flip(T[7,40,64]; dims=0,1)", "flip(T[300,333])", "flip(T[100,64]{1,100}; dims=0)"},
      "copy");
  expect_right(
      {"gather(T[50,96], i32[700])", "gather(T[3,50,96], i64[7,2]; dim=1)", "gather(T[50,96]/8, i64[9]) -> T[9,96]/8",
       "gather(T[90,50], i16[70]; dim=1)", "gather(T[64,50]{1,64}, i64[9]; dim=1) -> T[64,9]{1,64}",
       "gather_nd(T[9,8,64], i64[20,2])", "gather_elements(T[300,70], i64[200,70])"},
      "rows");
  expect_right({"arg_max(T[100003])", "arg_min(T[3,70001]; select_last_index=true)", "arg_max(T[5000,40]; dim=0)",
                "arg_max(T[70001,5])", "arg_min(T[70,300,12]; dim=1)", "arg_max(T[2,9000,130]; dim=1)",
                "arg_max(T[9,300,300]; dim=1)"},
               "reduce");
}

TEST_F(CudaIndexing, AWrongIndexOfAGatherIsReportedAndNothingOfItWritten) {
  for (const char* text :  // by vectors and by elements
       {"gather(f32[10,8], i64[4])", "gather(f32[10,7], i32[4])", "gather_elements(f32[10,7], i64[4,7])"}) {
    Launch launch(problem_of(text), "rows");
    ASSERT_TRUE(launch.verdict().supported) << launch.verdict().reason;
    launch.fill(random());
    const std::int64_t indices[] = {3, 10, -10, -11};
    for_each_index(launch.input(1).spec().shape,
                   [&](const Dims& at) { launch.input(1).set(at, static_cast<double>(indices[at[0]])); });
    const Status status = launch.run();
    EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(status.message(), std::string(text) + " @cuda:0: an index is outside its dim; give -10 to 9");
    EXPECT_TRUE(launch.output().margins_untouched());
    for_each_index(launch.output().spec().shape, [&](const Dims& at) {
      SCOPED_TRACE(std::string(text) + " at " + to_string(at));
      if (at[0] % 2 == 1) {
        EXPECT_TRUE(std::isnan(launch.output().at(at)));
      } else {
        EXPECT_EQ(launch.output().at(at), launch.input(0).at({at[0] == 0 ? 3 : 0, at[1]}));
      }
    });
    EXPECT_TRUE(driver().synchronize(0, {}).ok());
  }
}

}  // namespace
}  // namespace xpuruntime::cuda_tests
