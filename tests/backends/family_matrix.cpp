#include <cmath>

#include "backends/cases.h"
#include "backends/oracle_references.h"

namespace xpuruntime::oracle {
namespace {

// Vectors become matrices with one row or column; the flags speak of the last two extents of matrices.
struct Matrix {
  const Values& values;
  Dims batch = {};
  std::int64_t rows = 1, columns = 1;  // after the flag
  bool transposed = false;

  Matrix(const Values& v, const TensorSpec& spec, bool left, bool flag) : values(v) {
    const Dims& shape = spec.shape;
    if (shape.size() == 1) {
      (left ? columns : rows) = shape[0];
      return;
    }
    transposed = flag;
    batch = Dims(std::span(shape.data(), shape.size() - 2));
    rows = shape[shape.size() - 2];
    columns = shape.back();
    if (flag) std::swap(rows, columns);
  }
  double at(std::int64_t matrix, std::int64_t row, std::int64_t column) const {
    const std::int64_t inside = transposed ? column * rows + row : row * columns + column;
    return values[static_cast<std::size_t>(matrix * rows * columns + inside)];
  }
  /// Which matrix belongs to a position of the joint batch.
  std::int64_t index(const Position& position, const Dims& joint) const {
    std::int64_t index = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      index = index * batch[i] + (batch[i] == 1 ? 0 : position[joint.size() - batch.size() + i]);
    }
    return index;
  }
};

// k products and k - 1 additions in any order, fused or not: one rounding more than a sum of k terms.
Approximate product(const Matrix& a, std::int64_t ma, std::int64_t i, const Matrix& b, std::int64_t mb,
                    std::int64_t j) {
  double sum = 0, size = 0;
  for (std::int64_t p = 0; p < a.columns; ++p) {
    const double term = a.at(ma, i, p) * b.at(mb, p, j);
    sum += term;
    size += std::fabs(term);
  }
  return {sum, (sum_units(static_cast<double>(a.columns)) + 1) * size};
}

// alpha * scale_a * scale_b of one element, and beta * c. Each factor and product is rounded once more, and so are sums
// of integers on their way to floats.
struct Affine {
  const Problem& problem;
  const std::vector<Values>& in;
  std::vector<Broadcast> c = {};

  Affine(const Problem& p, const std::vector<Values>& inputs) : problem(p), in(inputs) {
    if (has(2)) c.emplace_back(in[2], p.inputs[2].shape, p.outputs[0].shape);
  }
  bool has(std::size_t i) const { return i < in.size() && !in[i].empty(); }
  double scale(std::size_t i, std::int64_t line) const {
    if (!has(i)) return 1;
    return in[i][in[i].size() == 1 ? 0 : static_cast<std::size_t>(line)];
  }
  Approximate at(const Position& position, std::int64_t row, std::int64_t column, Approximate sum) const {
    const double factor = problem.attributes.real("alpha") * scale(3, row) * scale(4, column);
    const bool plain = in.size() == 2 && factor == 1;
    Approximate result = {sum.value * factor, sum.slack * std::fabs(factor)};
    if (!plain) result.slack += 6 * std::fabs(result.value);
    const double beta = problem.attributes.real("beta");
    if (c.empty() || beta == 0) return result;
    const double added = beta * c[0].at(position);
    result.value += added;
    result.slack += 2 * std::fabs(added) + std::fabs(result.value);
    return result;
  }
};

std::vector<Answer> solve_matmul(const Problem& problem, const std::vector<Values>& inputs) {
  const Attributes& attributes = problem.attributes;
  const Matrix a(inputs[0], problem.inputs[0], true, attributes.boolean("transpose_a"));
  const Matrix b(inputs[1], problem.inputs[1], false, attributes.boolean("transpose_b"));
  const Dims joint = broadcast_shapes(a.batch, b.batch);
  const Affine affine(problem, inputs);
  Answer out;
  for_each_position(joint, [&](const Position& position) {
    const std::int64_t ma = a.index(position, joint), mb = b.index(position, joint);
    for (std::int64_t i = 0; i < a.rows; ++i) {
      for (std::int64_t j = 0; j < b.columns; ++j) {
        Position at = position;
        std::size_t rank = joint.size();
        if (problem.inputs[0].shape.size() > 1) at[rank++] = i;
        if (problem.inputs[1].shape.size() > 1) at[rank++] = j;
        const Approximate result = affine.at(at, i, j, product(a, ma, i, b, mb, j));
        out.add(result.value, result.slack);
      }
    }
  });
  return {out};
}

std::vector<Answer> solve_linear(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& weight = problem.inputs[1].shape;
  const std::int64_t features = weight[1];
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < problem.inputs[0].shape.size(); ++i) rows *= problem.inputs[0].shape[i];
  const Matrix x(inputs[0], make_spec(DataType::float64, {rows, features}), true, false);
  const Matrix w(inputs[1], problem.inputs[1], false, true);
  const std::string_view activation = problem.attributes.choice("activation");
  Answer out;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < weight[0]; ++j) {
      Approximate sum = product(x, 0, i, w, 0, j);
      if (inputs.size() == 3) {
        const double bias = inputs[2][static_cast<std::size_t>(j)];
        sum.value += bias;
        sum.slack += std::fabs(sum.value) + std::fabs(bias);
      }
      const Approximate result = activation == "none" ? sum : apply_activation(activation, sum);
      out.add(result.value, result.slack);
    }
  }
  return {out};
}

}  // namespace

