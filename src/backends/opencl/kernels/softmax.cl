// softmax and log_softmax along lines, and their gradients. After lines.cl.

__kernel void softmax(FIRST_PARAM, OUTPUT_PARAM(y), LINE_PARAMS, int logarithm) {
  LINE_BEGIN
  HOLD(-INFINITY)
  Vec most = -INFINITY;
  EACH(i) {
    const Vec score = X(i, -INFINITY);
    most = HIGHER(most, score);
  }
  const Line highest = FOLD_HIGHEST(most);
  Vec total = 0.0f;
#ifdef HELD
  EACH(i) {
    held[k_] -= highest;
    const Vec e = exp_below(held[k_]);
    total += e;
    if (!logarithm) held[k_] = e;
  }
  const Line sum = FOLD_SUM(total);
  const Line log_sum = log(sum), scale = 1.0f / sum;
  EACH(i) STORE_Y(i, logarithm ? held[k_] - log_sum : held[k_] * scale)
#else
  // Floats are kept in y until the sum is known; what is rounded to fewer bits is computed again.
  const bool keeps = !logarithm && y_type == type_f32 && OWNS_LINES;
  EACH(i) {
    const Vec e = exp_below(X(i, -INFINITY) - highest);
    total += e;
    if (keeps) {
      const int y_type = type_f32;
      STORE_Y(i, e)
    }
  }
  const Line sum = FOLD_SUM(total);
  const Line log_sum = log(sum), scale = 1.0f / sum;
  if (logarithm) {
#define LOG_PASS EACH(i) STORE_Y(i, X(i, 0.0f) - highest - log_sum)
    LIKE_X(LOG_PASS)
    LOG_PASS
  } else if (keeps) {
    const int y_type = type_f32;
    EACH(i) STORE_Y(i, LOAD_LINE(f32, (__global const float*)y, y_start + start.at[slot_y], slot_y, i, 0.0f) * scale)
  } else {
#define LAST_PASS EACH(i) STORE_Y(i, exp_below(X(i, 0.0f) - highest) * scale)
    LIKE_X(LAST_PASS)
    LAST_PASS
  }
#endif
}

// What the loss changes by with y = softmax(x), `second` being what it changes by with y.
__kernel void softmax_backward(FIRST_PARAM, SECOND_PARAM, OUTPUT_PARAM(y), LINE_PARAMS, int logarithm) {
  LINE_BEGIN
  HOLD(-INFINITY)
  Vec most = -INFINITY;
  EACH(i) {
    const Vec score = X(i, -INFINITY);
    most = HIGHER(most, score);
  }
  const Line highest = FOLD_HIGHEST(most);
  Vec total = 0.0f, weighted = 0.0f;
  EACH(i) {
    const Vec e = exp_below(X(i, -INFINITY) - highest);
    const Vec g = SECOND(i, 0.0f);
    total += e;
    weighted += logarithm ? g : e * g;
  }
  const Line scale = 1.0f / FOLD_SUM(total);
  const Line sum = FOLD_SUM(weighted);
  EACH(i) {
    const Vec p = exp_below(X(i, 0.0f) - highest) * scale;
    const Vec g = SECOND(i, 0.0f);
    STORE_Y(i, logarithm ? g - p * sum : p * (g - sum * scale))
  }
}
