#pragma once

#include <array>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime::cpu {

/// A gather or a scatter as positions, each of which has indices and moves a slice between the tensor that they lead
/// into, `table`, and the other one, `list`.
struct Places {
  explicit Places(const Problem& problem);

  /// Ok if all indices are inside their dims, counted from either end; else an error that names the first that is not.
  Status check(const void* indices) const;

  /// One of the indices of a position.
  struct Column {
    std::int64_t index_stride = 0;  // from the position's first index
    std::int64_t table_stride = 0;
    std::int64_t extent = 0;
  };

  // The positions, with strides in elements; a dim that does not count in a tensor has stride 0 there.
  TensorSpec table = {};
  TensorSpec indices = {};
  TensorSpec list = {};
  TensorSpec table_slice = {};
  TensorSpec list_slice = {};
  std::array<Column, max_rank> columns = {};
  std::size_t column_count = 0;
  TensorSpec all_indices = {};  // as they were given

 private:
  void add_position(std::int64_t extent, std::int64_t of_table, std::int64_t of_indices, std::int64_t of_list);
  void set_slice(const TensorSpec& whole, std::size_t from, std::size_t list_from);
  void along_dim(const Problem& problem, const TensorSpec& whole);
  void by_elements(const Problem& problem, const TensorSpec& whole);
  void by_rows(const TensorSpec& whole, std::size_t batch);

  TensorSpec whole_list_ = {};
};

/// An index that is inside, from the front.
inline std::int64_t from_front(std::int64_t index, std::int64_t extent) { return index < 0 ? index + extent : index; }

/// The bits of one element of a dtype, given as an element of another: what is written where there is no input.
struct Filler {
  explicit Filler(DataType dtype) : dtype(dtype) {}
  Filler(const TensorSpec& spec, const void* value, DataType dtype);
  /// So many elements, in line.
  void fill(void* out, std::int64_t count) const;

  DataType dtype;
  alignas(8) std::array<std::byte, 8> bits = {};
};

}  // namespace xpuruntime::cpu
