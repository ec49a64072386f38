#include "backends/cases.h"

namespace xpuruntime::cases {
namespace {

void add_cast(List& list) {
  for (const char* from : {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool"}) {
    for (const char* to : {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool"}) {
      list.add("cast(" + std::string(from) + "[137]; dtype=" + to + ")");
    }
  }
  for (const char* to : {"f64", "f32", "f16", "bf16"}) {
    const std::string tail = std::string("; dtype=") + to + ")";
    for (const char* from : {"f32", "f16", "bf16", "f64"}) {
      for (const char* shape : {"[0]", "[]", "[7]", "[33]", "[1025]", "[6,4]{1,6}", "[9,5]{10,2}"}) {
        list.add("cast(" + std::string(from) + shape + tail);
      }
      list.add("cast(" + std::string(from) + "[120]" + tail, oracle::Fill::special);
    }
    list.add("cast(f32[400001]" + tail);
    list.add("cast(bf16[400001]" + tail);
  }
  list.add("cast(f32[33]/4; dtype=bf16) -> bf16[33]/2");
  list.add("cast(f32[4,6]; dtype=bf16) -> bf16[4,6]{1,4}");
  list.add("cast(bf16[4,6]; dtype=f32) -> f32[4,6]{12,2}");
}

void add_copies(List& list) {
  list.each({"f32", "f16", "bf16", "f64", "i64", "i32", "i16", "i8", "u8", "bool", "f8e4m3"},
            {
                "copy(T[33])",
                "copy(T[6,4]{1,6})",
                "copy(T[6,4]) -> T[6,4]{1,6}",
                "transpose(T[33,17])",
                "transpose(T[3,4,5]; dims=1,2,0)",
                "concat(T[3,4], T[2,4])",
                "concat(T[3,4], T[3,1], T[3,5]; dim=-1)",
                "slice(T[9,4]; start=2 end=7)",
                "slice(T[5,33]; dim=1 start=1 step=3)",
            });
  list.each({"f32", "f16", "bf16", "f64", "i64", "i32", "i16", "i8", "u8", "f8e4m3"}, {"embedding(i64[5], T[7,9])"});
  list.each({"f32", "f16", "bf16", "f64", "i8"}, {
                                                     "copy(T[])",
                                                     "copy(T[0,4])",
                                                     "copy(T[2,3,4,5]{60,1,15,3})",
                                                     "copy(T[2,3,4,5]) -> T[2,3,4,5]{60,1,15,3}",
                                                     "copy(T[5,8]{0,1})",
                                                     "copy(T[3,67]{1,0})",
                                                     "copy(T[5,8]{16,2}) -> T[5,8]{8,1}",
                                                     "copy(T[2,2,2,2,2,2,2,2]{1,2,4,8,16,32,64,128})",
                                                     "transpose(T[])",
                                                     "transpose(T[7])",
                                                     "transpose(T[0,3])",
                                                     "transpose(T[1,65])",
                                                     "transpose(T[16,16])",
                                                     "transpose(T[63,65])",
                                                     "transpose(T[2,3,4,5]; dims=0,2,3,1)",
                                                     "transpose(T[2,5,4,3]; dims=0,3,1,2)",
                                                     "transpose(T[2,9,4,8]; dims=0,2,1,3)",
                                                     "transpose(T[2,3,4]; dims=0,1,2)",
                                                     "transpose(T[3,4,5]; dims=-1,0,-2)",
                                                     "transpose(T[6,4]{1,6})",
                                                     "transpose(T[8,6]) -> T[6,8]{16,2}",
                                                     "concat(T[5])",
                                                     "concat(T[0], T[5], T[0])",
                                                     "concat(T[2,3,4], T[2,1,4], T[2,9,4]; dim=1)",
                                                     "concat(T[4,6]{1,4}, T[4,6]; dim=1)",
                                                     "concat(T[3,4], T[2,4]) -> T[5,4]{1,5}",
                                                     "concat(T[1,7], T[1,9]; dim=1) -> T[1,16]{32,2}",
                                                     "slice(T[9]; start=-3)",
                                                     "slice(T[9]; start=7 end=2)",
                                                     "slice(T[9]; end=-2 step=2)",
                                                     "slice(T[4,5,6]; dim=1 start=1 end=4)",
                                                     "slice(T[4,5,6]; dim=-1 start=2 end=100)",
                                                     "slice(T[6,8]{1,6}; dim=1 start=3)",
                                                     "slice(T[6,8]; start=1 end=5) -> T[4,8]{16,2}",
                                                     "embedding(i64[], T[7,9])",
                                                     "embedding(i64[0], T[7,9])",
                                                     "embedding(i32[2,3], T[7,16])",
                                                     "embedding(i64[4], T[1,1])",
                                                     "embedding(i64[3,4]{1,3}, T[10,8]{16,1})",
                                                     "embedding(i64[6], T[10,8]{1,10})",
                                                     "embedding(i64[6], T[10,8]) -> T[6,8]{16,2}",
                                                     "embedding(i64[5], T[7,0])",
                                                 });
}

void add_large(List& list) {
  list.each({"f32", "bf16"}, {
                                 "copy(T[400001])",
                                 "copy(T[500,700]{1,500})",
                                 "transpose(T[700,900])",
                                 "transpose(T[8,60,16,50]; dims=0,2,1,3)",
                                 "transpose(T[4,30,40,64]; dims=0,3,1,2)",
                                 "concat(T[300,500], T[300,600]; dim=1)",
                                 "concat(T[300,500], T[200,500])",
                                 "slice(T[600,800]; dim=1 start=3 end=700)",
                                 "slice(T[600,800]; step=2)",
                                 "embedding(i64[700], T[1000,512])",
                             });
  for (const char* text :
       {"copy(f32[33]/4) -> f32[33]/4", "copy(f32[33]) -> bf16[33]", "transpose(f32[17,33]/4) -> f32[33,17]/4",
        "transpose(f32[17,33]) -> bf16[33,17]", "concat(f32[5,3], bf16[5,3])", "concat(i32[5], i64[6])",
        "concat(i32[5], f32[6])", "concat(f32[5,3]/4, f32[4,3]/4) -> f32[9,3]/4",
        "slice(f32[33]/4; start=1) -> f32[32]/4", "slice(f32[33]; start=1) -> f16[32]",
        "embedding(i32[5]/4, f32[7,9]/4) -> f32[5,9]/4", "embedding(i64[5], bf16[7,9]) -> f32[5,9]",
        "embedding(i64[5], f32[7,19]{20,1}) -> bf16[5,19]", "embedding(i64[700], f16[1000,512]) -> f32[700,512]",
        "embedding(u8[5], f32[7,9])", "embedding(i16[5], f32[7,9])", "embedding(i8[5], f32[7,9])",
        "concat(f32[2,2], f32[2,2], f32[2,2], f32[2,2], f32[2,2], f32[2,2], f32[2,2], f32[2,2], f32[2,2]; dim=1)"}) {
    list.add(text);
  }
  list.each({"f32", "f16", "bf16"},
            {"copy(T[65])", "transpose(T[9,17])", "concat(T[20], T[30])", "slice(T[40]; step=3)"},
            oracle::Fill::special);
}

}  // namespace

std::vector<CaseText> movement_cases() {
  List list;
  add_cast(list);
  add_copies(list);
  add_large(list);
  return list.take();
}

Checks movement_checks() {
  return {
      .small =
          {
              "embedding(i64[9], T[5,4])",
              "cast(T[99]; dtype=bf16)",
              "copy(T[9,5]{1,9})",
              "transpose(T[9,5])",
              "concat(T[9,5], T[9,5]; dim=1)",
              "slice(T[9,5]; dim=1 start=1)",
          },
      .mistakes =
          {
              {"slice(i8[9]; start=1 end=5)", "slice(i8[9]; start=2 end=6)"},
          },
  };
}

}  // namespace xpuruntime::cases
