#include "core/matmul_shape.h"

#include <gtest/gtest.h>

#include "xpuruntime/core/problem.h"

namespace xpuruntime {
namespace {

MatmulShape shape_of(const char* text) { return matmul_shape(parse_problem(text)); }

TEST(MatmulShape, TurnsTransposesIntoStrides) {
  const MatmulShape plain = shape_of("matmul(f32[2,3], f32[3,5])");
  EXPECT_EQ(plain.a.row, 3);
  EXPECT_EQ(plain.a.column, 1);
  const MatmulShape shape = shape_of("matmul(f32[3,2], f32[5,3]; transpose_a=true transpose_b=true)");
  EXPECT_EQ(shape.m, 2);
  EXPECT_EQ(shape.n, 5);
  EXPECT_EQ(shape.k, 3);
  EXPECT_EQ(shape.a.row, 1);
  EXPECT_EQ(shape.a.column, 2);
  EXPECT_EQ(shape.b.row, 1);
  EXPECT_EQ(shape.b.column, 3);
}

TEST(MatmulShape, GivesVectorsTheDimensionTheyLack) {
  const MatmulShape row = shape_of("matmul(f32[3], f32[3,5])");
  EXPECT_EQ(row.m, 1);
  EXPECT_EQ(row.n, 5);
  EXPECT_EQ(row.k, 3);
  EXPECT_EQ(row.c.column, 1);
  const MatmulShape column = shape_of("matmul(f32[2,3], f32[3])");
  EXPECT_EQ(column.m, 2);
  EXPECT_EQ(column.n, 1);
  EXPECT_EQ(column.b.row, 1);
  EXPECT_EQ(column.c.row, 1);
}

TEST(MatmulShape, JoinsBatchDimsThatOneStrideWalks) {
  const MatmulShape joined = shape_of("matmul(f32[2,3,4,5], f32[2,3,5,6])");
  EXPECT_EQ(joined.batch_dims, 1);
  EXPECT_EQ(joined.batch_count, 6);
  EXPECT_EQ(joined.a.batch[0], 20);
  EXPECT_EQ(joined.b.batch[0], 30);
  EXPECT_EQ(joined.c.batch[0], 24);
}

TEST(MatmulShape, KeepsApartWhatIsBroadcast) {
  const MatmulShape shape = shape_of("matmul(f32[2,1,4,5], f32[3,5,6])");
  ASSERT_EQ(shape.batch_dims, 2);
  EXPECT_EQ(shape.batch_count, 6);
  // Batch 5 is (1,2): the second of a, the third of b.
  EXPECT_EQ(batch_offset(shape, shape.a, 5), 20);
  EXPECT_EQ(batch_offset(shape, shape.b, 5), 60);
  EXPECT_EQ(batch_offset(shape, shape.c, 5), 120);
}

TEST(MatmulShape, ReadsLinearAsAProductOfRows) {
  const MatmulShape shape = product_shape(parse_problem("linear(f32[2,3,5], f32[7,5]{1,7}) -> f32[2,3,7]{24,8,1}"));
  EXPECT_EQ(shape.m, 6);
  EXPECT_EQ(shape.n, 7);
  EXPECT_EQ(shape.k, 5);
  EXPECT_EQ(shape.batch_dims, 0);
  EXPECT_EQ(shape.batch_count, 1);
  EXPECT_EQ(shape.a.row, 5);
  EXPECT_EQ(shape.b.row, 7);
  EXPECT_EQ(shape.b.column, 1);
  EXPECT_EQ(shape.c.row, 8);
}

TEST(MatmulShape, MakesRowsOfBatchesThatShareTheRightSide) {
  const MatmulShape shared = product_shape(parse_problem("matmul(f32[4,2,3], f32[3,5])"));
  EXPECT_EQ(shared.m, 8);
  EXPECT_EQ(shared.batch_count, 1);
  const MatmulShape apart = product_shape(parse_problem("matmul(f32[4,2,3]{12,3,1}, f32[3,5])"));
  EXPECT_EQ(apart.m, 2);
  EXPECT_EQ(apart.batch_count, 4);
  const MatmulShape vectors = product_shape(parse_problem("linear(f32[4,1,3]{12,3,1}, f32[5,3])"));
  EXPECT_EQ(vectors.m, 4);
  EXPECT_EQ(vectors.a.row, 12);
}

}  // namespace
}  // namespace xpuruntime
