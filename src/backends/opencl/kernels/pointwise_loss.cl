// Losses of elements, a part of them by each team. After vectors.cl. Where they are reduced, the sum of a part and 0 go
// to `pairs`.

#define ADD_UP(a, b) ((a) + (b))
TEAM_FOLD(team_sum, float, ADD_UP)

enum { divergence, divergence_of_logs, poisson, poisson_of_logs };

// t log(t) - t + log(2 pi t) / 2 for t > 1, else 0.
#define STIRLING(t, one) ((t) > 1.0f ? (t)*log(t) - (t) + log(6.28318530718f * (t)) * 0.5f : (one)(0.0f))

#define LOSS_OF(name, type)                                                       \
  type name(int kind, int full, float eps, type x, type t) {                      \
    if (kind == divergence) return t * ((t == 0.0f ? (type)(0.0f) : log(t)) - x); \
    if (kind == divergence_of_logs) return exp(t) * (t - x);                      \
    const type loss = kind == poisson ? x - t * log(x + eps) : exp(x) - t * x;    \
    return full ? loss + STIRLING(t, type) : loss;                                \
  }
LOSS_OF(loss_of, float)
#if WIDTH > 1
LOSS_OF(losses_of, Vec)
#else
#define losses_of loss_of
#endif

enum { slot_x, slot_target, slot_y };

__kernel void pointwise_loss(__global const STORAGE(A_TYPE) * x, ulong x_start, __global const void* target,
                             ulong target_start, int target_type, __global void* y, ulong y_start, int y_type,
                             __global float* pairs, ulong pairs_start, Nest nest, long part_length, int dense, int kind,
                             int full, float eps TEAM_PARAM(float)) {
  TEAM_PLACE(part)
  const long begin = part * part_length, end = min(begin + part_length, nest.count);
  const long vectors = dense && end > begin ? (end - begin) / WIDTH : 0;
  Vec sums = 0.0f;
  for (long i = lane; i < vectors; i += lanes) {
    const ulong at = (ulong)(begin + i * WIDTH);
    const Vec loss = losses_of(kind, full, eps, LOADS(A_TYPE)(x, x_start + at),
                               loads_as(target, target_type, target_start + at, 0.0f));
    stores_as(y, y_type, y_start + at, loss);
    sums += loss;
  }
  float sum = 0.0f;
  for (long i = begin + vectors * WIDTH + lane; i < end; i += lanes) {
    const Places at = places_of(nest, i);
    const ulong target_at = target_start + at.at[slot_target];
    const float t = target_type <= type_bf16 ? load_as(target, target_type, target_at, 0.0f)
                                             : (float)load_integer(target, target_type, target_at);
    const float loss = loss_of(kind, full, eps, LOAD(A_TYPE)(x, x_start + at.at[slot_x]), t);
    store_as(y, y_type, y_start + at.at[slot_y], loss);
    sum += loss;
  }
  sum = team_sum(sum + SUM_OF(sums) TEAM);
  if (lane == 0 && y_type == type_none && begin < nest.count)
    vstore2((float2)(sum, 0.0f), (ulong)part, pairs + pairs_start);
}
