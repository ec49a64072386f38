// For GPUs. A work-group of TX x TY items has ROWS queries of heads that share their keys, and goes through the keys in
// tiles of KEYS with a running softmax. An item has every TYth query, and of these RQ the scores of every TXth key and
// RV vectors of the output. Queries stay in local memory; keys come in slices of SLICE columns, values in slices of
// LINES rows, the next one on its way while one is multiplied.

#define GROUP (TX * TY)
#define ROWS (TY * RQ)
#define RK (KEYS / TX)
#define RV (WIDTH / TX / 4)
#define SLICES (DEPTH / SLICE)
// So many items bring a line of a slice, and so many lines they bring at a time.
#define LANES_OF(vectors) ((vectors) > 8 ? 16 : 8)
#define LINES_OF(vectors) (GROUP / LANES_OF(vectors))
#define STEPS_OF(vectors) (((vectors) + LANES_OF(vectors) - 1) / LANES_OF(vectors))
#define KEY_SHARE (KEYS / LINES_OF(SLICE / 4) * STEPS_OF(SLICE / 4))
#define VALUE_SHARE (LINES / LINES_OF(WIDTH / 4) * STEPS_OF(WIDTH / 4))
#if KEYS % LINES_OF(SLICE / 4) || LINES % LINES_OF(WIDTH / 4)
#error "a slice has fewer lines than are brought at a time"
#endif
#define MOST_SHARE (KEY_SHARE > VALUE_SHARE ? KEY_SHARE : VALUE_SHARE)
// Vectors between lines are odd in number: lines begin in other banks.
#define QUERY_LINE (DEPTH / 4 + 1)
#define KEY_LINE (SLICE / 4 + 1)
#define WEIGHT_LINE (KEYS / 4 + 1)
#define STRIP (KEYS * KEY_LINE > LINES * WIDTH / 4 ? KEYS * KEY_LINE : LINES * WIDTH / 4)

// `lines` lines of so many vectors, the first at `key0` keys and `vector0` vectors in the tile that begins at `from`.
// Past the last key comes that one again, and takes no part.
#define BRING_LINES(four, start, strides, lines, vectors, key0, vector0)                                            \
  _Pragma("unroll") for (int i = 0; i < (lines) / LINES_OF(vectors); ++i) {                                         \
    const int key = min(from + (key0) + item / LANES_OF(vectors) + i * LINES_OF(vectors), end - 1);                 \
    const ulong at = start + line_at(&p, strides, table, table_start, share.batch, key, &wrong);                    \
    _Pragma("unroll") for (int j = 0; j < STEPS_OF(vectors); ++j) {                                                 \
      const int vector = item % LANES_OF(vectors) + j * LANES_OF(vectors);                                          \
      if ((vectors) % LANES_OF(vectors) == 0 || vector < (vectors))                                                 \
        next[i * STEPS_OF(vectors) + j] = four(at, ((vector0) + vector) * 4);                                         \
    }                                                                                                               \
  }
#define PUT_LINES(lines, vectors, line)                                                                           \
  _Pragma("unroll") for (int i = 0; i < (lines) / LINES_OF(vectors); ++i)                                         \
      _Pragma("unroll") for (int j = 0; j < STEPS_OF(vectors); ++j) {                                             \
    const int vector = item % LANES_OF(vectors) + j * LANES_OF(vectors);                                          \
    if ((vectors) % LANES_OF(vectors) == 0 || vector < (vectors))                                                 \
      strip[(item / LANES_OF(vectors) + i * LINES_OF(vectors)) * (line) + vector] = next[i * STEPS_OF(vectors) + j]; \
  }
#define BRING_KEYS(slice) BRING_LINES(FOUR_KEYS, k_start, p.k, KEYS, SLICE / 4, 0, (slice) * (SLICE / 4))
#define PUT_KEYS PUT_LINES(KEYS, SLICE / 4, KEY_LINE)
#define BRING_VALUES(slice) BRING_LINES(FOUR_VALUES, v_start, p.v, LINES, WIDTH / 4, (slice) * LINES, 0)
#define PUT_VALUES PUT_LINES(LINES, WIDTH / 4, WIDTH / 4)
#define REPLACE(put)             \
  barrier(CLK_LOCAL_MEM_FENCE);  \
  put                            \
  barrier(CLK_LOCAL_MEM_FENCE);

