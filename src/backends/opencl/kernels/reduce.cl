// Sums, or with HIGHEST the highest, over some dims. After vectors.cl. The dims that stay are `kept`, the others
// `reduced`, each in the order in which x has them in memory. Long reductions are cut into parts: a second launch
// reduces what these left in the workspace.
// Sums are of distances from a centre, which may be squared. The lowest is the highest of what has all its bits
// flipped, of floats the sign. Every term of a sum counts `repeats` times.

#ifdef INTEGER
typedef long Count;
typedef long Value;
typedef long ValueVec;
#define X_PARAM __global const void *x
#define ONE(i) (load_integer(x, x_type, i) ^ (long)flip)
#define TERM(i) ONE(i)
#define TERMS(i) ONE(i)
#define LOWEST_VALUE LONG_MIN
#define STORE_VALUE(value) store_integer(y, y_type, to, ((value) ^ (long)flip) * repeats)
#else
typedef int Count;  // parts of floats are short
#define X_PARAM __global const STORAGE(A_TYPE) * x
#ifdef HIGHEST
typedef int Value;
typedef IntVec ValueVec;
#define LOWEST_VALUE LOWEST_ORDER
#define TERM(i) order_of_one(as_float(as_int(LOAD(A_TYPE)(x, i)) ^ flip))
#define TERMS(i) order_of(AS_FLOATS(AS_INTS(LOADS(A_TYPE)(x, i)) ^ flip))
#define STORE_VALUE(value) store_as(y, y_type, to, as_float(as_int(value_of_order(value)) ^ flip))
#else
typedef float Value;
typedef Vec ValueVec;
float power_of(float distance, int squares) { return squares ? distance * distance : distance; }
Vec powers_of(Vec distance, int squares) { return squares ? distance * distance : distance; }
#define TERM(i) power_of(LOAD(A_TYPE)(x, i) - centre_here, flip)
#define TERMS(i) powers_of(LOADS(A_TYPE)(x, i) - centres_here, flip)
#define STORE_VALUE(value) store_as(y, y_type, to, (value) * (float)repeats / divisor)
#endif
#endif

#ifdef HIGHEST
#define NEUTRAL LOWEST_VALUE
#define FOLD(a, b) HIGHER(a, b)
#else
#define NEUTRAL 0
#define FOLD(a, b) ((a) + (b))
#endif

Value folded(ValueVec v) {
#if WIDTH == 1
  return v;
#else
  PRIVATE_VECTOR(Value, values);
  *(ValueVec*)values = v;
#pragma unroll
  for (int half_width = WIDTH / 2; half_width > 0; half_width /= 2)
#pragma unroll
    for (int j = 0; j < half_width; ++j) values[j] = FOLD(values[j], values[j + half_width]);
  return values[0];
#endif
}
TEAM_FOLD(team_fold, Value, FOLD)

enum { slot_x, slot_centre, slot_y };

#define REDUCE_PARAMS                                                                                                 \
  X_PARAM, ulong x_start, int x_type, __global void *y, ulong y_start, int y_type, __global const float *centre,      \
      ulong centre_start, int has_centre, int flip, long repeats, float divisor, Nest kept, Nest reduced, long parts, \
      long part_length, long part_step

// Goes through [begin, end) of what is reduced, run by run: `body` sees where in x `run` of them begin, `step` apart.
#define EACH_RUN(body)                                                                   \
  const long inner = reduced.extent[0];                                                  \
  const ulong step = (ulong)reduced.stride[slot_x][0];                                   \
  const long end = min((part + 1) * part_length, reduced.count);                         \
  for (long at = part * part_length; at < end;) {                                        \
    const long run = min(reduced.rank == 1 ? inner - at : inner - at % inner, end - at); \
    const ulong from = x_start + start.at[slot_x] + places_of(reduced, at).at[slot_x];   \
    body at += run;                                                                      \
  }

// The whole vectors of a run. On CPUs sums of plain values, the usual ones, have a loop of their own and two vectors
// whose additions overlap.
#if defined(CPU_DEVICE) && !defined(INTEGER) && !defined(HIGHEST)
#define FOLD_VECTORS                                                    \
  long v = 0;                                                           \
  if (!has_centre && !flip) {                                           \
    Vec second = 0.0f;                                                  \
    for (; v + 2 <= vectors; v += 2) {                                  \
      values += LOADS(A_TYPE)(x, from + (ulong)(v * WIDTH));            \
      second += LOADS(A_TYPE)(x, from + (ulong)((v + 1) * WIDTH));      \
    }                                                                   \
    values += second;                                                   \
  }                                                                     \
  for (; v < vectors; ++v) values += TERMS(from + (ulong)(v * WIDTH));
#else
#define FOLD_VECTORS                                                 \
  _Pragma("unroll 4") for (Count v = lane; v < (Count)vectors; v += lanes) { \
    const ValueVec term = TERMS(from + (ulong)(v * WIDTH));          \
    values = FOLD(values, term);                                     \
  }
