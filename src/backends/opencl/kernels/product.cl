// What every matrix product shares; comes before its source. The host has the same structs (product.h).

typedef struct {
  long row;
  long column;
  long batch[6];
} Walk;

// c[m,n] = finished(sum over k of a[m,k] * b[k,n]), for each batch index.
typedef struct {
  long m;
  long n;
  long k;
  long k_total;  // where the first batch dim is parts of k, all of them: the last may be shorter; else 0
  long count;    // of batches
  long rank;     // batch dims
  long extent[6];
  Walk a;
  Walk b;
  Walk c;
  Walk d;
} Product;

// What becomes of a sum: activation(alpha * scale of the row * scale of the column * sum + beta * d).
typedef struct {
  long row_scale_stride;
  long column_scale_stride;
  float alpha;
  float beta;      // 0: d is not read
  int activation;  // 0 none, 1 relu, 2 gelu, 3 silu
  int scaled;      // 1: by rows, 2: by columns
} Finish;

typedef struct {
  ulong a;
  ulong b;
  ulong c;
  ulong d;
} BatchStart;

BatchStart batch_start(const Product* p, long batch) {
  BatchStart at = {0, 0, 0, 0};
  for (long dim = p->rank - 1; dim >= 0; --dim) {
    const long rest = batch / p->extent[dim];
    const long here = batch - rest * p->extent[dim];
    at.a += (ulong)(here * p->a.batch[dim]);
    at.b += (ulong)(here * p->b.batch[dim]);
    at.c += (ulong)(here * p->c.batch[dim]);
    at.d += (ulong)(here * p->d.batch[dim]);
    batch = rest;
  }
  return at;
}

// How many terms the sums of this batch index have.
long terms_of(const Product* p, long batch) {
  if (p->k_total == 0) return p->k;
  const long part = batch / (p->count / p->extent[0]);
  return clamp(p->k_total - part * p->k, 0L, p->k);
}

float product_activation(float x, int activation) {
  if (activation == 1) return x <= 0.0f ? 0.0f : x;  // NaN stays
  if (activation == 2) return x * phi_of(x);
  if (activation == 3) return x * sigmoid_of(x);
  return x;
}

#ifdef D_TYPE
#define FINISH_PARAMETERS                                                                                \
  __global const STORAGE(D_TYPE) * d, ulong d_start, __global const float *row_scale, ulong row_start,   \
      __global const float *column_scale, ulong column_start, Finish finish
#define FINISH_ARGUMENTS d, d_start, row_scale, row_start, column_scale, column_start, finish

// `at` is where that element of d is.
float finished(float sum, long row, long column, ulong at, FINISH_PARAMETERS) {
  float value = finish.alpha * sum;
  if (finish.scaled & 1) value *= row_scale[row_start + (ulong)(row * finish.row_scale_stride)];
  if (finish.scaled & 2) value *= column_scale[column_start + (ulong)(column * finish.column_scale_stride)];
  if (finish.beta != 0.0f) value += finish.beta * LOAD(D_TYPE)(d, d_start + at);
  return product_activation(value, finish.activation);
}

bool is_plain(Finish finish) {
  return finish.alpha == 1.0f && finish.beta == 0.0f && finish.activation == 0 && finish.scaled == 0;
}
#endif