// `taken`: whether a weight counts. A key that takes no part adds nothing, whatever its value.
#define ADD_VALUES(slice, taken)                                                                          \
  _Pragma("unroll 1") for (int key = 0; key < LINES; key += 4) {                                          \
    float4 weight[RQ];                                                                                    \
    _Pragma("unroll") for (int i = 0; i < RQ; ++i) weight[i] =                                            \
        weights[(ty + i * TY) * WEIGHT_LINE + ((slice)*LINES + key) / 4];                                 \
    _Pragma("unroll") for (int one = 0; one < 4; ++one) {                                                 \
      float4 value[RV];                                                                                   \
      _Pragma("unroll") for (int j = 0; j < RV; ++j) value[j] =                                           \
          strip[(key + one) * (WIDTH / 4) + tx + j * TX];                                                 \
      _Pragma("unroll") for (int i = 0; i < RQ; ++i) {                                                    \
        const float w = ((const float*)&weight[i])[one];                                                  \
        if (taken) {                                                                                      \
          _Pragma("unroll") for (int j = 0; j < RV; ++j) sum[i][j] += w * value[j];                       \
        }                                                                                                 \
      }                                                                                                   \
    }                                                                                                     \
  }

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void attention_block(ATTENTION_PARAMETERS, Tiling t,
                                                                                 __global float* partial,
                                                                                 ulong partial_start) {
  __local float4 queries[ROWS * QUERY_LINE];
  __local float4 strip[STRIP];
  __local float4 weights[ROWS * WEIGHT_LINE];
  __local float4 found[ROWS * TX / 4];  // of the items that share a query
  __local int wrong;

  const int item = (int)get_local_id(0);
  const int square = item / 32;  // 4 x 8 items, which read fewer different vectors so
  const int tx = square % (TX / 8) * 8 + item % 8;
  const int ty = square / (TX / 8) * 4 + item / 8 % 4;
  const Share share = share_of(&p, &t, ROWS, lengths, lengths_start);
  const int row0 = share.row0;
  // Where the queries are of one head, they are neighbours.
  const int last_row = min(row0 + ROWS, share.rows) - 1;
  const bool one_head = row0 / share.queries == last_row / share.queries;
  const int least = sees_of(&p, &share, one_head ? row0 % share.queries : 0);
  const int most = sees_of(&p, &share, one_head ? last_row % share.queries : share.queries - 1);
  const int first = share.part * (int)t.keys_per_part;
  const int end = (int)min((long)most, first + t.keys_per_part);
  k_start += (ulong)(share.key_head * p.k[1]);
  v_start += (ulong)(share.key_head * p.v[1]);

  if (item == 0) wrong = share.length < 0;
  for (int e = item; e < ROWS * (DEPTH / 4); e += GROUP) {
    const int row = e / (DEPTH / 4);
    float4 value = (float4)(0.0f);
    if (row0 + row < share.rows)
      value = four_queries(&p, q, q_start, place_of(&share, row0 + row), e % (DEPTH / 4) * 4);
    queries[row * QUERY_LINE + e % (DEPTH / 4)] = value;
  }
  int sees[RQ];
  float4 sum[RQ][RV];
  float highest[RQ];
  float total[RQ];  // of this item's keys
#pragma unroll
  for (int i = 0; i < RQ; ++i) {
    const int row = row0 + ty + i * TY;
    sees[i] = row < share.rows ? min(end, sees_of(&p, &share, row % share.queries)) : 0;
    highest[i] = -INFINITY;
    total[i] = 0.0f;
#pragma unroll
    for (int j = 0; j < RV; ++j) sum[i][j] = (float4)(0.0f);
  }

  barrier(CLK_LOCAL_MEM_FENCE);  // `wrong` is set
  int from = first;              // where the tile begins that keys and values are brought of
  float4 next[MOST_SHARE];
  if (first < end) {
    BRING_KEYS(0)
    PUT_KEYS
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int key0 = first; key0 < end; key0 += KEYS) {
    float score[RQ][RK];
#pragma unroll
    for (int i = 0; i < RQ; ++i)
#pragma unroll
      for (int j = 0; j < RK; ++j) score[i][j] = 0.0f;
#pragma unroll
    for (int slice = 0; slice < SLICES; ++slice) {
      if (slice + 1 < SLICES) {
        BRING_KEYS(slice + 1)
      } else {
        BRING_VALUES(0)
      }
#pragma unroll 2
      for (int column = 0; column < SLICE / 4; ++column) {
        float4 query[RQ];
#pragma unroll
        for (int i = 0; i < RQ; ++i) query[i] = queries[(ty + i * TY) * QUERY_LINE + slice * (SLICE / 4) + column];
#pragma unroll
        for (int j = 0; j < RK; ++j) {
          const float4 key = strip[(tx + j * TX) * KEY_LINE + column];
#pragma unroll
          for (int i = 0; i < RQ; ++i) {
            score[i][j] += query[i].x * key.x;
            score[i][j] += query[i].y * key.y;
            score[i][j] += query[i].z * key.z;
            score[i][j] += query[i].w * key.w;
          }
        }
      }
      if (slice + 1 < SLICES) {
        REPLACE(PUT_KEYS)
      }
    }

    const bool whole = p.mask_kind == 0 && key0 + KEYS <= min(least, end);
#pragma unroll
    for (int i = 0; i < RQ; ++i) {
      float most_here = -INFINITY;
#pragma unroll
      for (int j = 0; j < RK; ++j) {
        const int key = key0 + tx + j * TX;
        if (!whole) {
          if (key >= sees[i])
            score[i][j] = -INFINITY;
          else if (p.mask_kind != 0)
            score[i][j] = masked_at(&p, mask, mask_start, &share, row0 + ty + i * TY, key, score[i][j]);
        }
        most_here = fmax(most_here, score[i][j]);
      }
      ((__local float*)found)[(ty + i * TY) * TX + tx] = most_here;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    PUT_VALUES
#pragma unroll
    for (int i = 0; i < RQ; ++i) {
      // NaN is no maximum: its weight is NaN, and so is then the whole line.
      float4 most4 = found[(ty + i * TY) * (TX / 4)];
#pragma unroll
      for (int j = 1; j < TX / 4; ++j) most4 = fmax(most4, found[(ty + i * TY) * (TX / 4) + j]);
      const float now = fmax(highest[i], fmax(fmax(most4.x, most4.y), fmax(most4.z, most4.w)));
      // Where no key has taken part yet, nothing is to be rescaled.
      const float factor = highest[i] == -INFINITY ? 1.0f : power(highest[i] - now);
      const float above = now == -INFINITY ? 0.0f : now;
      total[i] *= factor;
#pragma unroll
      for (int j = 0; j < RK; ++j) {
        const float weight = power(score[i][j] - above);
        total[i] += weight;
        ((__local float*)weights)[(ty + i * TY) * (WEIGHT_LINE * 4) + tx + j * TX] = weight;
      }
#pragma unroll
      for (int j = 0; j < RV; ++j) sum[i][j] *= factor;
      highest[i] = now;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

#pragma unroll
    for (int slice = 0; slice < KEYS / LINES; ++slice) {
      if (slice + 1 < KEYS / LINES) {
        BRING_VALUES(slice + 1)
      } else {
        from += KEYS;
        BRING_KEYS(0)
      }
      if (whole) {
        ADD_VALUES(slice, true)
      } else {
        ADD_VALUES(slice, w != 0.0f)
      }
      if (slice + 1 < KEYS / LINES) {
        REPLACE(PUT_VALUES)
      } else {
        REPLACE(PUT_KEYS)
      }
    }
  }

#pragma unroll
  for (int i = 0; i < RQ; ++i) ((__local float*)found)[(ty + i * TY) * TX + tx] = total[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (wrong) *fault = 1;
#pragma unroll
  for (int i = 0; i < RQ; ++i) {
    const int row = row0 + ty + i * TY;
    if (row < share.rows) {
      float whole = 0.0f;
      for (int j = 0; j < TX; ++j) whole += ((__local float*)found)[(ty + i * TY) * TX + j];
      const Place at = place_of(&share, row);
#pragma unroll
      for (int j = 0; j < RV; ++j)
        put_sums(&p, &t, out, out_start, partial, partial_start, at, (tx + j * TX) * 4, sum[i][j], whole, wrong);
      if (tx == 0) put_total(&p, &t, lse, lse_start, partial, partial_start, at, highest[i], whole, wrong);
    }
  }
}
