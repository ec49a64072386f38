// Norms of lines, and their gradients. After lines.cl.

// Sums of rows of over 65536 elements are sums of sums, which keep more digits.
#ifdef LONG_SUMS
#define BEGIN_SUM(total)                 \
  Vec total = 0.0f, total##_part = 0.0f; \
  int total##_terms = 0;
#define ADD_TO(total, term)        \
  {                                \
    total##_part += term;          \
    if (++total##_terms == 256) {  \
      total += total##_part;       \
      total##_part = 0.0f;         \
      total##_terms = 0;           \
    }                              \
  }
#define END_SUM(total) total += total##_part;
#else
#define BEGIN_SUM(total) Vec total = 0.0f;
#define ADD_TO(total, term) total += term;
#define END_SUM(total)
#endif

// One over the root of the mean of squared distances from the mean. Past the end of a row, `term` is the mean.
#define SCALE_OF(term)                      \
  BEGIN_SUM(squares)                        \
  EACH(i) {                                 \
    const Vec distance = (term)-mean;       \
    ADD_TO(squares, distance * distance)    \
  }                                         \
  END_SUM(squares)                          \
  const Line scale = 1.0f / sqrt(FOLD_SUM(squares) / (float)along.count + eps);

#define MEAN_OF_X                        \
  BEGIN_SUM(total)                       \
  EACH(i) { ADD_TO(total, X(i, 0.0f)) }  \
  END_SUM(total)                         \
  const Line mean = FOLD_SUM(total) / (float)along.count;

__kernel void layer_norm(FIRST_PARAM, OUTPUT_PARAM(y), PARAMETER_PARAM(weight), PARAMETER_PARAM(bias), LINE_PARAMS,
                         float eps) {
  LINE_BEGIN
  HOLD(0.0f)
  MEAN_OF_X
  SCALE_OF(X(i, mean))
#define LAYER_PASS                                                                                \
  EACH(i) {                                                                                       \
    const Vec factor = LOAD_PARAMETER(weight, slot_weight, i, 1.0f);                              \
    STORE_Y(i, (X(i, 0.0f) - mean) * scale * factor + LOAD_PARAMETER(bias, slot_other, i, 0.0f))  \
  }
  ALL_IN_F32(weight_type == type_f32 && bias_type == type_f32 && y_type == type_f32, LAYER_PASS)
  LAYER_PASS
}

__kernel void rms_norm(FIRST_PARAM, OUTPUT_PARAM(y), PARAMETER_PARAM(weight), LINE_PARAMS, float eps) {
  LINE_BEGIN
  HOLD(0.0f)
  const Line mean = 0.0f;
  SCALE_OF(X(i, 0.0f))
#define RMS_PASS EACH(i) STORE_Y(i, X(i, 0.0f) * scale * LOAD_PARAMETER(weight, slot_weight, i, 1.0f))
  ALL_IN_F32(weight_type == type_f32 && y_type == type_f32, RMS_PASS)
  RMS_PASS
}

// What is normalised is the sum as it is stored; an item that does not hold it reads back what it wrote. Outputs may
// lie over inputs.
__kernel void add_rms_norm(FIRST_PARAM, SECOND_PARAM, OUTPUT_PARAM(y), OUTPUT_PARAM(sum), PARAMETER_PARAM(weight),
                           LINE_PARAMS, float eps) {
  LINE_BEGIN
  const Line mean = 0.0f;
  const ulong sum_at = sum_start + start.at[slot_other];
#ifdef HELD
  Vec held[HELD];
  EACH(i) held[k_] = LOAD_LINE(A_TYPE, x, x_start + start.at[slot_x], slot_x, i, 0.0f) + SECOND(i, 0.0f);
  EACH(i) {
    STORE_LINE(sum, sum_type, sum_at, slot_other, i, held[k_])
    held[k_] = rounded_as(sum_type, held[k_]);
  }
#define SUM(i) held[k_]
#else
  EACH(i)
  STORE_LINE(sum, sum_type, sum_at, slot_other, i, X(i, 0.0f) + SECOND(i, 0.0f))
#define SUM(i) LOAD_LINE_AS(sum, sum_type, sum_at, slot_other, i, 0.0f)
#endif
  SCALE_OF(SUM(i))
  EACH(i) STORE_Y(i, SUM(i) * scale * LOAD_PARAMETER(weight, slot_weight, i, 1.0f))
}

