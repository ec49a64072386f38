#include "core/xxh64.h"

#include <gtest/gtest.h>

#include <vector>

namespace xpuruntime {
namespace {

struct Known {
  std::size_t bytes;
  std::uint64_t sum;  // by the Python package xxhash
};

constexpr Known vectors[] = {
    {0, 0xef46db3751d8e999},      {1, 0x8a4127811b21e730},  {3, 0xb6e6c910c2fd373a},  {4, 0x22eda2cf6af4c124},
    {7, 0x34084d91a233a751},      {8, 0xc6f1803a5e0b3222},  {9, 0x9e8adf2a0ccdb6da},  {31, 0x6ab1c40e29f50073},
    {32, 0x5a0756fbe9ecd3d1},     {33, 0xdc50cdc37bb9c183}, {39, 0xe6b392c5985d77ab}, {44, 0x122aca1412911665},
    {63, 0x10dd94885c71894a},     {64, 0x90083da9cdb9d795}, {65, 0x38824dea10bf4e5d}, {1000, 0x6be03acbf959c413},
    {100003, 0x11e00f0e9fa7eece},
};

TEST(Xxh64, AgreesWithItsPackageAtEveryEdgeOfABlockAtAnyAddress) {
  for (const Known& known : vectors) {
    for (const std::size_t offset : {0, 1, 3}) {
      std::vector<std::byte> bytes(offset + known.bytes);
      for (std::size_t i = 0; i < known.bytes; ++i) bytes[offset + i] = static_cast<std::byte>((i * 7 + 1) % 256);
      EXPECT_EQ(xxh64(std::span(bytes).subspan(offset)), known.sum) << known.bytes << " bytes from " << offset;
    }
  }
}

}  // namespace
}  // namespace xpuruntime
