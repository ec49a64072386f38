#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/expect_error.h"
#include "graph/onnx_bytes.h"
#include "xpuruntime/graph/model.h"
#include "xpuruntime/graph/session.h"

namespace xpuruntime {
namespace {

namespace fs = std::filesystem;
using namespace testing;

Proto model_of(const Proto& constant) { return model({{}, {constant}, {}, {}}); }

Tensor read(const Proto& constant, const std::string& folder = {}) {
  return parse_onnx(model_of(constant).bytes(), folder).graph.constants.at("w");
}

void expect_refusal(ErrorCode code, const std::string& part, const Proto& constant, const std::string& folder = {}) {
  expect_error(code, part, [&] { (void)read(constant, folder); });
}

std::string bytes_of(const Tensor& tensor) { return {tensor.as<const char>(), tensor.span()}; }

template <class T>
std::string as_bytes(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

/// A folder with a model's files, next to a file that is outside of it.
class OnnxFolder : public ::testing::Test {
 protected:
  OnnxFolder() : root_(fs::temp_directory_path() / ("onnx_" + std::to_string(::getpid()))) {
    fs::create_directories(root_ / "model" / "sub");
    write("outside.bin", "outside!");
    write("model/data.bin", as_bytes<float>({1, 2, 3, 4}));
    write("model/sub/data.bin", as_bytes<float>({5, 6}));
  }
  ~OnnxFolder() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  std::string folder() const { return (root_ / "model").string(); }
  void expect_corrupt(const std::string& part, const Proto& constant) const {
    expect_refusal(ErrorCode::corrupt_data, part, constant, folder());
  }

  fs::path root_;
};

TEST(OnnxConstants, AreReadFromTheListOfTheirType) {
  const auto reads = [](std::int64_t type, DataType dtype, auto field, const std::string& expected) {
    const Tensor tensor = read(field(testing::tensor("w", type, {2})));
    EXPECT_EQ(tensor.dtype(), dtype);
    EXPECT_EQ(tensor.shape(), Dims{2});
    EXPECT_TRUE(tensor.read_only());
    EXPECT_EQ(bytes_of(tensor), expected) << to_string(dtype);
  };
  const auto int32_data = [](std::int64_t a, std::int64_t b) {
    return [=](Proto written) { return written.packed(5, {a, b}); };
  };
  reads(
      1, DataType::float32, [](Proto written) { return written.real(4, 1.5f).real(4, -0.0f); },
      as_bytes<float>({1.5f, -0.0f}));
  reads(
      11, DataType::float64, [](Proto written) { return written.real64(10, 1e300).real64(10, -2); },
      as_bytes<double>({1e300, -2}));
  reads(
      7, DataType::int64,
      [](Proto written) {
        return written.packed(7, {INT64_MIN, INT64_MAX});
      },
      as_bytes<std::int64_t>({INT64_MIN, INT64_MAX}));
  reads(
      7, DataType::int64, [](Proto written) { return written.number(7, -1).number(7, 2); },
      as_bytes<std::int64_t>({-1, 2}));
  reads(6, DataType::int32, int32_data(INT32_MIN, INT32_MAX), as_bytes<std::int32_t>({INT32_MIN, INT32_MAX}));
  reads(5, DataType::int16, int32_data(-32768, 32767), as_bytes<std::int16_t>({-32768, 32767}));
  reads(3, DataType::int8, int32_data(-128, 127), as_bytes<std::int8_t>({-128, 127}));
  reads(2, DataType::uint8, int32_data(0, 255), as_bytes<std::uint8_t>({0, 255}));
  reads(9, DataType::boolean, int32_data(1, 0), as_bytes<std::uint8_t>({1, 0}));
  reads(10, DataType::float16, int32_data(0x3c00, 0xfc00), as_bytes<std::uint16_t>({0x3c00, 0xfc00}));
  reads(16, DataType::bfloat16, int32_data(0x3f80, 0xffff), as_bytes<std::uint16_t>({0x3f80, 0xffff}));
  reads(17, DataType::float8_e4m3, int32_data(0x38, 0xff), as_bytes<std::uint8_t>({0x38, 0xff}));
  reads(19, DataType::float8_e5m2, int32_data(0x3c, 0xff), as_bytes<std::uint8_t>({0x3c, 0xff}));
}

TEST(OnnxConstants, AreReadFromPackedFloats) {
  const Tensor tensor = read(testing::tensor("w", 1, {2, 1}).text(4, as_bytes<float>({1, 2})));
  EXPECT_EQ(tensor.shape(), (Dims{2, 1}));
  EXPECT_EQ(bytes_of(tensor), as_bytes<float>({1, 2}));
}

TEST(OnnxConstants, AreReadFromRawBytesAtAnyAlignment) {
  for (const std::int64_t type : {1, 2, 3, 5, 6, 7, 9, 10, 11, 16, 17, 19}) {
    for (std::size_t shift = 0; shift < 8; ++shift) {
      const Tensor probe = read(testing::tensor("w", type, {0}));
      const std::string bytes(3 * size_of(probe.dtype()), '\1');
      // A graph's name moves what stands behind it.
      const Proto moved =
          Proto().text(2, std::string(shift, 'n')).message(5, testing::tensor("w", type, {3}).text(9, bytes));
      const Tensor tensor = parse_onnx(model(moved).bytes()).graph.constants.at("w");
      EXPECT_EQ(bytes_of(tensor), bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % size_of(tensor.dtype()), 0u);
    }
  }
}

TEST(OnnxConstants, MayBeScalarsAndEmpty) {
  EXPECT_EQ(read(testing::tensor("w", 7, {}).number(7, 3)).shape(), Dims());
  EXPECT_EQ(read(testing::tensor("w", 7, {2, 0})).shape(), (Dims{2, 0}));
  EXPECT_EQ(read(testing::tensor("w", 7, {0}).text(9, "")).span(), 0u);
  EXPECT_EQ(read(external("w", "nowhere", "", "", 0)).span(), 0u);
}

TEST(OnnxConstants, OfTypesThatNoOpReadsAreKeptByNameAlone) {
  const std::pair<std::int64_t, std::string> types[] = {
      {4, "uint16"},          {8, "string"}, {12, "uint32"},     {13, "uint64"},  {14, "complex64"}, {15, "complex128"},
      {18, "float8e4m3fnuz"}, {22, "int4"},  {23, "float4e2m1"}, {99, "type 99"}, {-1, "type -1"}};
  for (const auto& [type, name] : types) {
    const Model model = parse_onnx(model_of(testing::tensor("w", type, {1})).bytes());
    EXPECT_TRUE(model.graph.constants.empty());
    EXPECT_EQ(model.graph.unread_constants.at("w"), name);
    const std::vector<MissingOp> missing = missing_ops(model);
    ASSERT_FALSE(missing.empty());
    EXPECT_EQ(missing[0].op, "constants of " + (name.starts_with("type ") ? name : "type " + name));
  }
  expect_refusal(ErrorCode::corrupt_data, "a constant without a name", testing::tensor("", 8, {1}));
  const Proto graph = testing::graph({.constants = {testing::tensor("w", 8, {1}), testing::tensor("w", 8, {1})}});
  EXPECT_THROW(parse_onnx(testing::model(graph).bytes()), Error);
}

TEST(OnnxConstants, ThatDoNotFitTheirDimsAreRefused) {
  const auto refuses = [](const std::string& part, const Proto& constant) {
    expect_refusal(ErrorCode::corrupt_data, part, constant);
  };
  refuses("constant 'w' has 7 bytes where its dims need 8", testing::tensor("w", 1, {2}).text(9, "1234567"));
  refuses("constant 'w' has 9 bytes where its dims need 8", testing::tensor("w", 1, {2}).text(9, "123456789"));
  refuses("has 4 bytes where its dims need 0", testing::tensor("w", 1, {0}).text(9, "1234"));
  refuses("has 1 elements where its dims need 2", testing::tensor("w", 1, {2}).real(4, 1));
  refuses("has 3 elements where its dims need 2", testing::tensor("w", 7, {2}).packed(7, {1, 2, 3}));
  refuses("has 0 elements where its dims need", testing::tensor("w", 1, {std::int64_t{1} << 60}));
  refuses("has the dim -1, which is negative", testing::tensor("w", 1, {-1}));
  refuses("63 bits", testing::tensor("w", 1, {std::int64_t{1} << 61}));
  refuses("63 bits", testing::tensor("w", 1, {INT64_MAX, 0, INT64_MAX}));
  refuses("in a list of another type", testing::tensor("w", 1, {1}).number(7, 1));
  refuses("its elements twice", testing::tensor("w", 1, {1}).real(4, 1).text(9, "1234"));
  refuses("its elements twice", external("w", "data.bin", "", "", 1).text(9, "1234"));
  refuses("its elements twice", external("w", "data.bin", "", "", 1).real(4, 1));
  refuses("has no element type", testing::tensor("w", 0, {1}));
  refuses("a value of 4 bytes where its message has 3 left", testing::tensor("w", 1, {1}).text(4, "123"));
  refuses("field 9 is a varint", testing::tensor("w", 1, {1}).number(9, 1));
}

TEST(OnnxConstants, HaveNoNumbersThatTheirTypeDoesNotHave) {
  const auto refuses = [](std::int64_t type, std::int64_t number, const std::string& part) {
    expect_refusal(ErrorCode::corrupt_data, part, testing::tensor("w", type, {1}).number(5, number));
  };
  refuses(3, 128, "has the number 128, which int8 does not have");
  refuses(5, -32769, "which int16 does not have");
  refuses(2, -1, "which uint8 does not have");
  refuses(9, 2, "which bool does not have");
  refuses(10, 65536, "which float16 does not have");
  refuses(17, 256, "which float8e4m3fn does not have");
  expect_refusal(ErrorCode::corrupt_data, "bytes other than 0 and 1", testing::tensor("w", 9, {2}).text(9, "\1\2"));
}

TEST(OnnxConstants, HaveAtMostEightDimsAndOneSegment) {
  EXPECT_EQ(read(testing::tensor("w", 2, {1, 1, 1, 1, 1, 1, 1, 1}).number(5, 1)).shape().size(), 8u);
  expect_refusal(ErrorCode::not_supported, "constant 'w' has rank 9",
                 testing::tensor("w", 2, {1, 1, 1, 1, 1, 1, 1, 1, 1}).number(5, 1));
  expect_refusal(ErrorCode::not_supported, "is stored in segments", testing::tensor("w", 1, {1}).message(3, Proto()));
}

TEST_F(OnnxFolder, ModelsAreMappedAndOutliveTheirFile) {
  const Proto constant = testing::tensor("w", 2, {4}).text(9, "abcd");
  const std::string path = folder() + "/m.onnx";
  write("model/m.onnx", model_of(constant).text());
  const Model model = load_onnx(path);
  EXPECT_EQ(model.path, path);
  fs::remove_all(root_);
  EXPECT_EQ(bytes_of(model.graph.constants.at("w")), "abcd");
}

TEST_F(OnnxFolder, FilesThatCannotBeModelsAreRefused) {
  const auto refuses = [&](ErrorCode code, const std::string& name, const std::string& part) {
    expect_error(code, part, [&] { (void)load_onnx(folder() + "/" + name); });
  };
  write("model/empty.onnx", "");
  write("model/text.onnx", "no model");
  ASSERT_EQ(mkfifo((folder() + "/pipe").c_str(), 0600), 0);
  refuses(ErrorCode::io_error, "none.onnx", "none.onnx' cannot be read: No such file");
  refuses(ErrorCode::io_error, "sub", "is no regular file");
  refuses(ErrorCode::io_error, "pipe", "is no regular file");
  refuses(ErrorCode::corrupt_data, "empty.onnx", "is empty");
  refuses(ErrorCode::corrupt_data, "text.onnx", "[load_onnx] ONNX file '" + folder() + "/text.onnx': byte ");
  expect_error(ErrorCode::io_error, "is no regular file", [] { (void)load_onnx("/dev/null"); });
}

TEST_F(OnnxFolder, ExternalDataIsMappedFromFilesInside) {
  EXPECT_EQ(bytes_of(read(external("w", "data.bin"), folder())), as_bytes<float>({1, 2}));
  EXPECT_EQ(bytes_of(read(external("w", "data.bin", "4", "8"), folder())), as_bytes<float>({2, 3}));
  EXPECT_EQ(bytes_of(read(external("w", "sub/data.bin", "0"), folder())), as_bytes<float>({5, 6}));
  EXPECT_EQ(bytes_of(read(external("w", "./sub/./data.bin"), folder())), as_bytes<float>({5, 6}));
  write("model/m.onnx", model_of(external("w", "data.bin", "8")).text());
  EXPECT_EQ(bytes_of(load_onnx(folder() + "/m.onnx").graph.constants.at("w")), as_bytes<float>({3, 4}));
}

TEST_F(OnnxFolder, ExternalDataIsMappedOnceForAllConstants) {
  fs::create_symlink("data.bin", root_ / "model" / "link.bin");
  const Proto parts =
      model({{}, {external("a", "data.bin"), external("b", "./data.bin", "8"), external("c", "link.bin")}, {}, {}});
  const auto& constants = parse_onnx(parts.bytes(), folder()).graph.constants;
  EXPECT_EQ(constants.at("a").owner(), constants.at("b").owner());
  EXPECT_EQ(constants.at("a").data(), constants.at("c").data());
  EXPECT_TRUE(constants.at("a").read_only());
}

TEST_F(OnnxFolder, ExternalDataThatIsNotAlignedIsCopied) {
  write("model/odd.bin", "x" + as_bytes<float>({7, 8}));
  const Tensor tensor = read(external("w", "odd.bin", "1"), folder());
  EXPECT_EQ(bytes_of(tensor), as_bytes<float>({7, 8}));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 4, 0u);
}

TEST_F(OnnxFolder, ExternalDataIsNotCopiedManyTimesOver) {
  write("model/odd.bin", std::string(1001, 'x'));
  GraphParts parts;
  for (int i = 0; i < 4; ++i) parts.constants.push_back(external(std::to_string(i), "odd.bin", "1", "1000", 250));
  EXPECT_EQ(parse_onnx(model(parts).bytes(), folder()).graph.constants.size(), 4u);
  for (int i = 4; i < 9; ++i) parts.constants.push_back(external(std::to_string(i), "odd.bin", "1", "1000", 250));
  expect_error(ErrorCode::corrupt_data, "used many times over",
               [&] { (void)parse_onnx(model(parts).bytes(), folder()); });
}

TEST_F(OnnxFolder, ExternalDataOutsideIsRefused) {
  fs::create_symlink("../outside.bin", root_ / "model" / "out.bin");
  fs::create_directory_symlink("..", root_ / "model" / "up");
  fs::create_directories(root_ / "model2");
  write("model2/data.bin", "12345678");
  fs::create_symlink("../model2/data.bin", root_ / "model" / "beside.bin");
  expect_corrupt("constant 'w': external data at '../outside.bin' has '..'", external("w", "../outside.bin"));
  expect_corrupt("has '..' in its path", external("w", "sub/../data.bin"));
  expect_corrupt("has an absolute path", external("w", folder() + "/data.bin"));
  expect_corrupt("leads out of the model's folder", external("w", "out.bin"));
  expect_corrupt("leads out of the model's folder", external("w", "up/outside.bin"));
  expect_corrupt("leads out of the model's folder", external("w", "beside.bin"));
  expect_corrupt("has no location", external("w", ""));
  expect_corrupt("has a NUL", external("w", std::string_view("data.bin\0x", 10)));
}

TEST_F(OnnxFolder, ExternalDataThatIsMissingOrTooShortIsRefused) {
  write("model/empty.bin", "");
  const auto refuses = [&](ErrorCode code, const std::string& part, const Proto& constant) {
    expect_refusal(code, part, constant, folder());
  };
  refuses(ErrorCode::io_error, "cannot be read: No such file", external("w", "none.bin"));
  refuses(ErrorCode::io_error, "is no regular file", external("w", "sub"));
  expect_corrupt("is empty", external("w", "empty.bin"));
  expect_corrupt("needs 8 bytes from byte 12 on, and the file has 16", external("w", "data.bin", "12"));
  expect_corrupt("needs 8 bytes from byte 17 on", external("w", "data.bin", "17"));
  expect_corrupt("from byte 18446744073709551615 on", external("w", "data.bin", "18446744073709551615"));
  expect_corrupt("has 4 bytes where its dims need 8", external("w", "data.bin", "0", "4"));
  for (const std::string_view wrong : {"-1", "0x1", " 1", "1 ", "18446744073709551616", "one"}) {
    expect_corrupt("no number of bytes", external("w", "data.bin", wrong));
    expect_corrupt("no number of bytes", external("w", "data.bin", "0", wrong));
  }
  expect_error(ErrorCode::invalid_argument, "pass the folder", [] { (void)read(external("w", "data.bin")); });
}

}  // namespace
}  // namespace xpuruntime
