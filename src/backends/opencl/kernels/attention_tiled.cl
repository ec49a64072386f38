// For CPUs: a work-group of one item has ROWS queries of heads that share keys, and goes through the keys in tiles
// of KEYS with a running softmax: highest score and sum of weights so far. Queries, and keys or values in turn, lie in
// local memory as f32, their rows padded with zeros to DEPTH and WIDTH. With more than one part, each goes through a
// share of the keys, and `attention_join` puts their results together, in order.
// Scores come in blocks of 2 queries and 4 keys, the output in blocks of 1 query and 16 columns.

#define KEYS 32
#define COLUMNS (WIDTH / 16)
#define LINE (DEPTH > WIDTH ? DEPTH : WIDTH)

// exp of numbers that are not above 0, to about one unit in the last place; 0 below -87. Arithmetic alone: exp is a
// function call for each element on some CPU devices. NaN stays.
float4 exponential(float4 x) {
  const float4 inside = x < -87.0f ? (float4)(-87.0f) : x;
  const float4 magic = (float4)(12582912.0f);  // numbers of its size have no digits behind the point
  const float4 shifted = inside * 1.44269504f + magic;
  const float4 whole = shifted - magic;
  const float4 r = (inside - whole * 0.693359375f) - whole * -2.12194440e-4f;
  float4 sum = r * (1.0f / 5040) + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  const float4 power = as_float4(((as_int4(shifted) - as_int4(magic)) + 127) << 23);
  return x < -87.0f ? (float4)(0.0f) : sum * power;
}

