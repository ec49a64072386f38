#include <cstring>

#include "backends/cpu/base/convert.h"
#include "backends/cpu/base/nest.h"
#include "backends/cpu/base/problem_plan.h"
#include "backends/cpu/base/scalar_extremes.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/indexing/kernels.h"
#include "backends/cpu/indexing/places.h"
#include "backends/cpu/movement/strided.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

/// The offset into the table that the indices of a position add.
template <class Load>
std::int64_t indexed_offset(const Places& places, const Load& load, std::int64_t at) {
  std::int64_t offset = 0;
  for (std::size_t c = 0; c < places.column_count; ++c) {
    const Places::Column& column = places.columns[c];
    offset += from_front(load(at + column.index_stride), column.extent) * column.table_stride;
  }
  return offset;
}

/// Calls `body` with a function that reads an index, of the usual types without a call for each.
template <class Body>
void with_indices(DataType dtype, const void* indices, const Body& body) {
  if (dtype == DataType::int64) {
    return body([from = static_cast<const std::int64_t*>(indices)](std::int64_t i) { return from[i]; });
  }
  if (dtype == DataType::int32) {
    return body([from = static_cast<const std::int32_t*>(indices)](std::int64_t i) { return std::int64_t{from[i]}; });
  }
  body([indices, load = integer_loader_of(dtype)](std::int64_t i) { return load(indices, i); });
}

/// Moves whole slices, the bytes as they are: from the table to the list, or the other way.
template <bool scatters>
class SlicePlan final : public Plan {
 public:
  explicit SlicePlan(const Problem& problem)
      : places_(problem),
        nest_(places_.list.shape, {&places_.table, &places_.indices, &places_.list}, NestOrder::row_major),
        table_(scatters ? problem.inputs[0] : TensorSpec{}),
        size_(static_cast<std::int64_t>(size_of(places_.table.dtype))),
        bytes_(element_count(places_.table_slice) * size_),
        // Of two writes to one place the later one stays: one thread writes.
        threads_(scatters ? 1 : threads_for(problem)),
        copy_threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    const void* indices = arguments.inputs[1]->as<void>();
    Status status = places_.check(indices);
    if (!status.ok()) return status;
    auto* out = arguments.outputs[0]->as<std::byte>();
    const auto* in = arguments.inputs[scatters ? 2 : 0]->as<const std::byte>();
    const auto* table = arguments.inputs[0]->as<const std::byte>();
    if (scatters && table != out) copy(table, out);
    if (bytes_ == 0) return status;
    with_indices(places_.indices.dtype, indices, [&](const auto& load) {
      parallel_for(nest_.count(), grain_bytes / (bytes_ + 16) + 1, threads_, [&](std::int64_t begin, std::int64_t end) {
        if (bytes_ == size_) {
          with_size(size_, [&](auto element) { move<decltype(element)>(load, in, out, begin, end); });
        } else {
          move<void>(load, in, out, begin, end);
        }
      });
    });
    return status;
  }

 private:
  static constexpr std::int64_t grain_bytes = 65536;

  void copy(const std::byte* from, std::byte* to) const {
    const std::int64_t bytes = element_count(table_) * size_;
    parallel_for(bytes, 16 * grain_bytes, copy_threads_, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
    });
  }

  /// `Element`: of a slice of one; void: slices of more.
  template <class Element, class Load>
  void move(const Load& load, const std::byte* in, std::byte* out, std::int64_t begin, std::int64_t end) const {
    nest_.for_blocks(begin, end, [&](const auto& offsets, std::int64_t rows, std::int64_t columns, std::int64_t) {
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
          const std::int64_t at = offsets[1] + r * nest_.stride(1, 1) + c * nest_.stride(1, 0);
          const std::int64_t table = offsets[0] + r * nest_.stride(0, 1) + c * nest_.stride(0, 0) + place(load, at);
          const std::int64_t list = offsets[2] + r * nest_.stride(2, 1) + c * nest_.stride(2, 0);
          move_slice<Element>(in + (scatters ? list : table) * size_, out + (scatters ? table : list) * size_);
        }
      }
    });
  }

  template <class Load>
  std::int64_t place(const Load& load, std::int64_t at) const {
    if (places_.column_count > 1) return indexed_offset(places_, load, at);
    return from_front(load(at), places_.columns[0].extent) * places_.columns[0].table_stride;
  }

  template <class Element>
  void move_slice(const std::byte* from, std::byte* to) const {
    if constexpr (std::is_void_v<Element>) {
      std::memcpy(to, from, static_cast<std::size_t>(bytes_));
    } else {
      std::memcpy(to, from, sizeof(Element));
    }
  }

  Places places_;
  Nest<3> nest_;
  TensorSpec table_;  // of a scatter
  std::int64_t size_;
  std::int64_t bytes_;  // of a slice
  int threads_;
  int copy_threads_;
};

