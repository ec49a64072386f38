// cross_entropy and nll_loss, and their gradients; lines go along the classes. After lines.cl. Targets are classes, or
// where their type is one of floats a probability for each class.

#ifdef ROWS
#define LINES_HERE 1
#define OF_LINE(value, j) (value)
#define FINISHES (there && lane == 0)
#define MASKED(i, v) (WHOLE(i) ? (v) : masked(v, length - (i)))
#if WIDTH > 1
Vec masked(Vec v, int count) {
  PRIVATE_VECTOR(float, values);
  *(Vec*)values = v;
  for (int j = count; j < WIDTH; ++j) values[j] = 0.0f;
  return *(Vec*)values;
}
#else
#define masked(v, count) (v)
#endif
#else
#define LINES_HERE WIDTH
#define OF_LINE(value, j) (((const float*)&value)[j])
#define FINISHES true
#define MASKED(i, v) (v)
#endif

#define CLASS_PARAMS                                                                                     \
  FIRST_PARAM, PARAMETER_PARAM(target), PARAMETER_PARAM(weight), OUTPUT_PARAM(y), __global float *pairs, \
      ulong pairs_start, __global uint *fault, LINE_PARAMS, long classes, long ignore_index, float smoothing

#define HAS_PROBABILITIES (target_type <= type_bf16)
#define LAST_STEP(slot) ((ulong)across.stride[slot][0])

// The class that target j of these lines names. One that is none is reported, and does not count.
typedef struct {
  long number;
  float weight;
  bool counts, wrong;
} Class;

#define CLASS_OF(j)                                                                                               \
  class_of(target, target_type, target_start + start.at[slot_second] + (ulong)(j)*LAST_STEP(slot_second), weight, \
           weight_type, weight_start, (ulong)along.stride[slot_weight][0], classes, ignore_index, fault)

Class class_of(__global const void* target, int target_type, ulong at, __global const void* weight, int weight_type,
               ulong weight_start, ulong weight_step, long classes, long ignore_index, __global uint* fault) {
  Class own;
  own.number = load_integer(target, target_type, at);
  own.wrong = own.number != ignore_index && (own.number < 0 || own.number >= classes);
  own.counts = own.number != ignore_index && !own.wrong;
  own.weight = own.counts ? load_as(weight, weight_type, weight_start + (ulong)own.number * weight_step, 1.0f) : 0.0f;
  if (own.wrong) *fault = 1;
  return own;
}

#define HIGHEST_AND_SUM                            \
  Vec most = -INFINITY;                            \
  EACH(i) {                                        \
    const Vec score = X(i, -INFINITY);             \
    most = HIGHER(most, score);                    \
  }                                                \
  const Line highest = FOLD_HIGHEST(most);         \
  Vec total = 0.0f;                                \
  EACH(i) total += exp(X(i, -INFINITY) - highest); \
  const Line sum = FOLD_SUM(total);

// What class i gets of a target, but for a target's own class: smoothing, and what probabilities say.
#define SHARE(i)                                                                                          \
  (LOAD_PARAMETER(weight, slot_weight, i, 1.0f) *                                                         \
   (HAS_PROBABILITIES                                                                                     \
        ? LOAD_LINE_AS(target, target_type, target_start + start.at[slot_second], slot_second, i, 0.0f) * \
                  (1.0f - smoothing) +                                                                    \
              even                                                                                        \
        : (Vec)(even)))

// Loss and weight of each target go to `pairs`, or the loss to y.
#define STORE_LOSS(j, loss, counted, wrong)                                               \
  if (pairs_used) {                                                                       \
    pairs[pairs_start + 2 * (ulong)(line + j)] = wrong ? NAN : loss;                      \
    pairs[pairs_start + 2 * (ulong)(line + j) + 1] = wrong ? NAN : counted;               \
  } else if (!wrong) {                                                                    \
    store_as(y, y_type, y_start + start.at[slot_y] + (ulong)(j)*LAST_STEP(slot_y), loss); \
  }

__kernel void cross_entropy(CLASS_PARAMS, int pairs_used) {
  LINE_BEGIN
  HOLD(-INFINITY)
  HIGHEST_AND_SUM
  const Line log_sum = log(sum);
  const float even = smoothing / (float)classes;
  Vec shared_out = 0.0f;
  if (HAS_PROBABILITIES || smoothing != 0.0f) {
    EACH(i) shared_out += MASKED(i, SHARE(i) * (log_sum - (X(i, 0.0f) - highest)));
  }
  const Line spread = FOLD_SUM(shared_out);
  if (!(FINISHES)) return;
  for (int j = 0; j < LINES_HERE; ++j) {
    if (HAS_PROBABILITIES) {
      STORE_LOSS(j, OF_LINE(spread, j), 1.0f, false)
    } else {
      const Class own = CLASS_OF(j);
      float loss = 0.0f;
      if (own.counts) {
        const float score = LOAD(A_TYPE)(x, x_start + start.at[slot_x] + (ulong)j * LAST_STEP(slot_x) +
                                                (ulong)(own.number * along.stride[slot_x][0]));
        loss = own.weight * (1.0f - smoothing) * (OF_LINE(log_sum, j) - (score - OF_LINE(highest, j)));
        if (smoothing != 0.0f) loss += OF_LINE(spread, j);
      }
      STORE_LOSS(j, loss, own.weight, own.wrong)
    }
  }
}

