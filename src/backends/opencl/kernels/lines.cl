// Comes before the sources that compute with lines of elements, after vectors.cl.
//
// With ROWS a line is a row of neighbours, WIDTH of which make a vector, and the `lanes` items of a team share it: one
// item where ALONE is set. With HELD a team holds a whole row in its registers, HELD vectors an item.
// Without ROWS lines lie anywhere; an item has WIDTH lines that are neighbours.
// A kernel is written once for both: Vec is what it loads, Line what it knows of a line.

#define FIRST_PARAM __global const STORAGE(A_TYPE) * x, ulong x_start
#define SECOND_PARAM __global const STORAGE(B_TYPE) * second, ulong second_start
#define OUTPUT_PARAM(name) __global void *name, ulong name##_start, int name##_type
#define PARAMETER_PARAM(name) __global const void *name, ulong name##_start, int name##_type

#ifdef ALIKE  // all floats are of A_TYPE, and no parameter is missing
#define TYPE_OF(name) JOIN(type_, A_TYPE)
#else
#define TYPE_OF(name) name##_type
#endif

enum { slot_x, slot_second, slot_y, slot_weight, slot_other };

#ifdef ROWS

typedef float Line;

#define ADD_UP(a, b) ((a) + (b))
TEAM_FOLD_FLOATS(team_sum, ADD_UP)
TEAM_FOLD_FLOATS(team_highest, HIGHER)
#define FOLD_SUM(v) team_sum(SUM_OF(v) TEAM)
#define FOLD_HIGHEST(v) team_highest(HIGHEST_OF(v) TEAM)

#define LINE_PARAMS Nest across, Nest along TEAM_PARAM(float)
// Items of rows that are not there go along: every item meets every barrier.
#define LINE_BEGIN                                 \
  TEAM_PLACE(line)                                 \
  const bool there = line < across.count;          \
  const int length = there ? (int)along.count : 0; \
  const Places start = places_of(across, there ? line : 0);

// Whether what an item writes of a line is read and written by nobody else.
#define OWNS_LINES true

#ifdef HELD
#define EACH(i)                                                                                          \
  _Pragma("unroll") for (int k_ = 0; k_ < HELD; ++k_) for (int i = (lane + k_ * lanes) * WIDTH, go_ = 1; \
                                                           go_ && i < length; go_ = 0)
#elif defined(ALONE) && WIDTH > 1
// Whole vectors and the rest in a loop each: beside the rest compilers make slow code of them.
#define EACH(i)                                                      \
  _Pragma("unroll") for (int rest_ = 0; rest_ < 2; ++rest_)          \
    for (int i = rest_ ? length / WIDTH * WIDTH : 0,                 \
             end_ = rest_ ? length : length / WIDTH * WIDTH;         \
         i < end_; i += WIDTH)
#else
#define EACH(i) for (int i = lane * WIDTH; i < length; i += lanes * WIDTH)
#endif

// Past the end of a row: `fill`, and nothing is stored. Vectors that are ALIGNED never get there.
#if WIDTH == 1 || defined(ALIGNED)
#define WHOLE(i) true
#elif defined(ALONE) && !defined(HELD)
#define WHOLE(i) (!rest_)
#else
#define WHOLE(i) ((i) + WIDTH <= length)
#endif
#if WIDTH > 1
Vec part_as(__global const void* data, int type, ulong at, int count, float fill) {
  PRIVATE_VECTOR(float, values);
  for (int j = 0; j < WIDTH; ++j) values[j] = j < count ? load_as(data, type, at + (ulong)j, fill) : fill;
  return *(Vec*)values;
}
void store_part_as(__global void* data, int type, ulong at, int count, Vec value) {
  PRIVATE_VECTOR(float, values);
  *(Vec*)values = value;
  for (int j = 0; j < count; ++j) store_as(data, type, at + (ulong)j, values[j]);
}
#else
#define part_as(data, type, at, count, fill) (fill)
#define store_part_as(data, type, at, count, value)
#endif
#define LOAD_LINE(TYPE, data, base, slot, i, fill)   \
  (WHOLE(i) ? LOADS(TYPE)(data, (base) + (ulong)(i)) \
            : part_as(data, JOIN(type_, TYPE), (base) + (ulong)(i), length - (i), fill))
