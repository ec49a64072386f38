// The highest, or with AVERAGE the mean, under windows. After vectors.cl. Vectors are of outputs side by side in a row,
// or with pool_channels of channels. What lies in the padding is not visited.

// Depth, height and width. The host has the same struct (pool.cpp).
typedef struct {
  long in[3], kernel_size[3], out[3], stride[3], padding[3], dilation[3], x_step[3], y_step[3];
} Window;

#ifdef INTEGER
typedef long Value;
typedef long ValueVec;
#define X_PARAM __global const void *x, ulong x_start, int x_type
#define NEUTRAL LONG_MIN
#define FOLD(a, b) HIGHER(a, b)
#define TERM(i) load_integer(x, x_type, i)
#define TERMS(i) TERM(i)
#define EVEN_TERMS(i) TERM(i)
#else
#define X_PARAM __global const STORAGE(A_TYPE) * x, ulong x_start, int x_type
#ifdef AVERAGE
typedef float Value;
typedef Vec ValueVec;
#define NEUTRAL 0.0f
#define FOLD(a, b) ((a) + (b))
#define TERM_OF(v) (v)
#define TERMS_OF(v) (v)
#else
typedef int Value;
typedef IntVec ValueVec;
#define NEUTRAL LOWEST_ORDER
#define FOLD(a, b) HIGHER(a, b)
#define TERM_OF(v) order_of_one(v)
#define TERMS_OF(v) order_of(v)
#endif
#define TERM(i) TERM_OF(LOAD(A_TYPE)(x, i))
#define TERMS(i) TERMS_OF(LOADS(A_TYPE)(x, i))
#if WIDTH == 1
#define EVEN_TERMS(i) TERMS(i)
#else
#define EVEN_TERMS(i) TERMS_OF((Vec)(LOADS(A_TYPE)(x, i).even, LOADS(A_TYPE)(x, (i) + WIDTH).even))
#endif
#endif

#if defined(INTEGER)
#define STORE_VALUE(to, value) store_integer(y, y_type, to, value)
#elif defined(AVERAGE)
#define STORE_VALUE(to, value) store_as(y, y_type, to, (value) / count)
#define STORE_VALUES(to, values) stores_as(y, y_type, to, (values) / count)
#else
#define STORE_VALUE(to, value) store_as(y, y_type, to, value_of_order(value))
#define STORE_VALUES(to, values) stores_as(y, y_type, to, values_of_order(values))
#endif

// The taps of a window along one dim that lie in the input, and what a mean divides by for it.
typedef struct {
  long from;  // of the first tap
  int taps;
  int counted;
} Range;

// Rounded up, so that the largest step does not overflow.
long steps_in(long length, long step) { return step == 1 ? length : (length - 1) / step + 1; }

Range range_of(Window w, int d, long o, int counts_padding) {
  const long begin = o * w.stride[d] - w.padding[d];
  const long skipped = begin < 0 ? steps_in(-begin, w.dilation[d]) : 0;
  Range range;
  range.from = begin + skipped * w.dilation[d];
  const long met = range.from < w.in[d] ? steps_in(w.in[d] - range.from, w.dilation[d]) : 0;
  range.taps = (int)max(min(w.kernel_size[d] - skipped, met), 0L);
  // A last window may reach past the padding: what lies there never counts. Means have no dilation.
  const long end = min(begin + w.kernel_size[d], w.in[d] + w.padding[d]);
  range.counted = (int)(counts_padding ? end - begin : min(end, w.in[d]) - max(begin, 0L));
  return range;
}

#define EACH_TAP(z, y, x, body)                                                     \
  {                                                                                 \
    const ulong x_next = (ulong)(w.dilation[2] * w.x_step[2]);                      \
    ulong slice = plane + (ulong)((z).from * w.x_step[0]);                          \
    for (int a = 0; a < (z).taps; ++a) {                                            \
      ulong row = slice + (ulong)((y).from * w.x_step[1] + (x).from * w.x_step[2]); \
      for (int b = 0; b < (y).taps; ++b) {                                          \
        ulong at = row;                                                             \
        for (int c = 0; c < (x).taps; ++c) {                                        \
          body at += x_next;                                                        \
        }                                                                           \
        row += (ulong)(w.dilation[1] * w.x_step[1]);                                \
      }                                                                             \
      slice += (ulong)(w.dilation[0] * w.x_step[0]);                                \
    }                                                                               \
  }

#define POOL_PARAMS X_PARAM, __global void *y, ulong y_start, int y_type, Nest planes, Window w, int counts_padding

