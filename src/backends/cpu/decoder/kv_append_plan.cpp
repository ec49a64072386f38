#include <cstring>
#include <string>

#include "backends/cpu/base/convert.h"
#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/decoder/kernels.h"
#include "backends/cpu/movement/strided.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

constexpr std::size_t page_table = 5;

std::int64_t read(const Problem& problem, const RunArguments& arguments, std::size_t input, std::int64_t offset) {
  return integer_loader_of(problem.inputs[input].dtype)(arguments.inputs[input]->as<void>(), offset);
}

/// Where tokens go: the cache as [block, slot, head, size], where a block is a page or all of a sequence.
class Places {
 public:
  explicit Places(const Problem& problem)
      : problem_(problem),
        paged_(problem.inputs.size() > page_table),
        tokens_(problem.inputs[2].shape[2]),
        slots_(problem.inputs[0].shape[paged_ ? 1 : 2]) {}

  std::int64_t sequences() const { return problem_.inputs[2].shape[0]; }
  std::int64_t heads() const { return problem_.inputs[2].shape[1]; }
  std::int64_t tokens() const { return tokens_; }

  /// Ok where each sequence has room, in pages that there are.
  Status check(const RunArguments& arguments) const {
    const std::int64_t room = op_info(problem_.op).inputs[4].bound(problem_);
    for (std::int64_t sequence = 0; sequence < sequences() && tokens_ > 0; ++sequence) {
      const std::int64_t length = length_of(arguments, sequence);
      if (length < 0 || length >= room) {
        return wrong(
            "length " + std::to_string(length) + " of sequence " + std::to_string(sequence),
            "one from 0 to " + std::to_string(room - 1) + ", so that " + std::to_string(tokens_) + " tokens fit");
      }
      if (!paged_) continue;
      for (std::int64_t i = length / slots_; i <= (length + tokens_ - 1) / slots_; ++i) {
        const std::int64_t page = page_of(arguments, sequence, i), pages = problem_.inputs[0].shape[0];
        if (page >= 0 && page < pages) continue;
        return wrong("page " + std::to_string(page) + " of sequence " + std::to_string(sequence),
                     pages == 0 ? "a cache with pages" : "one from 0 to " + std::to_string(pages - 1));
      }
    }
    return {};
  }

  /// The offset in a cache of these strides of a sequence's token, head 0.
  std::int64_t offset(const RunArguments& arguments, std::int64_t sequence, std::int64_t token,
                      const Dims& strides) const {
    const std::int64_t position = length_of(arguments, sequence) + token;
    if (!paged_) return sequence * strides[0] + position * strides[2];
    return page_of(arguments, sequence, position / slots_) * strides[0] + position % slots_ * strides[1];
  }
  std::int64_t head_stride(const Dims& strides) const { return strides[paged_ ? 2 : 1]; }

 private:
  static Status wrong(const std::string& what, const std::string& advice) {
    return Status(ErrorCode::invalid_argument, what + " is outside; give " + advice);
  }
  std::int64_t length_of(const RunArguments& arguments, std::int64_t sequence) const {
    return read(problem_, arguments, 4, sequence * problem_.inputs[4].strides[0]);
  }
  std::int64_t page_of(const RunArguments& arguments, std::int64_t sequence, std::int64_t i) const {
    const Dims& strides = problem_.inputs[page_table].strides;
    return read(problem_, arguments, page_table, sequence * strides[0] + i * strides[1]);
  }

  Problem problem_;
  bool paged_;
  std::int64_t tokens_;
  std::int64_t slots_;  // of a block
};

/// One head of one token, as a tensor.
TensorSpec row_of(const TensorSpec& spec) {
  TensorSpec row = spec;
  row.shape = Dims{spec.shape.back()};
  row.strides = Dims{spec.strides.back()};
  return row;
}

/// Stores the elements of one tensor in another of its shape.
using MoveElements = void (*)(const TensorSpec& from, const void* in, const TensorSpec& to, void* out, int threads);

/// `copy` moves a cache that is not written in place, `move_head` one head of one token.
class AppendPlan final : public Plan {
 public:
  AppendPlan(const Problem& problem, MoveElements copy, MoveElements move_head, int threads)
      : problem_(problem), places_(problem), copy_(copy), move_head_(move_head), threads_(threads) {}

