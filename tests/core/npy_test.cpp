#include "core/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/elements.h"
#include "expect_error.h"

namespace xpuruntime {
namespace {

const JsonSource source{"test", "array file 'x.npy' ", "array"};

/// A file as NumPy writes it, by hand.
std::string file(const std::string& header, const std::string& numbers, char version = 1) {
  std::string bytes = std::string("\x93NUMPY") + version + '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  if (version > 1) bytes += std::string(2, '\0');
  return bytes + header + numbers;
}

std::string numbers(std::initializer_list<float> values) {
  std::string bytes(values.size() * 4, '\0');
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

TEST(Npy, ReadsHeadersOfAllVersionsWithKeysInAnyOrder) {
  for (const char version : {'\1', '\2', '\3'}) {
    const Tensor x = parse_npy(
        file("{\"shape\": (2, 1), 'fortran_order':False,'descr': '<f4'}  \n", numbers({1.5f, -2}), version), source);
    EXPECT_EQ(x.shape(), (Dims{2, 1}));
    EXPECT_EQ(x.as<float>()[0], 1.5f);
    EXPECT_EQ(x.as<float>()[1], -2);
  }
}

TEST(Npy, WhatIsWrittenIsReadBackInEveryDtype) {
  for (const Dims& shape : {Dims{}, Dims{3}, Dims{2, 0}, Dims{2, 3, 1}}) {
    for (int i = 0; i < data_type_count; ++i) {
      const auto dtype = static_cast<DataType>(i);
      const Tensor x = Tensor::empty(dtype, shape);
      const std::int64_t count = element_count(x.spec());
      for (std::int64_t at = 0; at < count; ++at) storer_of(dtype)(x.data(), at, static_cast<double>(at % 2));
      const std::string bytes = npy_bytes(x);
      const Tensor y = parse_npy(bytes, source);
      EXPECT_EQ((bytes.size() - y.span()) % 64, 0u);  // as NumPy aligns them
      EXPECT_EQ(y.shape(), shape);
      EXPECT_TRUE(y.dtype() == dtype || y.dtype() == DataType::float32) << to_string(dtype);
      for (std::int64_t at = 0; at < count; ++at) {
        EXPECT_EQ(loader_of(y.dtype())(y.data(), at), static_cast<double>(at % 2)) << to_string(dtype);
      }
    }
  }
}

TEST(Npy, DamagedAndForeignFilesAreErrorsThatSayWhatToSave) {
  const std::string two = numbers({1, 2});
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  EXPECT_NO_THROW(parse_npy(file(good, two), source));
  const auto refused = [&](const std::string& bytes, ErrorCode code, const char* says) {
    expect_error(code, says, [&] { parse_npy(bytes, source); });
  };
  refused("", ErrorCode::corrupt_data, "no array file");
  refused("PK\x03\x04 an archive", ErrorCode::corrupt_data, "no array file");
  refused(file(good, two, 4), ErrorCode::invalid_argument, "version 4.0");
  refused(file(good, two).substr(0, 30), ErrorCode::corrupt_data, "truncated");
  refused(file(good, two + "x"), ErrorCode::corrupt_data, "has 9 bytes of numbers");
  refused(file(good, two.substr(1)), ErrorCode::corrupt_data, "has 7 bytes of numbers");
  const auto header = [&](const std::string& type, const std::string& order, const std::string& shape) {
    return file("{'descr': " + type + ", 'fortran_order': " + order + ", 'shape': " + shape + "}", two);
  };
  refused(header("'>f4'", "False", "(2,)"), ErrorCode::invalid_argument, "newbyteorder");
  refused(header("'|O'", "False", "(2,)"), ErrorCode::invalid_argument, "dtype '|O'");
  refused(header("[('a', '<f4')]", "False", "(2,)"), ErrorCode::invalid_argument, "records");
  refused(header("'<f4'", "True", "(2, 1)"), ErrorCode::invalid_argument, "ascontiguousarray");
  refused(header("'<f4'", "False", "(1,1,1,1,1,1,1,1,2)"), ErrorCode::invalid_argument, "8 dimensions");
  for (const char* shape : {"(-2,)", "(2", "2", "(2.0,)", "(2,,)", "(99999999999999999999,)"}) {
    refused(header("'<f4'", "False", shape), ErrorCode::corrupt_data, "header is damaged");
  }
  for (const char* shape : {"(4611686018427387904, 4)", "(9223372036854775807, 9223372036854775807)", "(3,)"}) {
    refused(header("'<f4'", "False", shape), ErrorCode::corrupt_data, "bytes of numbers");
  }
  for (const char* text :
       {"", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'descr': '<f4', 'shape': (2,)}", "{'other': 1}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}", "{'descr': '<f4"}) {
    refused(file(text, two), ErrorCode::corrupt_data, "header is damaged");
  }
  refused(file(good + "{}", two), ErrorCode::corrupt_data, "header is damaged");
}

TEST(Npy, EveryCutAndChangedByteIsReadOrRefused) {
  const std::string whole = file("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }\n", numbers({1, 2}));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    EXPECT_THROW(parse_npy(whole.substr(0, at), source), Error);
    for (const char c : {'\0', '(', '9', '\xff'}) {
      std::string changed = whole;
      changed[at] = c;
      try {
        parse_npy(changed, source);
      } catch (const Error&) {  // NOLINT(bugprone-empty-catch): either is right
      }
    }
  }
}

}  // namespace
}  // namespace xpuruntime
