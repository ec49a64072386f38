// What the kernels of attention share; comes before their source. The host has the same struct (attention.cpp).

// Strides are those of a batch (of pages: of a page), a head, a row and a column.
typedef struct {
  long batch;
  long heads;
  long key_heads;
  long queries;
  long keys;   // of the longest sequence
  long depth;  // of a query and a key
  long width;  // of a value
  long q[4];
  long k[4];
  long v[4];
  long out[4];
  long mask[4];
  long lse[3];
  long length_stride;
  long table_row;
  long table_step;
  long pages;
  long page_size;
  float scale;
  int causal;        // 1: the first query sees the first key, 2: the last one the last
  int mask_kind;     // 0: none, 1: bool, 2: floats that are added
  int length_bytes;  // of one length; 0: every sequence has all keys
  int paged;
  int has_lse;
} Attention;

#define ATTENTION_PARAMETERS                                                                                     \
  __global const STORAGE(A_TYPE) * q, ulong q_start, __global const STORAGE(B_TYPE) * k, ulong k_start,          \
      __global const STORAGE(V_TYPE) * v, ulong v_start, __global const STORAGE(M_TYPE) * mask, ulong mask_start, \
      __global const int *lengths, ulong lengths_start, __global const int *table, ulong table_start,            \
      __global STORAGE(C_TYPE) * out, ulong out_start, __global float *lse, ulong lse_start, __global uint *fault, \
      Attention p

// Keys of a sequence; -1 where the caller's length cannot be right.
long sequence_length(const Attention* p, __global const int* lengths, ulong start, long batch) {
  if (p->length_bytes == 0) return p->keys;
  const ulong at = start + (ulong)(batch * p->length_stride);
  const long length = p->length_bytes == 8 ? ((__global const long*)lengths)[at] : (long)lengths[at];
  return length < 0 || length > p->keys ? -1 : length;
}

// Keys that take part for a query: all, or up to its own position.
long visible_keys(const Attention* p, long query, long length) {
  if (p->causal == 0) return length;
  return clamp(query + 1 + (p->causal == 2 ? length - p->queries : 0), 0L, length);
}

// Which batch, or page, a key lies in; -1 where the caller's page cannot be right.
long home_of(const Attention* p, __global const int* table, ulong start, long batch, long key) {
  if (!p->paged) return batch;
  const long page = table[start + (ulong)(batch * p->table_row + key / p->page_size * p->table_step)];
  return page < 0 || page >= p->pages ? -1 : page;
}
long row_of(const Attention* p, long key) { return p->paged ? key % p->page_size : key; }

// The score with the mask; -INFINITY for a key that takes no part.
float masked(const Attention* p, __global const STORAGE(M_TYPE) * mask, ulong at, float score) {
  if (p->mask_kind == 0) return score;
  if (p->mask_kind == 1) return ((__global const uchar*)mask)[at] ? score : -INFINITY;
  return score + LOAD(M_TYPE)(mask, at);
}

// How the work is cut, for all kernels but the plainest. As in attention.cpp.
typedef struct {
  long width;  // floats of a line of the parts
  long tiles;  // of queries, for each batch and head of keys
  long parts;
  long keys_per_part;
} Tiling;

// Queries of heads that share their keys are rows of one tile after the other.
long head_of(const Attention* p, long key_head, long row) {
  return key_head * (p->heads / p->key_heads) + row / p->queries;
}