std::span<const Reference> matrix_references() {
  static constexpr Reference rows[] = {
      {OpId::matmul, solve_matmul, gradients_of_matmul},
      {OpId::linear, solve_linear, gradients_of_linear},
  };
  return rows;
}

}  // namespace xpuruntime::oracle

namespace xpuruntime::cases {
namespace {

std::string dims(std::initializer_list<int> extents) {
  std::string text = "T[";
  for (const int extent : extents) text += (text.size() > 2 ? "," : "") + std::to_string(extent);
  return text + "]";
}

void add_shapes(List& list) {
  struct Shape {
    int m, n, k;
  };
  // Skinny, small, prime, tails around vector and tile widths.
  constexpr Shape shapes[] = {{1, 1, 1},    {1, 64, 128},   {1, 1000, 257}, {2, 3, 5},     {3, 96, 64},
                              {7, 13, 31},  {8, 8, 8},      {9, 15, 17},    {16, 16, 16},  {17, 33, 65},
                              {31, 7, 129}, {33, 1, 63},    {64, 48, 80},   {65, 63, 33},  {5, 1, 9},
                              {1, 1, 517},  {97, 101, 103}, {128, 6, 1},    {4, 257, 255}, {13, 300, 19}};
  for (const auto& [m, n, k] : shapes) {
    for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
      list.add(replaced("matmul(" + dims({m, k}) + ", " + dims({k, n}) + ")", "T", dtype));
      list.add(replaced("matmul(" + dims({m, k}) + ", " + dims({n, k}) + "; transpose_b=true)", "T", dtype));
      list.add(replaced("matmul(" + dims({k, m}) + ", " + dims({k, n}) + "; transpose_a=true)", "T", dtype));
    }
  }
}

void add_matmul(List& list) {
  add_shapes(list);
  list.each({"f32", "f16", "bf16", "f64"},
            {
                "matmul(T[4,8]{1,4}, T[8,6]{12,2})",             // column-major and every other column
                "matmul(T[33,40]{1,33}, T[40,20]{1,40})",        // both column-major
                "matmul(T[17,32]{64,1}, T[32,19]{38,2})",        // rows apart, every other column
                "matmul(T[16,24], T[24,32]) -> T[16,32]{1,16}",  // a column-major result
                "matmul(T[16,24], T[24,32]) -> T[16,32]{64,1}",  // a part of a wider result
                "matmul(T[16,24], T[24,32]) -> T[16,32]{64,2}",
                "matmul(T[24,16], T[32,24]; transpose_a=true transpose_b=true)",
                "matmul(T[3,4,5], T[3,5,6])",
                "matmul(T[8,16,32], T[8,32,16])",
                "matmul(T[8,16,32], T[8,24,32]; transpose_b=true)",
                "matmul(T[4,16,32]{32,128,1}, T[4,32,16])",  // heads inside a row
                "matmul(T[2,1,4,5], T[3,5,6])",              // batch, broadcast
                "matmul(T[5,7,16], T[16,9])",                // one right side for all
                "matmul(T[7,16], T[5,16,9])",
                "matmul(T[3,4,5]{0,5,1}, T[3,5,6])",  // a batch that is one matrix
                "matmul(T[5], T[5,6])",
                "matmul(T[4,5], T[5])",
                "matmul(T[129], T[129])",
                "matmul(T[3,64,33], T[33])",
                "matmul(T[33], T[3,33,20])",
                "matmul(T[0,5], T[5,6])",  // nothing to write
                "matmul(T[4,0], T[0,6])",  // nothing to sum: zeros
                "matmul(T[0,3,4], T[0,4,5])",
                "matmul(T[4,5], T[5,0])",
                "matmul(T[65,63], T[63,33])",  // of bf16, an illegal instruction inside oneDNN 2.6
            });
  list.each({"f32", "f16", "bf16"}, {
                                        "matmul(T[192,200], T[200,180])",  // enough for several threads
                                        "matmul(T[1,1024], T[1024,768])",
                                        "matmul(T[1,768], T[1024,768]; transpose_b=true)",
                                        "matmul(T[4,600], T[700,600]; transpose_b=true)",
                                        "matmul(T[12,64,48], T[12,48,64])",
                                    });
  for (const char* text :
       {"matmul(f32[17,33]/4, f32[33,29]/4) -> f32[17,29]/4", "matmul(f16[17,33]/2, f16[33,29]/2)",
        "matmul(bf16[17,33]/2, bf16[33,29]/2) -> bf16[17,29]/2", "matmul(f64[17,33]/8, f64[33,29]/8)",
        "matmul(f32[16,16]/8, f32[16,16]/8)", "matmul(f32[9,70]/4, f32[40,70]/4; transpose_b=true)"}) {
    list.add(text);
  }
}

void add_mixed(List& list) {
  for (const char* text :
       {"matmul(f16[5,7], f32[7,3])", "matmul(bf16[33,64], f32[64,48])", "matmul(f16[9,16], bf16[16,9])",
        "matmul(f32[9,16], f64[16,9])", "matmul(f32[17,33], f32[33,20]) -> f64[17,20]",
        "matmul(f32[17,33], f32[33,20]) -> bf16[17,20]", "matmul(f32[17,33], f32[33,20]) -> f16[17,20]",
        "matmul(bf16[17,33], bf16[33,20]) -> f32[17,20]", "matmul(f16[17,33], f16[33,20]) -> f32[17,20]",
        "matmul(bf16[1,64], bf16[96,64]; transpose_b=true) -> f32[1,96]", "matmul(f8e4m3[5,16], f8e4m3[16,9])",
        "matmul(f8e5m2[5,16], f8e4m3[16,9])", "matmul(tf32[5,16], tf32[16,9])"}) {
    list.add(text);
  }
  list.each({"i8", "u8"},
            {"matmul(T[5,7], T[7,3])", "matmul(T[1,64], T[64,48])", "matmul(T[33,65], T[65,17])",
             "matmul(T[16,64], T[64,16])", "matmul(T[20,96], T[40,96]; transpose_b=true)",
             "matmul(T[64,20], T[64,31]; transpose_a=true)", "matmul(T[2,9,32], T[2,32,12])",
             "matmul(T[4,8]{1,4}, T[8,6]{12,2})", "matmul(T[4,0], T[0,6])", "matmul(T[0,4], T[4,6])",
             "matmul(T[31,300], T[300,90])", "matmul(T[129], T[129,5])", "matmul(T[256,256], T[256,256])"});
  list.each({"i16", "i32", "i64"}, {"matmul(T[5,7], T[7,3])", "matmul(T[9,33], T[33,17])"});
  list.add("matmul(u8[17,65], i8[65,33])");
  list.add("matmul(i8[17,65], u8[65,33])");
  // Around two tiles of products, with rows and columns that fill no tile: oneDNN 2.6 has illegal instructions there.
  for (const char* k : {"124", "125", "126", "127", "128", "129"}) {
    for (const char* rows : {"65", "200"}) {
      list.add(replaced(replaced("matmul(i8[R,K], i8[K,31])", "K", k), "R", rows));
      list.add(replaced(replaced("matmul(u8[R,K], i8[K,33])", "K", k), "R", rows));
      list.add(replaced(replaced("linear(u8[R,K], i8[15,K])", "K", k), "R", rows));
    }
  }
  for (const char* k : {"61", "62", "63", "64", "65"}) list.add(replaced("matmul(bf16[200,K], bf16[K,31])", "K", k));
  list.add("matmul(i8[17,64], i8[64,32]) -> i64[17,32]");
  list.add("matmul(i8[17,64], i8[64,32]) -> f32[17,32]");
}

/// alpha * (a * scale_a) @ (b * scale_b) + beta * c.
void add_affine(List& list) {
  list.each({"f32", "f16", "bf16", "f64"},
            {
                "matmul(T[17,33], T[33,20]; alpha=0.5)",
                "matmul(T[17,33], T[33,20], T[17,20]; alpha=-2 beta=0.25)",
                "matmul(T[17,33], T[33,20], T[20])",
                "matmul(T[17,33], T[20,33], T[17,1]; transpose_b=true beta=3)",
                "matmul(T[17,33], T[33,20], T[17,20]{1,17}; alpha=0.1) -> T[17,20]{40,2}",
                "matmul(T[17,33], T[33,20], T[17,20]) -> T[17,20]{1,17}",
                "matmul(T[1,70], T[70,300], T[300]; alpha=0.3)",
                "matmul(T[3,9,16], T[3,16,300], T[3,1,300]; alpha=0.3)",
                "matmul(T[2,1,4,5], T[3,5,6], T[3,4,1])",
                "matmul(T[5,7,16], T[16,9], T[5,1,9])",  // batches that are rows of one product
                "matmul(T[5], T[5,6], T[6]; beta=-1)",
                "matmul(T[4,5], T[5], T[4])",
                "matmul(T[9], T[9], T[]; alpha=2)",
                "matmul(T[4,0], T[0,6], T[4,6]; beta=2)",  // nothing but c
                "matmul(T[0,5], T[5,6], T[6])",
                "matmul(T[17,33], T[33,20], none, f32[1], f32[1])",
                "matmul(T[17,33], T[33,20], none, f32[], f32[20])",
                "matmul(T[2,9,16], T[16,7], T[7], none, f32[])",
                "matmul(T[17,33], T[33,20], none, f32[17], f32[20]; alpha=2)",
                "matmul(T[17,33], T[33,20], T[20], none, f32[20]{2})",
                "matmul(T[2,9,16], T[2,16,7], T[9,7], f32[9], f32[1]; beta=0.5)",
                "matmul(T[4,5], T[5], none, f32[4])",
                "matmul(T[5], T[5,4], none, f32[1], f32[4])",
            });
  list.each({"f32", "f16", "bf16"}, {"matmul(T[192,200], T[200,180], T[192,180]; alpha=0.5 beta=2)",
                                     "matmul(T[192,64], T[64,180], none, f32[192], f32[180])"});
  for (const char* text :
       {"matmul(f8e4m3[17,33], f8e4m3[33,20], none, f32[1], f32[1])",
        "matmul(f8e4m3[17,33], f8e5m2[33,20], bf16[20], f32[17], f32[20]) -> bf16[17,20]",
        "matmul(i8[17,64], i8[64,33], none, f32[17], f32[33])",
        "matmul(i8[17,64], i8[64,33], bf16[33], f32[1], f32[33]; beta=0.5) -> bf16[17,33]",
        "matmul(u8[5,130], i8[70,130], none, f32[5], f32[1]; transpose_b=true) -> f16[5,70]",
        "matmul(i8[64,256], i8[256,300], f32[300], f32[64], f32[300])", "matmul(i8[5,7], i8[7,3]; alpha=3)",
        "matmul(i8[5,7], i8[7,3], i32[3]; alpha=3 beta=-2)", "matmul(i32[5,7], i32[7,3], i32[5,3])",
        "matmul(bf16[9,33], bf16[33,20], f32[20])", "matmul(f32[9,33], f32[33,20], bf16[9,20]; alpha=2)",
        "matmul(f32[9,33], f32[33,20], f64[9,20])"}) {
    list.add(text);
  }
}

void add_linear(List& list) {
  for (const char* activation : {"none", "relu", "gelu", "silu"}) {
    const std::string tail = std::string("; activation=") + activation + ")";
    for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
      for (const char* text :
           {"linear(T[1,64], T[96,64], T[96]", "linear(T[17,33], T[65,33], T[65]", "linear(T[2,3,16], T[7,16]",
            "linear(T[64,48], T[80,48], T[80]", "linear(T[5], T[3,5], T[3]", "linear(T[3,257], T[31,257]"}) {
        list.add(replaced(text, "T", dtype) + tail);
      }
    }
  }
  list.each({"f32", "f16", "bf16", "f64"}, {
                                               "linear(T[1,1], T[1,1], T[1])",
                                               "linear(T[0,5], T[7,5], T[7])",
                                               "linear(T[4,0], T[7,0], T[7]; activation=relu)",  // only the bias
                                               "linear(T[4,5], T[0,5], T[0])",
                                               "linear(T[4,16]{1,4}, T[8,16]{1,8}, T[8])",
                                               "linear(T[4,16], T[8,16]{32,2}, T[8]{2}) -> T[4,8]{16,1}",
                                               "linear(T[4,16], T[8,16], T[8]; activation=gelu) -> T[4,8]{1,4}",
                                               "linear(T[2,8,16]{256,16,1}, T[24,16], T[24])",
                                           });
  list.each({"f32", "f16", "bf16"}, {"linear(T[160,200], T[220,200], T[220]; activation=gelu)",
                                     "linear(T[1,1024], T[700,1024], T[700]; activation=silu)"});
  for (const char* text :
       {"linear(f32[9,33]/4, f32[17,33]/4, f32[17]/4; activation=relu) -> f32[9,17]/4",
        "linear(bf16[9,33], bf16[17,33], f32[17])", "linear(bf16[9,33], bf16[17,33], bf16[17]) -> f32[9,17]",
        "linear(f32[9,33], f32[17,33], f32[17]; activation=gelu) -> bf16[9,17]", "linear(f16[9,33], f32[17,33])",
        "linear(i8[9,33], i8[17,33])", "linear(i8[9,33], i8[17,33], i32[17]; activation=relu)",
        "linear(u8[9,64], i8[16,64])", "linear(i32[4,7], i32[5,7], i32[5])", "linear(i16[4,7], i16[5,7], i16[5])",
        "linear(i64[4,7], i64[5,7])"}) {
    list.add(text);
  }
}

}  // namespace

