#include "backends/cases.h"

namespace xpuruntime::cases {
namespace {

// Every set of axes of three, kept and dropped, over two shapes and a strided one.
void add_axes(List& list) {
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}) {
    for (const char* axes :
         {"", " dim=0", " dim=1", " dim=2", " dim=0,1", " dim=0,2", " dim=1,2", " dim=0,1,2", " dim=-1"}) {
      for (const char* shape : {"[3,5,7]", "[4,16,33]", "[6,5,4]{1,6,30}"}) {
        for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
          const bool keep = (std::string_view(shape).size() + std::string_view(axes).size()) % 2 == 0;
          list.add(std::string(op) + "(" + dtype + shape + ";" + axes + (keep ? " keepdim=true" : "") + ")");
        }
      }
    }
  }
}

void add_reduce(List& list) {
  add_axes(list);
  list.each_op({"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}, {"f32", "f16", "bf16", "f64"},
               {
                   "OP(T[])",
                   "OP(T[1])",
                   "OP(T[9])",
                   "OP(T[63])",
                   "OP(T[257])",
                   "OP(T[0,3]; dim=1)",
                   "OP(T[5,8,2,3]; dim=1,3)",
                   "OP(T[2,2,2,2,2,2,2,2]; dim=0,2,4,6)",
                   "OP(T[16,17]{34,2}; dim=1)",
                   "OP(T[16,17]{34,2}; dim=0)",
                   "OP(T[5,7,16]{16,1,2}; dim=2)",
                   "OP(T[3,70,9]{3150,45,5}; dim=1,2)",
                   "OP(T[8,100,33]{33,0,1}; dim=1)",
                   "OP(T[8,100,33]{33,0,1}; dim=2)",
                   "OP(T[8,100,33]{33,0,1}; dim=0,1)",
                   "OP(T[65,40]{1,0}; dim=1)",
                   "OP(T[65,40]{1,0}; dim=0)",
                   "OP(T[65,40]{0,0})",
                   "OP(T[8,9]; dim=0) -> T[9]{2}",
               });
  list.each_op({"reduce_sum", "reduce_mean"}, {"f32", "f16", "bf16", "f64"}, {"OP(T[3,0]; dim=1)"});
  list.each_op({"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}, {"f32", "bf16"},
               {
                   "OP(T[400001])",
                   "OP(T[700,600]; dim=1)",
                   "OP(T[700,600]; dim=0)",
                   "OP(T[30,130,90]; dim=1)",
                   "OP(T[9,1025]{2050,2}; dim=1)",
                   "OP(T[3,17000]{51000,3}; dim=1)",
               });
  list.each_op({"reduce_max", "reduce_min"}, {"f32", "f16", "bf16", "f64"},
               {"OP(T[7,33]; dim=1)", "OP(T[7,33]; dim=0)", "OP(T[65])"}, oracle::Fill::special);
  list.each_op({"reduce_sum", "reduce_max", "reduce_min"}, {"i64", "i32", "i16", "i8", "u8"},
               {"OP(T[100])", "OP(T[7,33]; dim=1)", "OP(T[7,33]; dim=0 keepdim=true)", "OP(T[6,4]{1,6}; dim=1)"});
  list.each_op({"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}, {"f32"},
               {
                   "OP(T[5,33]/4; dim=1) -> T[5]/4",
                   "OP(T[5,33]; dim=1) -> bf16[5]",
                   "OP(T[5,33]; dim=1) -> f64[5]",
                   "OP(bf16[5,33]; dim=1) -> T[5]",
               });
  list.add("reduce_sum(i8[40]) -> i32[]");
}

void add_softmax(List& list) {
  list.each_op({"softmax", "log_softmax"}, {"f32", "f16", "bf16", "f64"},
               {
                   "OP(T[1])",
                   "OP(T[5,1])",
                   "OP(T[5,7])",
                   "OP(T[5,8])",
                   "OP(T[4,15])",
                   "OP(T[4,16])",
                   "OP(T[3,17])",
                   "OP(T[5,33])",
                   "OP(T[2,65])",
                   "OP(T[3,1000])",
                   "OP(T[5,3,4]; dim=1)",
                   "OP(T[9,20]; dim=0)",
                   "OP(T[2,17,33]; dim=-2)",
                   "OP(T[0,5])",
                   "OP(T[5,0])",
                   "OP(T[8,6]{1,8})",
                   "OP(T[8,6]{12,2}) -> T[8,6]{12,2}",
                   "OP(T[8,6]) -> T[8,6]{1,8}",
               });
  list.each_op({"softmax", "log_softmax"}, {"f32", "f16", "bf16"}, {"OP(T[300,1030])", "OP(T[40,90,100]; dim=1)"});
  list.each_op({"softmax", "log_softmax"}, {"f32", "f16", "bf16"},
               {"OP(T[20,33])", "OP(T[20,3])", "OP(T[7,5,9]; dim=1)"}, oracle::Fill::special);
  list.each_op({"softmax", "log_softmax"}, {"f32"},
               {"OP(T[5,13]/4) -> T[5,13]/4", "OP(T[5,13]) -> bf16[5,13]", "OP(bf16[5,13]) -> T[5,13]",
                "OP(f16[5,13]) -> T[5,13]"});
}

}  // namespace

std::vector<CaseText> reduce_cases() {
  List list;
  add_reduce(list);
  add_softmax(list);
  return list.take();
}

Checks reduce_checks() {
  return {
      .small =
          {
              "softmax(T[5,1])",
              "softmax(T[5,100])",
              "log_softmax(T[5,3])",
              "log_softmax(T[2,5,7]; dim=1)",
              "reduce_sum(T[3,99]; dim=1)",
              "reduce_sum(T[5,2]; dim=0)",
              "reduce_mean(T[3,9]; dim=1)",
              "reduce_max(T[3,9]; dim=1)",
              "reduce_min(T[3,9]; dim=0)",
              "softmax:backward(T[5,9], T[5,9])",
              "log_softmax:backward(T[5,9], T[5,9])",
          },
      .by_lines =
          {
              "softmax(f32[6,7])",
              "softmax(f32[6,150])",
              "softmax(f32[6,9001])",
              "softmax(bf16[6,9001])",
              "log_softmax(f32[6,7])",
              "log_softmax(f32[6,9001])",
              "softmax(f32[6,5,1]; dim=1)",
              "softmax:backward(f32[6,33], f32[6,33])",
              "log_softmax:backward(f32[6,33], f32[6,33])",
          },
      .gradients =
          {
              "softmax:backward(f64[3,7], f64[3,7])",
              "softmax:backward(f64[3,4,2], f64[3,4,2]; dim=1)",
              "log_softmax:backward(f64[3,7], f64[3,7])",
          },
      .mistakes =
          {
              {"softmax(bf16[6,6])", "softmax(bf16[6,6]; dim=0)"},
          },
      .gradient_mistakes =
          {
              {"softmax:backward(bf16[6,6], bf16[6,6])", "softmax:backward(bf16[6,6], bf16[6,6]; dim=0)"},
              {"softmax:backward(f32[6,6], f32[6,6])", "log_softmax:backward(f32[6,6], f32[6,6])"},
          },
  };
}

}  // namespace xpuruntime::cases