#define LOAD_LINE_AS(data, type, base, slot, i, fill)         \
  (WHOLE(i) ? loads_as(data, type, (base) + (ulong)(i), fill) \
            : part_as(data, type, (base) + (ulong)(i), length - (i), fill))
#define STORE_LINE(data, type, base, slot, i, value)   \
  if (WHOLE(i))                                        \
    stores_as(data, type, (base) + (ulong)(i), value); \
  else                                                 \
    store_part_as(data, type, (base) + (ulong)(i), length - (i), value);
#define LOAD_PARAMETER(name, slot, i, otherwise) \
  LOAD_LINE_AS(name, TYPE_OF(name), name##_start, slot, i, otherwise)
// What is known of the line, by one of its team.
#define STORE_OF_LINE(data, at, value) \
  if (there && lane == 0) (data)[at] = value;

#else

typedef Vec Line;
#define FOLD_SUM(v) (v)
#define FOLD_HIGHEST(v) (v)
#define LINE_PARAMS Nest across, Nest along
// Where the last lines of a run are fewer than WIDTH, an item takes some of its neighbour's once more.
#define LINE_BEGIN                                                                   \
  const long run = across.extent[0];                                                 \
  const long blocks = (run + WIDTH - 1) / WIDTH;                                     \
  const long block = (long)get_global_id(0);                                         \
  if (block >= across.count / run * blocks) return;                                  \
  const long line = block / blocks * run + min(block % blocks * WIDTH, run - WIDTH); \
  const int length = (int)along.count;                                               \
  const Places start = places_of(across, line);
#define OWNS_LINES (across.extent[0] % WIDTH == 0)
#define EACH(i) for (int i = 0; i < length; ++i)
#define LOAD_LINE(TYPE, data, base, slot, i, fill) LOADS(TYPE)(data, (base) + places_of(along, i).at[slot])
#define LOAD_LINE_AS(data, type, base, slot, i, fill) loads_as(data, type, (base) + places_of(along, i).at[slot], fill)
#define STORE_LINE(data, type, base, slot, i, value) \
  stores_as(data, type, (base) + places_of(along, i).at[slot], value);
#define LOAD_PARAMETER(name, slot, i, otherwise) \
  ((Vec)(load_as(name, TYPE_OF(name), name##_start + places_of(along, i).at[slot], otherwise)))
#define STORE_OF_LINE(data, at, value) STORES(f32)(data, at, value);

#endif

#ifdef HELD
#define HOLD(fill) \
  Vec held[HELD];  \
  EACH(i) held[k_] = LOAD_LINE(A_TYPE, x, x_start + start.at[slot_x], slot_x, i, fill);
#define X(i, fill) held[k_]
#else
#define HOLD(fill)
#define X(i, fill) LOAD_LINE(A_TYPE, x, x_start + start.at[slot_x], slot_x, i, fill)
#endif
#define SECOND(i, fill) LOAD_LINE(B_TYPE, second, second_start + start.at[slot_second], slot_second, i, fill)
#define STORE_Y(i, value) STORE_LINE(y, TYPE_OF(y), y_start + start.at[slot_y], slot_y, i, value)

// The usual last pass of a kernel in a loop of its own, in which no vector asks for its type: that costs CPUs a fifth.
#ifdef CPU_DEVICE
#define ALL_IN_F32(condition, pass)                                                         \
  if (condition) {                                                                          \
    const int weight_type = type_f32, bias_type = type_f32, y_type = type_f32;              \
    pass return;                                                                            \
  }
#define LIKE_X(pass)                           \
  if (y_type == JOIN(type_, A_TYPE)) {         \
    const int y_type = JOIN(type_, A_TYPE);    \
    pass return;                               \
  }
#else
#define ALL_IN_F32(condition, pass)
#define LIKE_X(pass)
#endif
