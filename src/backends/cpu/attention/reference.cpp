#include <cmath>
#include <limits>

#include "backends/cpu/attention/kernels.h"
#include "backends/cpu/attention/shape.h"
#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/scalar_extremes.h"

namespace xpuruntime::cpu {
namespace {

constexpr double nothing = -std::numeric_limits<double>::infinity();

/// One query after the other. The scores are computed three times over rather than kept: it needs no memory.
class ReferencePlan final : public Plan {
 public:
  explicit ReferencePlan(const Problem& problem) : shape_(attention_shape(problem)) {}

  Status run(const RunArguments& arguments) const override {
    const AttentionShape shape = attention_shape(shape_, arguments);
    const Sequences sequences(shape, arguments);
    if (Status status = sequences.check(); !status.ok()) return status;
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      for (std::int64_t h = 0; h < shape.heads; ++h) {
        for (std::int64_t i = 0; i < shape.queries; ++i) Row(shape, arguments, sequences, b, h, i).compute();
      }
    }
    return {};
  }

 private:
  struct Row {
    Row(const AttentionShape& attention, const RunArguments& arguments, const Sequences& of, std::int64_t batch,
        std::int64_t h, std::int64_t i)
        : shape(attention),
          sequences(of),
          b(batch),
          key_head(h / shape.group),
          q(element_at(arguments.inputs[0]->as<const std::byte>(), shape.q_dtype, shape.q.at(b, h, i))),
          k(arguments.inputs[1]->as<const std::byte>()),
          v(arguments.inputs[2]->as<const std::byte>()),
          mask(shape.has_mask ? arguments.inputs[3]->as<const std::byte>() : nullptr),
          mask_at(shape.mask.at(b, h, i)),
          out(arguments.outputs[0]->as<std::byte>()),
          out_at(shape.out.at(b, h, i)),
          lse(shape.has_lse ? arguments.outputs[1] : nullptr),
          lse_at(shape.lse.at(b, h, i)),
          keys(sequences.keys_of(b, i)) {}

    /// `nothing` for a key that takes no part.
    double score(std::int64_t j) const {
      double added = 0;
      if (mask != nullptr) {
        added = loader_of(shape.mask_dtype)(mask, mask_at + j * shape.mask.column);
        if (shape.mask_dtype == DataType::boolean) {
          if (added == 0) return nothing;  // whatever its score
          added = 0;
        }
      }
      const LoadElement load_q = loader_of(shape.q_dtype), load_k = loader_of(shape.k_dtype);
      const std::int64_t at = sequences.at(shape.k, b, key_head, j);
      double sum = 0;
      for (std::int64_t p = 0; p < shape.depth; ++p) {
        sum += load_q(q, p * shape.q.column) * load_k(k, at + p * shape.k.column);
      }
      return sum * shape.exact_scale + added;
    }

    void compute() const {
      double highest = nothing;
      for (std::int64_t j = 0; j < keys; ++j) highest = maximum(highest, score(j));
      double sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) sum += weight(j, highest);
      if (lse != nullptr)
        storer_of(lse->dtype())(lse->as<void>(), lse_at, sum == 0 ? nothing : highest + std::log(sum));
      const StoreElement store = storer_of(shape.out_dtype);
      // Columns in batches, so that the scores are not computed once more for each.
      constexpr std::int64_t batch = 256;
      for (std::int64_t first = 0; first < shape.width; first += batch) {
        const std::int64_t count = std::min(batch, shape.width - first);
        double sums[batch] = {};
        add_values(highest, first, count, sums);
        for (std::int64_t c = 0; c < count; ++c) {
          store(out, out_at + (first + c) * shape.out.column, sum == 0 ? 0 : sums[c] / sum);
        }
      }
    }

    void add_values(double highest, std::int64_t first, std::int64_t count, double* sums) const {
      const LoadElement load = loader_of(shape.v_dtype);
      for (std::int64_t j = 0; j < keys; ++j) {
        const double factor = weight(j, highest);
        if (factor == 0) continue;
        const std::int64_t at = sequences.at(shape.v, b, key_head, j);
        for (std::int64_t c = 0; c < count; ++c) sums[c] += factor * load(v, at + (first + c) * shape.v.column);
      }
    }

    double weight(std::int64_t j, double highest) const {
      const double value = score(j);
      return value == nothing ? 0 : std::exp(value - highest);
    }

    const AttentionShape& shape;
    const Sequences& sequences;
    std::int64_t b;
    std::int64_t key_head;
    const void* q;
    const void* k;
    const void* v;
    const void* mask;
    std::int64_t mask_at;
    void* out;
    std::int64_t out_at;
    const Tensor* lse;
    std::int64_t lse_at;
    std::int64_t keys;
  };

  AttentionShape shape_;  // but for the keys
};

}  // namespace

std::unique_ptr<const Plan> prepare_attention_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ReferencePlan>(problem);
}

}  // namespace xpuruntime::cpu