// What the loss changes by with the scores: (sum of the shares) * softmax - share, times the gradient of a target's
// loss. That of a mean is divided by the second of `divisor` where it is `weighted`.
__kernel void cross_entropy_backward(CLASS_PARAMS, PARAMETER_PARAM(gradient), __global const float* divisor,
                                     ulong divisor_start, int weighted, float fixed_divisor) {
  LINE_BEGIN
  HOLD(-INFINITY)
  HIGHEST_AND_SUM
  const float even = smoothing / (float)classes;
  Vec shared_out = 0.0f;
  EACH(i) shared_out += MASKED(i, SHARE(i));
  const Line shares = FOLD_SUM(shared_out);
  Line factor, all;
  float factors[LINES_HERE], sums[LINES_HERE];
  for (int j = 0; j < LINES_HERE; ++j) {
    const float g = load_as(gradient, gradient_type,
                            gradient_start + start.at[slot_other] + (ulong)j * LAST_STEP(slot_other), 0.0f);
    factors[j] = g / (weighted ? divisor[divisor_start + 1] : fixed_divisor);
    sums[j] = OF_LINE(shares, j);
    if (!HAS_PROBABILITIES) {
      const Class own = CLASS_OF(j);
      sums[j] += (1.0f - smoothing) * own.weight;
      if (!own.counts) factors[j] = sums[j] = 0.0f;
    }
  }
#if defined(ROWS) || WIDTH == 1
  factor = factors[0];
  all = sums[0];
#else
  factor = JOIN(vload, WIDTH)(0, factors);
  all = JOIN(vload, WIDTH)(0, sums);
#endif
  // Targets that do not count have a factor of 0 that would make NaN of infinities.
  EACH(i) {
    const Vec p = exp(X(i, -INFINITY) - highest) / sum;
    const Vec slope = factor * (all * p - SHARE(i));
    STORE_Y(i, factor == 0.0f && all == 0.0f ? (Vec)(0.0f) : slope)
  }
  if (HAS_PROBABILITIES) return;
  for (int j = 0; j < LINES_HERE; ++j) {
    const Class own = CLASS_OF(j);
    const int i = (int)own.number;
#ifdef ROWS
    // By the item that stored the slope of this class.
    if (!there || !own.counts || i / WIDTH % lanes != lane) continue;
#else
    if (!own.counts) continue;
#endif
    const float score = LOAD(A_TYPE)(
        x, x_start + start.at[slot_x] + (ulong)j * LAST_STEP(slot_x) + (ulong)(own.number * along.stride[slot_x][0]));
    const float p = exp(score - OF_LINE(highest, j)) / OF_LINE(sum, j);
    const float share = own.weight * ((1.0f - smoothing) + even);
    store_as(y, y_type,
             y_start + start.at[slot_y] + (ulong)j * LAST_STEP(slot_y) + (ulong)(own.number * along.stride[slot_y][0]),
             factors[j] * (sums[j] * p - share));
  }
}

// An item has one target.
#define TARGET_BEGIN                        \
  const long line = (long)get_global_id(0); \
  if (line >= across.count) return;         \
  const Places start = places_of(across, line);

#ifndef ROWS
__kernel void nll_loss(CLASS_PARAMS, int pairs_used) {
  TARGET_BEGIN
  const Class own = CLASS_OF(0);
  float loss = 0.0f;
  if (own.counts)
    loss = -own.weight * LOAD(A_TYPE)(x, x_start + start.at[slot_x] + (ulong)(own.number * along.stride[slot_x][0]));
  STORE_LOSS(0, loss, own.weight, own.wrong)
}

// Zeros, but for the targets' own.
__kernel void nll_loss_backward(CLASS_PARAMS, PARAMETER_PARAM(gradient), __global const float* divisor,
                                ulong divisor_start, int weighted, float fixed_divisor) {
  TARGET_BEGIN
  const Class own = CLASS_OF(0);
  const float g = load_as(gradient, gradient_type, gradient_start + start.at[slot_other], 0.0f);
  const float slope = -own.weight * (g / (weighted ? divisor[divisor_start + 1] : fixed_divisor));
  for (long i = 0; i < classes; ++i)
    store_as(y, y_type, y_start + start.at[slot_y] + (ulong)(i * along.stride[slot_y][0]),
             own.counts && i == own.number ? slope : 0.0f);
}

// The weight of each target, for the divisor of a gradient.
__kernel void target_weights(CLASS_PARAMS) {
  TARGET_BEGIN
  const Class own = CLASS_OF(0);
  pairs[pairs_start + 2 * (ulong)line] = 0.0f;
  pairs[pairs_start + 2 * (ulong)line + 1] = own.weight;
}
#endif
