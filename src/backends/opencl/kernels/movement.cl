// Moves units of 1, 2, 4, 8 or 16 bytes, whatever they hold. Extents, strides and offsets count units.

#define TILE_ITEMS 256  // tile_items in movement.cpp

// Of what lies over the last two dims: the last is dense in the output, the other one, here called rows, in the input.
typedef struct {
  Index outer;
  long rows;
  long columns;
  long a_step;  // from column to column of the input
  long c_step;  // from row to row of the output
} Tiles;

// Where tokens go: a cache is [block, slot, head, unit], and a block is a page or all of a sequence.
typedef struct {
  long sequences;
  long tokens;  // of each sequence
  long heads;
  long units;      // of a head of a token
  long from[4];    // strides of sequence, token, head and unit
  long to[4];      // of block, slot, head and unit
  long blocks;     // of the cache
  long slots;      // of a block
  long room;       // lengths are below it
  long paged;
  long length_stride;
  long page_strides[2];
} Append;

long block_of(const Append* append, __global const void* pages, ulong start, int type, long sequence, long position) {
  if (!append->paged) return sequence;
  const long entry = position / append->slots;
  const long at = sequence * append->page_strides[0] + entry * append->page_strides[1];
  return load_integer(pages, type, start + (ulong)at);
}

#ifdef CPU_DEVICE
// A work-item has a tile, and turns squares of 4 x 4 units in registers.
#define TURN_TILE(unit, SIDE, pad)                                                                             \
  const long across = (tiles.columns + SIDE - 1) / SIDE, down = (tiles.rows + SIDE - 1) / SIDE;                \
  const long tile = (long)get_global_id(0), block = tile / (across * down);                                    \
  if (block >= tiles.outer.count) return;                                                                      \
  const long row = tile / across % down * SIDE, column = tile % across * SIDE;                                 \
  const long rows = min((long)SIDE, tiles.rows - row), columns = min((long)SIDE, tiles.columns - column);      \
  const Offsets at = offsets_at(&tiles.outer, block);                                                          \
  a += a_start + from + at.a + (ulong)(row + column * tiles.a_step);                                           \
  c += c_start + to + at.c + (ulong)(row * tiles.c_step + column);                                             \
  const long whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;                                       \
  for (long i = 0; i < whole_rows; i += 4)                                                                     \
    for (long j = 0; j < whole_columns; j += 4) {                                                              \
      __global const unit* line = a + i + j * tiles.a_step;                                                    \
      const unit##4 v0 = *(__global const near_##unit*)line;                                                   \
      const unit##4 v1 = *(__global const near_##unit*)(line + tiles.a_step);                                  \
      const unit##4 v2 = *(__global const near_##unit*)(line + 2 * tiles.a_step);                              \
      const unit##4 v3 = *(__global const near_##unit*)(line + 3 * tiles.a_step);                              \
      __global unit* turned = c + i * tiles.c_step + j;                                                        \
      *(__global near_##unit*)turned = (unit##4)(v0.x, v1.x, v2.x, v3.x);                                      \
      *(__global near_##unit*)(turned + tiles.c_step) = (unit##4)(v0.y, v1.y, v2.y, v3.y);                     \
      *(__global near_##unit*)(turned + 2 * tiles.c_step) = (unit##4)(v0.z, v1.z, v2.z, v3.z);                 \
      *(__global near_##unit*)(turned + 3 * tiles.c_step) = (unit##4)(v0.w, v1.w, v2.w, v3.w);                 \
    }                                                                                                          \
  for (long i = 0; i < rows; ++i)                                                                              \
    for (long j = i < whole_rows ? whole_columns : 0; j < columns; ++j)                                        \
      c[i * tiles.c_step + j] = a[i + j * tiles.a_step];
#else
// A work-group brings a tile to local memory, so that both sides move neighbours; `pad` spreads its columns over the
// banks. All that an item moves of a whole tile is on its way at once.
#define EACH_LINE(SIDE) _Pragma("unroll") for (int i = 0; i < SIDE * SIDE / TILE_ITEMS; ++i)
#define TURN_TILE(unit, SIDE, pad)                                                                                 \
  __local unit lines[SIDE][SIDE + pad];                                                                            \
  const uint across = (uint)((tiles.columns + SIDE - 1) / SIDE), down = (uint)((tiles.rows + SIDE - 1) / SIDE);    \
  const uint tile = (uint)get_group_id(0), block = tile / (across * down);                                         \
  const int along = (int)get_local_id(0) % SIDE, line = (int)get_local_id(0) / SIDE;                               \
  const long row = (long)(tile / across % down) * SIDE, column = (long)(tile % across) * SIDE;                     \
  const int rows = (int)min((long)SIDE, tiles.rows - row), columns = (int)min((long)SIDE, tiles.columns - column); \
  const Offsets at = offsets_at(&tiles.outer, block);                                                              \
  a += a_start + from + at.a + (ulong)(row + along + (column + line) * tiles.a_step);                              \
  c += c_start + to + at.c + (ulong)((row + line) * tiles.c_step + column + along);                                \
  const bool whole = rows == SIDE && columns == SIDE;                                                            \
  unit moved[SIDE * SIDE / TILE_ITEMS];                                                                          \
  if (whole) {                                                                                                   \
    EACH_LINE(SIDE) moved[i] = a[i * (TILE_ITEMS / SIDE) * tiles.a_step];                                        \
  } else {                                                                                                       \
    EACH_LINE(SIDE) if (along < rows && line + i * (TILE_ITEMS / SIDE) < columns)                                \
      moved[i] = a[i * (TILE_ITEMS / SIDE) * tiles.a_step];                                                      \
  }                                                                                                              \
  EACH_LINE(SIDE) lines[line + i * (TILE_ITEMS / SIDE)][along] = moved[i];                                       \
  barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
  if (whole) {                                                                                                   \
    EACH_LINE(SIDE) c[i * (TILE_ITEMS / SIDE) * tiles.c_step] = lines[along][line + i * (TILE_ITEMS / SIDE)];    \
  } else {                                                                                                       \
    EACH_LINE(SIDE) if (line + i * (TILE_ITEMS / SIDE) < rows && along < columns)                                \
      c[i * (TILE_ITEMS / SIDE) * tiles.c_step] = lines[along][line + i * (TILE_ITEMS / SIDE)];                  \
  }
#endif

// copy: rows of any steps. look_up: rows of a table (b) that indices (a) name. append: heads of tokens.
#define MOVE(n, unit)                                                                                           \
  __kernel void copy_##n(__global const unit* restrict a, ulong a_start, __global unit* restrict c,             \
                         ulong c_start, Rows rows, ulong from, ulong to, long chunk, long chunks) {             \
    const Chunk part = chunk_of(rows.index.count, rows.length, chunk, chunks);                                  \
    if (part.count <= 0) return;                                                                                \
    const Offsets at = offsets_at(&rows.index, part.row);                                                       \
    a += a_start + from + at.a + (ulong)(part.first * rows.a_step);                                             \
    c += c_start + to + at.c + (ulong)(part.first * rows.c_step);                                               \
    if (rows.a_step == 1 && rows.c_step == 1)                                                                   \
      for (long k = 0; k < part.count; ++k) c[k] = a[k];                                                        \
    else                                                                                                        \
      for (long k = 0; k < part.count; ++k) c[k * rows.c_step] = a[k * rows.a_step];                            \
  }                                                                                                             \
  __kernel void look_up_##n(__global const void* a, ulong a_start, int a_type, __global const unit* restrict b, \
                            ulong b_start, __global unit* restrict c, ulong c_start, __global uint* fault,      \
                            Rows rows, long table_rows, long table_stride, long chunk, long chunks) {           \
    const Chunk part = chunk_of(rows.index.count, rows.length, chunk, chunks);                                  \
    if (part.count <= 0) return;                                                                                \
    const Offsets at = offsets_at(&rows.index, part.row);                                                       \
    const long row = load_integer(a, a_type, a_start + at.a);                                                   \
    if (row < 0 || row >= table_rows) {                                                                         \
      *fault = 1;                                                                                               \
      return;                                                                                                   \
    }                                                                                                           \
    b += b_start + (ulong)(row * table_stride + part.first * rows.b_step);                                      \
    c += c_start + at.c + (ulong)(part.first * rows.c_step);                                                    \
    if (rows.b_step == 1 && rows.c_step == 1)                                                                   \
      for (long k = 0; k < part.count; ++k) c[k] = b[k];                                                        \
    else                                                                                                        \
      for (long k = 0; k < part.count; ++k) c[k * rows.c_step] = b[k * rows.b_step];                            \
  }                                                                                                             \
  __kernel void append_##n(__global const unit* restrict a, ulong a_start, __global unit* restrict c,           \
                           ulong c_start, __global const void* lengths, ulong lengths_start, int lengths_type,  \
                           __global const void* pages, ulong pages_start, int pages_type,                       \
                           __global uint* fault, Append append, long chunk, long chunks) {                      \
    const long rows = append.sequences * append.tokens * append.heads;                                          \
    const Chunk part = chunk_of(rows, append.units, chunk, chunks);                                             \
    if (part.count <= 0) return;                                                                                \
    const long head = part.row % append.heads, of_all = part.row / append.heads;                                \
    const long token = of_all % append.tokens, sequence = of_all / append.tokens;                               \
    const long length =                                                                                         \
        load_integer(lengths, lengths_type, lengths_start + (ulong)(sequence * append.length_stride));          \
    long block = -1;                                                                                            \
    if (length >= 0 && length < append.room)                                                                    \
      block = block_of(&append, pages, pages_start, pages_type, sequence, length + token);                      \
    if (block < 0 || block >= append.blocks) {                                                                  \
      *fault = 1;                                                                                               \
      return;                                                                                                   \
    }                                                                                                           \
    const long slot = append.paged ? (length + token) % append.slots : length + token;                          \
    a += a_start + (ulong)(sequence * append.from[0] + token * append.from[1] + head * append.from[2] +         \
                           part.first * append.from[3]);                                                        \
    c += c_start + (ulong)(block * append.to[0] + slot * append.to[1] + head * append.to[2] +                   \
                           part.first * append.to[3]);                                                          \
    for (long k = 0; k < part.count; ++k) c[k * append.to[3]] = a[k * append.from[3]];                          \
  }
#define TURN(n, unit, SIDE, pad)                                                                               \
  typedef unit##4 near_##unit __attribute__((aligned(n)));                                                     \
  __kernel void turn_##n(__global const unit* restrict a, ulong a_start, __global unit* restrict c,            \
                         ulong c_start, Tiles tiles, ulong from, ulong to) {                                   \
    TURN_TILE(unit, SIDE, pad)                                                                                 \
  }

MOVE(1, uchar)
MOVE(2, ushort)
MOVE(4, uint)
MOVE(8, ulong)
MOVE(16, uint4)

#ifdef CPU_DEVICE
#define NARROW_SIDE 32
#else
#define NARROW_SIDE 64
#endif
TURN(1, uchar, NARROW_SIDE, 4)
TURN(2, ushort, NARROW_SIDE, 2)
TURN(4, uint, 32, 1)
TURN(8, ulong, 32, 1)