  Status run(const RunArguments& arguments) const override {
    Status status = places_.check(arguments);
    if (!status.ok()) return status;
    for (const std::size_t cache : {0, 1}) {
      const void* in = arguments.inputs[cache]->as<void>();
      void* out = arguments.outputs[cache]->as<void>();
      if (in != out) copy_(problem_.inputs[cache], in, problem_.outputs[cache], out, threads_);
    }
    // Cut by heads: each thread takes all tokens in order, so that of two in one place the later one stays.
    const std::int64_t heads = places_.heads(), tokens = places_.sequences() * places_.tokens();
    parallel_for(2 * heads, grain_rows / (tokens + 1) + 1, threads_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) append(arguments, static_cast<std::size_t>(i / heads), i % heads);
    });
    return status;
  }

 private:
  static constexpr std::int64_t grain_rows = 256;

  /// One head of all tokens.
  void append(const RunArguments& arguments, std::size_t cache, std::int64_t head) const {
    const TensorSpec &added = problem_.inputs[2 + cache], &out = problem_.outputs[cache];
    const TensorSpec from = row_of(added), to = row_of(out);
    const auto* in = arguments.inputs[2 + cache]->as<const std::byte>();
    auto* memory = arguments.outputs[cache]->as<std::byte>();
    for (std::int64_t sequence = 0; sequence < places_.sequences(); ++sequence) {
      for (std::int64_t token = 0; token < places_.tokens(); ++token) {
        const std::int64_t source = sequence * added.strides[0] + head * added.strides[1] + token * added.strides[2];
        const std::int64_t target =
            places_.offset(arguments, sequence, token, out.strides) + head * places_.head_stride(out.strides);
        move_head_(from, in + source * static_cast<std::int64_t>(size_of(from.dtype)), to,
                   memory + target * static_cast<std::int64_t>(size_of(to.dtype)), 1);
      }
    }
  }

  Problem problem_;
  Places places_;
  MoveElements copy_, move_head_;
  int threads_;
};

void copy_bytes(const TensorSpec& from, const void* in, const TensorSpec& to, void* out, int threads) {
  StridedCopy(from, to).run(in, out, threads);
}

void move_head_bytes(const TensorSpec& from, const void* in, const TensorSpec& to, void* out, int) {
  const std::int64_t count = to.shape[0], in_stride = from.strides[0], out_stride = to.strides[0];
  const auto size = static_cast<std::int64_t>(size_of(to.dtype));
  if (count == 0) return;  // also memory that is null
  if (count == 1 || (in_stride == 1 && out_stride == 1)) {
    std::memcpy(out, in, static_cast<std::size_t>(count * size));
    return;
  }
  // A constant size: one instruction each, whatever the alignment.
  with_size(size, [&](auto element) {
    const auto* from_byte = static_cast<const std::byte*>(in);
    auto* to_byte = static_cast<std::byte*>(out);
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(to_byte + i * out_stride * size, from_byte + i * in_stride * size, sizeof element);
    }
  });
}

/// Lengths and pages are read as numbers; all else is moved, whatever its alignment.
Verdict has_aligned_places(const Problem& problem) {
  for (std::size_t i = 4; i < problem.inputs.size(); ++i) {
    if (problem.inputs[i].alignment >= size_of(problem.inputs[i].dtype)) continue;
    return Verdict::no("input " + std::to_string(i) + " is not aligned to its elements");
  }
  return Verdict::yes();
}

}  // namespace

Verdict supports_kv_append_rows(const Problem& problem, const DeviceProfile&) {
  for (const std::size_t cache : {0, 1}) {
    const DataType dtype = problem.inputs[cache].dtype;
    for (const auto& [name, spec] : {std::pair("input " + std::to_string(2 + cache), &problem.inputs[2 + cache]),
                                     std::pair("output " + std::to_string(cache), &problem.outputs[cache])}) {
      if (const Verdict same = is_same_dtype(name, spec->dtype, "the cache's", dtype); !same.supported) return same;
    }
  }
  return has_aligned_places(problem);
}

std::unique_ptr<const Plan> prepare_kv_append_rows(const Problem& problem, const PrepareContext&) {
  return std::make_unique<AppendPlan>(problem, copy_bytes, move_head_bytes, threads_for(problem));
}

std::unique_ptr<const Plan> prepare_kv_append_reference(const Problem& problem, const PrepareContext&) {
  const MoveElements convert = [](const TensorSpec& from, const void* in, const TensorSpec& to, void* out, int) {
    convert_elements(from, in, to, out);
  };
  return std::make_unique<AppendPlan>(problem, convert, convert, 1);
}

}  // namespace xpuruntime::cpu