// A line of a tile: `count` elements `stride` apart, and zeros up to `padded`. In two loops, so that one is of vectors.
#define BRING(type, from, at, stride, count, padded, to)                                                  \
  if ((stride) == 1) {                                                                                    \
    for (int column = 0; column < (count); ++column)                                                      \
      (to)[column] = LOAD(type)(from, (at) + (ulong)column);                                              \
  } else {                                                                                                \
    for (int column = 0; column < (count); ++column)                                                      \
      (to)[column] = LOAD(type)(from, (at) + (ulong)(column * (stride)));                                 \
  }                                                                                                       \
  for (int column = (count); column < (padded); ++column) (to)[column] = 0.0f;

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void attention_tiled(ATTENTION_PARAMETERS, Tiling t,
                                                                              __global float* partial,
                                                                              ulong partial_start) {
  __local float queries[ROWS * DEPTH] __attribute__((aligned(16)));
  __local float lines[KEYS * LINE] __attribute__((aligned(16)));
  __local float scores[ROWS * KEYS] __attribute__((aligned(16)));
  float highest[ROWS];
  float weights[ROWS];
  float rescale[ROWS];
  long homes[KEYS];
  long sees[ROWS];   // keys that take part
  long masks[ROWS];  // where the line of the mask begins

  const long group = (long)get_group_id(0);
  const long part = group % t.parts;
  const long row0 = group / t.parts % t.tiles * ROWS;
  const long key_head = group / t.parts / t.tiles % p.key_heads;
  const long batch = group / t.parts / t.tiles / p.key_heads;
  const long row_count = p.heads / p.key_heads * p.queries;
  const int rows = (int)min(row_count - row0, (long)ROWS);
  const long given = sequence_length(&p, lengths, lengths_start, batch);
  const long length = max(given, 0L);
  long most = 0;  // keys that any of the queries sees
  for (int row = 0; row < rows; ++row) most = max(most, visible_keys(&p, (row0 + row) % p.queries, length));
  const long first = part * t.keys_per_part;
  const long end = min(most, first + t.keys_per_part);
  k_start += (ulong)(key_head * p.k[1]);
  v_start += (ulong)(key_head * p.v[1]);

  bool wrong = given < 0;
  for (int row = 0; row < ROWS; ++row) {
    highest[row] = -INFINITY;
    weights[row] = 0.0f;
    const long query = (row0 + row) % p.queries;
    const long head = head_of(&p, key_head, row0 + row);
    sees[row] = row < rows ? visible_keys(&p, query, length) : 0;
    masks[row] = (long)mask_start + batch * p.mask[0] + head * p.mask[1] + query * p.mask[2];
  }
  for (int e = 0; e < ROWS * DEPTH; ++e) {
    const int row = e / DEPTH;
    const int column = e % DEPTH;
    const long query = (row0 + row) % p.queries;
    float value = 0.0f;
    if (row < rows && column < p.depth)
      value = LOAD(A_TYPE)(q, q_start + (ulong)(batch * p.q[0] + head_of(&p, key_head, row0 + row) * p.q[1] +
                                                query * p.q[2] + column * p.q[3]));
    queries[e] = value * p.scale;
  }
  float4 sum[ROWS * COLUMNS][4];
  for (int block = 0; block < ROWS * COLUMNS; ++block)
    for (int j = 0; j < 4; ++j) sum[block][j] = (float4)(0.0f);

  for (long key0 = first; key0 < end; key0 += KEYS) {
    const int keys = (int)min(end - key0, (long)KEYS);
    for (int key = 0; key < keys; ++key) {
      const long home = home_of(&p, table, table_start, batch, key0 + key);
      if (home < 0) wrong = true;
      homes[key] = max(home, 0L);
    }
    for (int key = 0; key < KEYS; ++key) {
      const ulong from = key < keys ? k_start + (ulong)(homes[key] * p.k[0] + row_of(&p, key0 + key) * p.k[2]) : 0;
      const int count = key < keys ? (int)p.depth : 0;
      BRING(B_TYPE, k, from, p.k[3], count, DEPTH, lines + key * DEPTH)
    }

    for (int e = 0; e < ROWS / 2 * (KEYS / 4); ++e) {
      const int row = e / (KEYS / 4) * 2;
      const int key = e % (KEYS / 4) * 4;
      __local const float* a = queries + row * DEPTH;
      __local const float* b = lines + key * DEPTH;
      float4 dots[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) dots[i] = (float4)(0.0f);
      for (int column = 0; column < DEPTH; column += 4) {
        const float4 above = *(__local const float4*)(a + column);
        const float4 below = *(__local const float4*)(a + DEPTH + column);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float4 line = *(__local const float4*)(b + i * DEPTH + column);
          dots[i] += above * line;
          dots[4 + i] += below * line;
        }
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int at_row = row + i / 4;
        const int at_key = key + i % 4;
        float score = (dots[i].x + dots[i].y) + (dots[i].z + dots[i].w);
        if (key0 + at_key >= sees[at_row] || at_key >= keys) {
          score = -INFINITY;
        } else if (p.mask_kind != 0) {
          score = masked(&p, mask, (ulong)(masks[at_row] + (key0 + at_key) * p.mask[3]), score);
        }
        scores[at_row * KEYS + at_key] = score;
      }
    }

    // Keys have been used: values may come in their place.
    for (int key = 0; key < keys; ++key) {
      const ulong from = v_start + (ulong)(homes[key] * p.v[0] + row_of(&p, key0 + key) * p.v[2]);
      BRING(V_TYPE, v, from, p.v[3], (int)p.width, WIDTH, lines + key * WIDTH)
    }
    for (int row = 0; row < ROWS; ++row) {
      __local float4* line = (__local float4*)(scores + row * KEYS);
      float4 most4 = line[0];
      for (int i = 1; i < KEYS / 4; ++i) most4 = line[i] > most4 || line[i] != line[i] ? line[i] : most4;
      float most_here = highest[row];
      const float found[4] = {most4.x, most4.y, most4.z, most4.w};
      for (int i = 0; i < 4; ++i) most_here = found[i] > most_here || isnan(found[i]) ? found[i] : most_here;
      // Where no key has taken part yet, nothing is to be rescaled.
      const float factor = highest[row] == -INFINITY ? 0.0f : exp(highest[row] - most_here);
      const float4 above = (float4)(most_here == -INFINITY ? 0.0f : most_here);
      float4 total4 = (float4)(0.0f);
      for (int i = 0; i < KEYS / 4; ++i) {
        line[i] = exponential(line[i] - above);
        total4 += line[i];
      }
      const float total = (total4.x + total4.y) + (total4.z + total4.w);
      weights[row] = weights[row] * factor + total;
      highest[row] = most_here;
      rescale[row] = factor;
    }

    for (int block = 0; block < ROWS * COLUMNS; ++block) {
      const int row = block / COLUMNS;
      const int column = block % COLUMNS * 16;
      if (row < rows) {
        const float factor = rescale[row];
        float4 a = sum[block][0] * factor, b = sum[block][1] * factor;
        float4 c = sum[block][2] * factor, d = sum[block][3] * factor;
        for (int key = 0; key < keys; ++key) {
          const float weight = scores[row * KEYS + key];
          // A key that takes no part adds nothing, whatever its value.
          if (weight != 0.0f) {
            __local const float4* line = (__local const float4*)(lines + key * WIDTH + column);
            a += weight * line[0];
            b += weight * line[1];
            c += weight * line[2];
            d += weight * line[3];
          }
        }
        sum[block][0] = a;
        sum[block][1] = b;
        sum[block][2] = c;
        sum[block][3] = d;
      }
    }
  }

  if (wrong) *fault = 1;
  for (int block = 0; block < ROWS * COLUMNS; ++block) {
    const int row = block / COLUMNS;
    const int column0 = block % COLUMNS * 16;
    if (row < rows) {
      const long query = (row0 + row) % p.queries;
      const long head = head_of(&p, key_head, row0 + row);
      if (t.parts > 1) {
        const long of_part = ((batch * p.heads + head) * p.queries + query) * t.parts + part;
        __global float* to = partial + partial_start + (ulong)(of_part * (WIDTH + 2));
        for (int j = 0; j < 16; ++j) to[column0 + j] = ((const float*)sum[block])[j];
        if (column0 == 0) {
          to[WIDTH] = highest[row];
          to[WIDTH + 1] = wrong ? -1.0f : weights[row];
        }
      } else if (!wrong) {
        const float total = weights[row];
        const ulong to = out_start + (ulong)(batch * p.out[0] + head * p.out[1] + query * p.out[2]);
        for (int j = 0; j < 16; ++j)
          if (column0 + j < p.width)
            STORE(C_TYPE)(out, to + (ulong)((column0 + j) * p.out[3]),
                          total == 0.0f ? 0.0f : ((const float*)sum[block])[j] / total);
        if (p.has_lse && column0 == 0)
          lse[lse_start + (ulong)(batch * p.lse[0] + head * p.lse[1] + query * p.lse[2])] =
              total == 0.0f ? -INFINITY : highest[row] + log(total);
      }
    }
  }
}