// An item has one output, or with vectors a row of them.
__kernel void pool_planes(POOL_PARAMS) {
#if WIDTH == 1
  const long each = 1;
#else
  const long each = w.out[2];
#endif
  const long blocks = w.out[2] / each;
  long item = (long)get_global_id(0);
  if (item >= planes.count * w.out[0] * w.out[1] * blocks) return;
  const long first = item % blocks * each;
  item /= blocks;
  const long oy = item % w.out[1];
  item /= w.out[1];
  const long oz = item % w.out[0];
  const Places start = places_of(planes, item / w.out[0]);
  const ulong plane = x_start + start.at[0];
  const ulong to = y_start + start.at[2] + (ulong)(oz * w.y_step[0] + oy * w.y_step[1]);
  const Range rz = range_of(w, 0, oz, counts_padding), ry = range_of(w, 1, oy, counts_padding);
  long o = first;
#if WIDTH > 1
  // Vectors may begin at these outputs: their windows, and all that is read for every second element, lie in the row.
  const long reach = (w.kernel_size[2] - 1) * w.dilation[2] + WIDTH * w.stride[2];
  const bool vectors = w.x_step[2] == 1 && w.stride[2] <= 2 && w.dilation[2] <= w.in[2] && w.out[2] >= WIDTH;
  const long first_whole = (w.padding[2] + w.stride[2] - 1) / w.stride[2];
  const long room = w.in[2] + w.padding[2] - reach;
  const long last_whole = vectors && room >= 0 ? min(room / w.stride[2], w.out[2] - WIDTH) : -1;
#endif
  while (o < first + each) {
#if WIDTH > 1
    if (last_whole >= first_whole && last_whole >= 0 && o >= first_whole && o < last_whole + WIDTH) {
      o = min(o, last_whole);  // the last vector may give some outputs once more
      const Range rx = {o * w.stride[2] - w.padding[2], (int)w.kernel_size[2], (int)w.kernel_size[2]};
      const float count = (float)rz.counted * (float)ry.counted * (float)rx.counted;
      ValueVec values = (ValueVec)(NEUTRAL);
      if (w.stride[2] == 1) {
        EACH_TAP(rz, ry, rx, {
          const ValueVec term = TERMS(at);
          values = FOLD(values, term);
        })
      } else {
        EACH_TAP(rz, ry, rx, {
          const ValueVec term = EVEN_TERMS(at);
          values = FOLD(values, term);
        })
      }
      const ulong first_to = to + (ulong)(o * w.y_step[2]);
      if (w.y_step[2] == 1) {
        STORE_VALUES(first_to, values);
      } else {
        PRIVATE_VECTOR(Value, each_value);
        *(ValueVec*)each_value = values;
        for (int j = 0; j < WIDTH; ++j) STORE_VALUE(first_to + (ulong)(j * w.y_step[2]), each_value[j]);
      }
      o += WIDTH;
      continue;
    }
#endif
    const Range rx = range_of(w, 2, o, counts_padding);
    const float count = (float)rz.counted * (float)ry.counted * (float)rx.counted;
    Value value = NEUTRAL;
    EACH_TAP(rz, ry, rx, {
      const Value term = TERM(at);
      value = FOLD(value, term);
    })
    STORE_VALUE(to + (ulong)(o * w.y_step[2]), value);
    ++o;
  }
}

// Channels are neighbours in both tensors; `planes` are images and then channels.
__kernel void pool_channels(POOL_PARAMS) {
  const long channels = planes.extent[0];
  const long blocks = (channels + WIDTH - 1) / WIDTH;
  long item = (long)get_global_id(0);
  if (item >= planes.count / channels * w.out[0] * w.out[1] * w.out[2] * blocks) return;
  const long first = item % blocks * WIDTH;
  item /= blocks;
  const long ox = item % w.out[2];
  item /= w.out[2];
  const long oy = item % w.out[1];
  item /= w.out[1];
  const long oz = item % w.out[0];
  const Places start = places_of(planes, item / w.out[0] * channels + first);
  const ulong plane = x_start + start.at[0];
  const ulong to = y_start + start.at[2] + (ulong)(oz * w.y_step[0] + oy * w.y_step[1] + ox * w.y_step[2]);
  const Range rz = range_of(w, 0, oz, counts_padding), ry = range_of(w, 1, oy, counts_padding),
              rx = range_of(w, 2, ox, counts_padding);
  const float count = (float)rz.counted * (float)ry.counted * (float)rx.counted;
  const int last = (int)min((long)WIDTH, channels - first);
#if WIDTH > 1
  if (last == WIDTH) {
    ValueVec values = (ValueVec)(NEUTRAL);
    EACH_TAP(rz, ry, rx, {
      const ValueVec term = TERMS(at);
      values = FOLD(values, term);
    })
    STORE_VALUES(to, values);
    return;
  }
#endif
  for (int j = 0; j < last; ++j) {
    Value value = NEUTRAL;
    EACH_TAP(rz, ry, rx, {
      const Value term = TERM(at + (ulong)j);
      value = FOLD(value, term);
    })
    STORE_VALUE(to + (ulong)j, value);
  }
}
