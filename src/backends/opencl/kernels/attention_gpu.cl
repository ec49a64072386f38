// What the kernels of attention for GPUs share.

float power(float x) { return exp2(x * 1.44269504f); }

// Which queries and keys a work-group has. 64 bits are slow to divide: the host refuses more than 32 can count.
typedef struct {
  int queries;
  int rows;  // of all heads that share keys
  int row0;
  int part;
  int key_head;
  int batch;
  long length;  // of the sequence
} Share;

Share share_of(const Attention* p, const Tiling* t, int rows, __global const int* lengths, ulong lengths_start) {
  const uint group = (uint)get_group_id(0);
  const uint parts = (uint)t->parts, tiles = (uint)t->tiles, key_heads = (uint)p->key_heads;
  Share share;
  share.queries = (int)p->queries;
  share.rows = (int)((uint)p->heads / key_heads) * share.queries;
  share.part = (int)(group % parts);
  // The last queries of causal attention see most keys: they begin first.
  share.row0 = (int)(tiles - 1 - group / parts % tiles) * rows;
  share.key_head = (int)(group / parts / tiles % key_heads);
  share.batch = (int)(group / parts / tiles / key_heads);
  share.length = sequence_length(p, lengths, lengths_start, share.batch);
  return share;
}

// Which line of the output, or of its parts.
typedef struct {
  int batch;
  int head;
  int query;
  int part;
} Place;

Place place_of(const Share* share, int row) {
  const int head = row / share->queries;
  const Place at = {share->batch, share->key_head * (share->rows / share->queries) + head,
                    row - head * share->queries, share->part};
  return at;
}

int sees_of(const Attention* p, const Share* share, int query) {
  return (int)visible_keys(p, query, max(share->length, 0L));
}

float masked_at(const Attention* p, __global const STORAGE(M_TYPE) * mask, ulong start, const Share* share, int row,
                int key, float score) {
  const Place at = place_of(share, row);
  return masked(p, mask,
                start + (ulong)(at.batch * p->mask[0] + at.head * p->mask[1] + at.query * p->mask[2] +
                                key * p->mask[3]),
                score);
}

// Where a line of keys or values begins. Branches would split the loads after them, which then wait for each other.
#ifdef PAGED
ulong line_at(const Attention* p, const long* strides, __global const int* table, ulong start, int batch, int key,
              __local int* wrong) {
  const long home = home_of(p, table, start, batch, key);
  if (home < 0) *wrong = 1;
  return (ulong)(max(home, 0L) * strides[0] + key % (int)p->page_size * strides[2]);
}
#else
#define line_at(p, strides, table, start, batch, key, wrong) ((ulong)((batch) * (strides)[0] + (key) * (strides)[2]))
#endif

// 4 elements of a line, zeros past its end. With VECTORS they are neighbours, and lines have no part of 4; with WHOLE,
// heads are as large as the tiles. What is loaded under a condition is waited for there.
#ifdef VECTORS
#define LOAD_FOUR(type, from, at, stride, column, count) LOAD_WIDE(4, type)(from, (at) + (ulong)(column))
#else
#define ELEMENT(type, from, at, stride, column, count) \
  ((column) < (count) ? LOAD(type)(from, (at) + (ulong)((column) * (stride))) : 0.0f)
#define LOAD_FOUR(type, from, at, stride, column, count)                                                        \
  (float4)(ELEMENT(type, from, at, stride, column, count), ELEMENT(type, from, at, stride, (column) + 1, count), \
           ELEMENT(type, from, at, stride, (column) + 2, count), ELEMENT(type, from, at, stride, (column) + 3, count))
#endif
#ifdef WHOLE
#define FOUR LOAD_FOUR
#else
#define FOUR(type, from, at, stride, column, count) \
  ((column) < (count) ? LOAD_FOUR(type, from, at, stride, column, count) : (float4)(0.0f))
#endif

float4 four_queries(const Attention* p, __global const STORAGE(A_TYPE) * q, ulong start, Place at, int column) {
  start += (ulong)(at.batch * p->q[0] + at.head * p->q[1] + at.query * p->q[2]);
  return FOUR(A_TYPE, q, start, p->q[3], column, p->depth) * p->scale;
}
#define FOUR_KEYS(at, column) FOUR(B_TYPE, k, at, p.k[3], column, p.depth)
#define FOUR_VALUES(at, column) FOUR(V_TYPE, v, at, p.v[3], column, p.width)

ulong part_at(const Attention* p, const Tiling* t, const Place* at) {
  return (ulong)((((at->batch * p->heads + at->head) * p->queries + at->query) * t->parts + at->part) *
                 (t->width + 2));
}

void put_sums(const Attention* p, const Tiling* t, __global STORAGE(C_TYPE) * out, ulong out_start,
              __global float* partial, ulong partial_start, Place at, int column, float4 sum, float total, int wrong) {
  if (t->parts > 1) {
    vstore4(sum, 0, partial + partial_start + part_at(p, t, &at) + column);
    return;
  }
  if (wrong) return;
  const float4 result = total == 0.0f ? (float4)(0.0f) : sum / total;
  const ulong to = out_start + (ulong)(at.batch * p->out[0] + at.head * p->out[1] + at.query * p->out[2]);
#ifdef VECTORS
  if (column < p->width) STORE_WIDE(4, C_TYPE)(out, to + (ulong)column, result);
#else
  for (int j = 0; j < 4; ++j)
    if (column + j < p->width) STORE(C_TYPE)(out, to + (ulong)((column + j) * p->out[3]), ((const float*)&result)[j]);
#endif
}

void put_total(const Attention* p, const Tiling* t, __global float* lse, ulong lse_start, __global float* partial,
               ulong partial_start, Place at, float highest, float total, int wrong) {
  if (t->parts > 1) {
    __global float* to = partial + partial_start + part_at(p, t, &at) + t->width;
    to[0] = isnan(total) ? NAN : highest;
    to[1] = wrong ? -1.0f : total;
  } else if (p->has_lse && !wrong) {
    lse[lse_start + (ulong)(at.batch * p->lse[0] + at.head * p->lse[1] + at.query * p->lse[2])] =
        total == 0.0f ? -INFINITY : highest + log(total);
  }
}