std::vector<CaseText> matrix_cases() {
  List list;
  add_matmul(list);
  add_mixed(list);
  add_affine(list);
  add_linear(list);
  return list.take();
}

Checks matrix_checks() {
  return {
      .small =
          {
              "matmul(T[5,1], T[1,7])",
              "matmul(T[16,64], T[64,24])",
              "matmul(T[3,700], T[700,5])",
              "matmul(T[2,1], T[3,1]; transpose_b=true)",
              "matmul(T[16,64], T[64,24], T[24]; alpha=-0.5 beta=2)",
              "matmul(T[16,1], T[1,24], T[16,24], f32[16], f32[24]; alpha=3)",
              "linear(T[64,1], T[64,1]; activation=silu)",
              "linear(T[9,2], T[8,2], T[8]; activation=gelu)",
              "linear(T[4,100], T[9,100], T[9]; activation=gelu)",
              "linear(T[4,33], T[9,33], T[9]; activation=silu)",
              "linear(T[4,33], T[9,33]; activation=relu)",
              "matmul:backward(T[5,1], T[1,7], T[5,7])",
              "matmul:backward(T[5,30], T[30,70], T[5,70])",
              "linear:backward(T[5,30], T[7,30], T[7], T[5,7]; activation=gelu)",
              "linear:backward(T[5,3], T[7,3], T[7], T[5,7]; activation=relu)",
              "linear:backward(T[64,1], T[9,1], T[64,9]; activation=silu)",
          },
      .gradients =
          {
              "matmul:backward(f64[3,4], f64[4,5], f64[3,5])",
              "matmul:backward(f64[4,3], f64[5,4], f64[3,5]; transpose_a=true transpose_b=true)",
              "matmul:backward(f64[4], f64[4,5], f64[5])",
              "matmul:backward(f64[2,3,4], f64[4], f64[2,3])",
              "matmul:backward(f64[4], f64[4], f64[])",
              "matmul:backward(f64[2,1,3,4], f64[3,4,2], f64[2,3,3,2])",
              "linear:backward(f64[3,4], f64[5,4], f64[5], f64[3,5])",
              "linear:backward(f64[2,3,4], f64[5,4], f64[2,3,5]; activation=gelu)",
              "linear:backward(f64[4], f64[5,4], f64[5], f64[5]; activation=silu)",
              "linear:backward(f64[3,4], f64[5,4], f64[5], f64[3,5]; activation=relu)",
          },
      .mistakes =
          {
              {"matmul(bf16[9,16], bf16[16,8], bf16[9,8]; alpha=2)", "matmul(bf16[9,16], bf16[16,8], bf16[9,8])"},
              {"matmul(bf16[9,16], bf16[16,8], bf16[9,8]; beta=0.5)", "matmul(bf16[9,16], bf16[16,8], bf16[9,8])"},
          },
      .gradient_mistakes =
          {
              {"linear:backward(bf16[9,16], bf16[8,16], bf16[9,8]; activation=gelu)",
               "linear:backward(bf16[9,16], bf16[8,16], bf16[9,8]; activation=silu)"},
          },
  };
}

}  // namespace xpuruntime::cases
