#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "graph/onnx/mapped_file.h"

namespace xpuruntime::onnx {

/// Where a constant lies outside the model's file.
struct ExternalPlace {
  std::string location = {};
  std::size_t offset = 0;
  std::optional<std::size_t> length = {};

  /// One entry of ONNX's list; keys that say nothing about the place are passed over.
  void set(std::string_view key, std::string_view value);
};

/// The files in a model's folder that have its constants, each mapped once.
class ExternalData {
 public:
  /// An empty folder: the model may have no such files.
  explicit ExternalData(std::string folder) : folder_(std::move(folder)) {}

  /// `size` bytes at a place. Fails if it is outside the folder, also by way of a symbolic link, or outside its file.
  SharedBytes find(const ExternalPlace& place, std::size_t size);

  /// Says that bytes of the place are read or copied while the model is loaded. A few bytes of a model can name a large
  /// file many times over: that is an error.
  void count_work(const ExternalPlace& place, std::size_t size);

  /// Says that a file belongs to the model, though nothing reads what it has there.
  void note(const std::string& location);

  /// By path, the identity that each file of the model had before it was read.
  const std::map<std::string, std::string>& files() const { return files_; }

 private:
  struct File {
    SharedBytes data = {};
    std::size_t work = 0;
  };
  File& file_of(const std::string& location);

  std::string folder_;
  std::map<std::string, std::shared_ptr<File>> by_location_ = {};
  std::map<std::string, std::shared_ptr<File>> by_path_ = {};
  std::map<std::string, std::string> files_ = {};
};

}  // namespace xpuruntime::onnx