// x / max(norm, eps). `kind` is p where that is 0, 1 or 2; 3: the largest size; 4: any p.
__kernel void normalize_lines(FIRST_PARAM, OUTPUT_PARAM(y), LINE_PARAMS, int kind, float p, float eps) {
  LINE_BEGIN
  HOLD(0.0f)
  BEGIN_SUM(total)
  if (kind == 3) {
    // In the order of floats as integers, where a NaN is above all.
    EACH(i) total = AS_FLOATS(max(AS_INTS(total), AS_INTS(fabs(X(i, 0.0f)))));
  } else {
    EACH(i) {
      const Vec size = fabs(X(i, 0.0f));
      const Vec term = kind == 0   ? (size == 0.0f ? (Vec)(0.0f) : (Vec)(1.0f))
                       : kind == 1 ? size
                       : kind == 2 ? size * size
                                   : pow(size, (Vec)(p));
      ADD_TO(total, term)
    }
  }
  END_SUM(total)
  const Line sum = FOLD_SUM(total), largest = FOLD_HIGHEST(total);  // which is never a NaN
  const Line norm = kind == 2   ? sqrt(sum)
                    : kind == 3 ? (sum != sum ? sum : largest)
                    : kind == 4 ? pow(sum, (Line)(1.0f / p))
                                : sum;
  const Line divisor = norm < eps ? (Line)(eps) : norm;
  EACH(i) STORE_Y(i, X(i, 0.0f) / divisor)
}

// With the normalised n = (x - mean) * scale and `second` what the loss changes by with the result, h = second *
// weight: what it changes by with x is scale * (h - mean of h - n * mean of h * n), the first mean only where lines are
// centred. Mean and scale of each line are left in `stats` for norm_parameters.
__kernel void norm_backward(FIRST_PARAM, SECOND_PARAM, OUTPUT_PARAM(y), PARAMETER_PARAM(weight), __global float* stats,
                            ulong stats_start, LINE_PARAMS, int centred, float eps) {
  LINE_BEGIN
  HOLD(0.0f)
  Vec total = 0.0f;
  EACH(i) total += X(i, 0.0f);
  const Line mean = FOLD_SUM(total) / (float)along.count * (centred ? 1.0f : 0.0f);
  SCALE_OF(X(i, mean))
  Vec plain = 0.0f, crossed = 0.0f;
  EACH(i) {
    const Vec h = SECOND(i, 0.0f) * LOAD_PARAMETER(weight, slot_weight, i, 1.0f);
    plain += h;
    crossed += h * ((X(i, 0.0f) - mean) * scale);
  }
  const Line level = FOLD_SUM(plain) / (float)along.count * (centred ? 1.0f : 0.0f);
  const Line slope = FOLD_SUM(crossed) / (float)along.count;
  EACH(i) {
    const Vec h = SECOND(i, 0.0f) * LOAD_PARAMETER(weight, slot_weight, i, 1.0f);
    STORE_Y(i, scale * (h - level - (X(i, 0.0f) - mean) * scale * slope))
  }
  STORE_OF_LINE(stats, stats_start + (ulong)line, mean)
  STORE_OF_LINE(stats, stats_start + (ulong)(across.count + line), scale)
}

// What the loss changes by with the weight and the bias, summed over a part of the lines: an item has one vector of a
// line, or one element where lines are no rows. `sums` is [2, parts, length].
__kernel void norm_parameters(FIRST_PARAM, SECOND_PARAM, __global const float* stats, ulong stats_start,
                              __global float* sums, ulong sums_start, Nest across, Nest along, long parts,
                              long part_lines) {
#ifdef ROWS
#define STEP WIDTH
#else
#define STEP 1
#endif
  const int length = (int)along.count;
  const long blocks = (length + STEP - 1) / STEP;
  const long item = (long)get_global_id(0);
  if (item >= blocks * parts) return;
  const long part = item / blocks;
  const int i = (int)(item % blocks) * STEP;
  const bool rest_ = i + STEP > length;  // of WHOLE
  const long end = min((part + 1) * part_lines, across.count);
  Vec weights = 0.0f, biases = 0.0f;
  for (long line = part * part_lines; line < end; ++line) {
    const Places start = places_of(across, line);
    const float mean = stats[stats_start + (ulong)line];
    const float scale = stats[stats_start + (ulong)(across.count + line)];
    const Vec g = SECOND(i, 0.0f);
    weights += g * ((LOAD_LINE(A_TYPE, x, x_start + start.at[slot_x], slot_x, i, 0.0f) - mean) * scale);
    biases += g;
  }
  const ulong to = sums_start + (ulong)(part * length);
  const ulong second_sums = (ulong)(parts * length);
#ifdef ROWS
  STORE_LINE(sums, type_f32, to, 0, i, weights)
  STORE_LINE(sums, type_f32, to + second_sums, 0, i, biases)
#else
  sums[to + (ulong)i] = FIRST_OF(weights);
  sums[to + second_sums + (ulong)i] = FIRST_OF(biases);
#endif
}