#endif

// A team reduces one part.
__kernel void fold_rows(REDUCE_PARAMS TEAM_PARAM(Value)) {
  TEAM_PLACE(task)
  const bool there = task < kept.count * parts;
  const long part = there ? task % parts : parts;
  const Places start = places_of(kept, there ? task / parts : 0);
#if !defined(INTEGER) && !defined(HIGHEST)
  const float centre_here = has_centre ? centre[centre_start + start.at[slot_centre]] : 0.0f;
  const float centres_here = centre_here;
#endif
  ValueVec values = (ValueVec)(NEUTRAL);
  Value value = NEUTRAL;
  EACH_RUN({
    const long vectors = step == 1 ? run / WIDTH : 0;
    FOLD_VECTORS
    for (long i = vectors * WIDTH + lane; i < run; i += lanes) {
      const Value term = TERM(from + (ulong)i * step);
      value = FOLD(value, term);
    }
  })
  value = FOLD(value, folded(values));
  value = team_fold(value TEAM);
  const ulong to = y_start + start.at[slot_y] + (ulong)(part * part_step);
  if (there && lane == 0) STORE_VALUE(value);
}

// An item reduces one part of a block of columns, which are the last of the kept dims. A few vectors of them are kept
// in registers; many, so that all of a row is read at once, are not.
#if WIDTH == 1
#define BLOCK 1
#else
#define BLOCK 1024
#define FEW_VECTORS 4
#endif

#if defined(INTEGER) || defined(HIGHEST)
#define CENTRE_OF_ONE(j)
#define CENTRES_OF(j)
#else
#define CENTRE_OF_ONE(j) const float centre_here = has_centre ? centre[centre_at + (ulong)(j)*centre_step] : 0.0f;
#define CENTRES_OF(j)      \
  Vec centres_here = 0.0f; \
  if (has_centre)          \
    centres_here = centre_step == 1 ? LOADS(f32)(centre, centre_at + (ulong)(j)) : (Vec)(centre[centre_at]);
#endif

#define STORE_COLUMNS(j, values)                         \
  {                                                      \
    PRIVATE_VECTOR(Value, each);                         \
    *(ValueVec*)each = values;                           \
    for (int k = 0; k < WIDTH; ++k) {                    \
      const ulong to = y_at + (ulong)((j) + k) * y_step; \
      STORE_VALUE(each[k]);                              \
    }                                                    \
  }

__kernel void fold_columns(REDUCE_PARAMS) {
  const long columns = kept.extent[0];
  const long blocks = (columns + BLOCK - 1) / BLOCK;
  const long item = (long)get_global_id(0);
  if (item >= kept.count / columns * blocks * parts) return;
  const long part = item / blocks % parts;
  const long column = item % blocks * BLOCK;
  const Places start = places_of(kept, item / blocks / parts * columns + column);
  const ulong y_step = (ulong)kept.stride[slot_y][0];
  const ulong x_step = (ulong)kept.stride[slot_x][0];
  const ulong centre_step = (ulong)kept.stride[slot_centre][0];
  const ulong centre_at = centre_start + start.at[slot_centre];
  const ulong y_at = y_start + start.at[slot_y] + (ulong)(part * part_step);
  const int count = (int)min((long)BLOCK, columns - column);
  int done = 0;
#if WIDTH > 1
  const int vectors = x_step == 1 ? count / WIDTH : 0;
  if (vectors > FEW_VECTORS) {
    ValueVec values[BLOCK / WIDTH];
    for (int v = 0; v < vectors; ++v) values[v] = (ValueVec)(NEUTRAL);
    EACH_RUN(for (long i = 0; i < run; ++i) {
      const ulong row = from + (ulong)i * step;
      for (int v = 0; v < vectors; ++v) {
        CENTRES_OF(v * WIDTH) {
          const ValueVec term = TERMS(row + (ulong)(v * WIDTH));
          values[v] = FOLD(values[v], term);
        }
      }
    })
    for (int v = 0; v < vectors; ++v) STORE_COLUMNS(v * WIDTH, values[v])
    done = vectors * WIDTH;
  }
  for (; done < vectors * WIDTH; done += WIDTH) {
    CENTRES_OF(done)
    ValueVec values = (ValueVec)(NEUTRAL);
    EACH_RUN(for (long i = 0; i < run; ++i) {
      const ValueVec term = TERMS(from + (ulong)i * step + (ulong)done);
      values = FOLD(values, term);
    })
    STORE_COLUMNS(done, values)
  }
#endif
  for (; done < count; ++done) {
    CENTRE_OF_ONE(done)
    Value value = NEUTRAL;
    EACH_RUN(for (long i = 0; i < run; ++i) {
      const Value term = TERM(from + (ulong)i * step + (ulong)done * x_step);
      value = FOLD(value, term);
    })
    const ulong to = y_at + (ulong)done * y_step;
    STORE_VALUE(value);
  }
}