/// Calls `body` with the offsets of table and list, position by position.
template <class Body>
void for_positions(const Places& places, const void* indices, const Body& body) {
  const LoadInteger load = integer_loader_of(places.indices.dtype);
  Walk<3> walk(places.list.shape, places.table, places.indices, places.list);
  for (; walk.more(); walk.next()) {
    const std::int64_t place = indexed_offset(
        places, [&](std::int64_t i) { return load(indices, i); }, walk.offset(1));
    body(walk.offset(0) + place, walk.offset(2));
  }
}

template <class Byte>
Byte* at(Byte* base, const TensorSpec& spec, std::int64_t offset) {
  return base + offset * static_cast<std::int64_t>(size_of(spec.dtype));
}

Status run_gather(const Problem& problem, const RunArguments& arguments) {
  const Places places(problem);
  const void* indices = arguments.inputs[1]->as<void>();
  Status status = places.check(indices);
  if (!status.ok()) return status;
  const auto* in = arguments.inputs[0]->as<const std::byte>();
  auto* out = arguments.outputs[0]->as<std::byte>();
  for_positions(places, indices, [&](std::int64_t table, std::int64_t list) {
    convert_elements(places.table_slice, at(in, places.table, table), places.list_slice, at(out, places.list, list));
  });
  return status;
}

/// What there is and what comes, as one.
template <class Value>
Value reduced(std::string_view reduction, Value there, Value update) {
  if (reduction == "max") return maximum(there, update);
  if (reduction == "min") return minimum(there, update);
  if constexpr (std::is_same_v<Value, double>) {
    return reduction == "add" ? there + update : there * update;
  } else {
    return reduction == "add" ? multiply_add(there, Value{1}, update) : multiply_add(Value{0}, there, update);
  }
}

template <class Load, class Store>
void reduce_slice(std::string_view reduction, const Places& places, const void* update, void* out, Load load,
                  Load load_update, Store store) {
  Walk<2> walk(places.table_slice.shape, places.table_slice, places.list_slice);
  for (; walk.more(); walk.next()) {
    store(out, walk.offset(0), reduced(reduction, load(out, walk.offset(0)), load_update(update, walk.offset(1))));
  }
}

Status run_scatter(const Problem& problem, const RunArguments& arguments) {
  const Places places(problem);
  const void* indices = arguments.inputs[1]->as<void>();
  Status status = places.check(indices);
  if (!status.ok()) return status;
  const auto* data = arguments.inputs[0]->as<const std::byte>();
  const auto* updates = arguments.inputs[2]->as<const std::byte>();
  auto* out = arguments.outputs[0]->as<std::byte>();
  if (data != out) convert_elements(problem.inputs[0], data, problem.outputs[0], out);
  const std::string_view reduction = problem.attributes.choice("reduction");
  const DataType to = places.table.dtype, from = places.list.dtype;
  for_positions(places, indices, [&](std::int64_t table, std::int64_t list) {
    const void* update = at(updates, places.list, list);
    void* place = at(out, places.table, table);
    if (reduction == "none") {
      convert_elements(places.list_slice, update, places.table_slice, place);
    } else if (is_floating(to) || is_floating(from)) {
      reduce_slice(reduction, places, update, place, loader_of(to), loader_of(from), storer_of(to));
    } else {
      reduce_slice(reduction, places, update, place, integer_loader_of(to), integer_loader_of(from),
                   integer_storer_of(to));
    }
  });
  return status;
}

}  // namespace

Verdict supports_gather_rows(const Problem& problem, const DeviceProfile&) {
  if (const Verdict same = is_same_dtype("input 0", problem.inputs[0].dtype, "the output's", problem.outputs[0].dtype);
      !same.supported) {
    return same;
  }
  return is_contiguous(problem);
}

Verdict supports_scatter_rows(const Problem& problem, const DeviceProfile& profile) {
  const std::string_view reduction = problem.attributes.choice("reduction");
  if (reduction != "none") return Verdict::no("reduction is " + std::string(reduction) + ", and this kernel has none");
  if (const Verdict verdict = supports_gather_rows(problem, profile); !verdict.supported) return verdict;
  return is_same_dtype("input 2", problem.inputs[2].dtype, "the output's", problem.outputs[0].dtype);
}

std::unique_ptr<const Plan> prepare_gather_rows(const Problem& problem, const PrepareContext&) {
  return std::make_unique<SlicePlan<false>>(problem);
}

std::unique_ptr<const Plan> prepare_scatter_rows(const Problem& problem, const PrepareContext&) {
  return std::make_unique<SlicePlan<true>>(problem);
}

std::unique_ptr<const Plan> prepare_gather_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_gather);
}

std::unique_ptr<const Plan> prepare_scatter_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_scatter);
}

}  // namespace xpuruntime::cpu
