#include "backends/cases.h"

namespace xpuruntime::cases {
namespace {

void add_batch_norm(List& list) {
  struct Shape {
    const char* op;
    const char* x;
    int channels;
  };
  constexpr Shape shapes[] = {{"batch_norm1d", "[1,1]", 1},
                              {"batch_norm1d", "[7,17]", 17},
                              {"batch_norm1d", "[3,5,31]", 5},
                              {"batch_norm1d", "[2,64,9]", 64},
                              {"batch_norm2d", "[1,3,4,4]", 3},
                              {"batch_norm2d", "[2,16,7,9]", 16},
                              {"batch_norm2d", "[3,5,8,8]", 5},
                              {"batch_norm3d", "[2,3,3,4,5]", 3},
                              {"batch_norm2d", "[2,6,5,5]{150,1,30,6}", 6},
                              {"batch_norm1d", "[9,8]{1,9}", 8}};
  for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
    for (const Shape& shape : shapes) {
      const std::string c = "T[" + std::to_string(shape.channels) + "]";
      const std::string x = std::string(shape.op) + "(T" + shape.x;
      for (const std::string& text :
           {x + ", " + c + ", " + c + ", " + c + ", " + c + ")", x + ", " + c + ", " + c + ")", x + "; training=true)",
            x + ", " + c + ", " + c + ", " + c + ", " + c + "; training=true momentum=0.3)",
            x + ", " + c + ", " + c + "; training=true eps=0.001)"}) {
        list.add(replaced(text, "T", dtype));
      }
    }
  }
  list.each({"f32", "f16", "bf16", "f64"},
            {
                "batch_norm2d(T[0,3,4,4], T[3], T[3])",
                "batch_norm2d(T[2,3,0,4], T[3], T[3], T[3], T[3])",
                "batch_norm2d(T[2,0,4,4], T[0], T[0])",
                "batch_norm1d(T[4,0], T[0], T[0]; training=true)",
                "batch_norm2d(T[2,4,5,6], f32[4], f32[4], f32[4], f32[4])",  // statistics kept wider
                "batch_norm2d(T[2,4,5,6], f32[4], f32[4], f32[4], f32[4]; training=true)",
                "batch_norm2d(T[2,4,5,6], T[4]{2}, T[4]{3}, T[4]{2}, T[4]) -> T[2,4,5,6]{240,60,12,2}",
                "batch_norm2d(T[2,4,5,6]{120,1,24,4}, T[4], T[4]) -> T[2,4,5,6]{120,1,24,4}",
                "batch_norm2d(T[2,4,5,6], T[4], T[4]; training=true) -> T[2,4,5,6]{240,60,12,2}, T[4]{2}, T[4]{3}",
            });
  list.each({"f32", "bf16"}, {"batch_norm2d(T[4,32,60,60], T[32], T[32], T[32], T[32])",
                              "batch_norm2d(T[4,32,60,60], T[32], T[32], T[32], T[32]; training=true)",
                              "batch_norm1d(T[2000,150], T[150], T[150]; training=true)"});
  list.add("batch_norm2d(f32[2,4,5,6]/4, f32[4]/4, f32[4]/4, f32[4]/4, f32[4]/4) -> f32[2,4,5,6]/4");
  list.add("batch_norm2d(f32[2,4,5,6], f32[4], f32[4]) -> bf16[2,4,5,6]");
  list.add("batch_norm2d(bf16[2,4,5,6], f32[4], f32[4]) -> f32[2,4,5,6]");
}

void add_layer_norm(List& list) {
  list.each({"f32", "f16", "bf16", "f64"}, {
                                               "layer_norm(T[1])",
                                               "layer_norm(T[3,7], T[7], T[7])",
                                               "layer_norm(T[5,8], T[8])",
                                               "layer_norm(T[4,9])",
                                               "layer_norm(T[2,3,16], T[16], T[16])",
                                               "layer_norm(T[17,17], T[17], T[17]; eps=0.01)",
                                               "layer_norm(T[3,31], T[31], T[31])",
                                               "layer_norm(T[3,33], T[33], T[33])",
                                               "layer_norm(T[2,65], T[65], T[65])",
                                               "layer_norm(T[4,768], T[768], T[768])",
                                               "layer_norm(T[2,5,6], T[5,6], T[5,6]; normalized_rank=2)",
                                               "layer_norm(T[2,3,4]; normalized_rank=3)",
                                               "layer_norm(T[0,8], T[8], T[8])",
                                               "layer_norm(T[8,6]{1,8}, T[6], T[6])",
                                               "layer_norm(T[8,6]{24,2}, T[6]{3}, T[6]) -> T[8,6]{12,1}",
                                               "layer_norm(T[2,3,4,5]{120,20,5,1}; normalized_rank=2)",
                                               "layer_norm(T[5,12], f32[12], f32[12])",
                                               "layer_norm(T[5,12], T[12], T[12]) -> T[5,12]{24,2}",
                                           });
  list.each({"f32", "f16", "bf16"}, {"layer_norm(T[300,1030], T[1030], T[1030])"});
  list.add("layer_norm(f32[5,13]/4, f32[13]/4, f32[13]/4) -> f32[5,13]/4");
  list.add("layer_norm(f32[5,13], f32[13], f32[13]) -> bf16[5,13]");
  list.add("layer_norm(bf16[5,13], bf16[13], bf16[13]) -> f32[5,13]");
}

void add_other_norms(List& list) {
  list.each({"f32", "f16", "bf16", "f64"}, {
                                               "rms_norm(T[1])",
                                               "rms_norm(T[3,7], T[7])",
                                               "rms_norm(T[4,8])",
                                               "rms_norm(T[5,15], T[15])",
                                               "rms_norm(T[2,3,17], T[17]; eps=0.1)",
                                               "rms_norm(T[2,65], T[65])",
                                               "rms_norm(T[4,1024], T[1024])",
                                               "rms_norm(T[0,8], T[8])",
                                               "rms_norm(T[8,6]{1,8}, T[6]{2}) -> T[8,6]{12,1}",
                                               "rms_norm(T[8,6]{12,1}, T[6])",
                                               "rms_norm(T[5,12], f32[12])",
                                               "rms_norm:backward(T[6,9], T[9], T[6,9]{1,6}) -> T[6,9]{18,2}, T[9]{2}",
                                               "normalize(T[1,1])",
                                               "normalize(T[3,7])",
                                               "normalize(T[4,16,3])",
                                               "normalize(T[5,33]; dim=-1)",
                                               "normalize(T[9,4]; dim=0)",
                                               "normalize(T[4,17]; p=1)",
                                               "normalize(T[4,17]; p=3)",
                                               "normalize(T[4,17]; p=0.5)",
                                               "normalize(T[4,17]; p=0)",
                                               "normalize(T[3,4,65]; dim=2)",
                                               "normalize(T[4,8]; eps=10)",  // the norm is the smaller
                                               "normalize(T[0,8])",
                                               "normalize(T[3,0])",
                                               "normalize(T[6,8]{1,6})",
                                               "normalize(T[2,3,8]; dim=1) -> T[2,3,8]{48,16,2}",
                                           });
  list.each({"f32", "bf16"}, {"rms_norm(T[300,1030], T[1030])", "normalize(T[300,1030])", "normalize(T[20,300,50])"});
  list.add("rms_norm(f32[5,13]/4, f32[13]/4) -> f32[5,13]/4");
  list.add("rms_norm(bf16[5,13], bf16[13]) -> f32[5,13]");
  list.add("normalize(f32[5,13]/4) -> f32[5,13]/4");
  list.add("normalize(f32[5,13]) -> f16[5,13]");
}

}  // namespace

std::vector<CaseText> norm_cases() {
  List list;
  add_batch_norm(list);
  add_layer_norm(list);
  add_other_norms(list);
  return list.take();
}

Checks norm_checks() {
  return {
      .small =
          {
              "batch_norm2d(T[2,3,4,4], T[3], T[3], T[3], T[3])",
              "batch_norm1d(T[2,3], T[3], T[3]; training=true)",
              "layer_norm(T[9,2], T[2], T[2])",
              "layer_norm(T[3,100], T[100], T[100])",
              "layer_norm(T[9,1])",
              "rms_norm(T[9,5], T[5])",
              "normalize(T[5,9])",
              "normalize(T[5,9]; p=3)",
              "layer_norm:backward(T[9,2], T[2], T[2], T[9,2])",
              "layer_norm:backward(T[9,50], T[50], T[50], T[9,50])",
              "rms_norm:backward(T[9,5], T[5], T[9,5])",
          },
      .by_lines =
          {
              "layer_norm(f32[6,33], f32[33], f32[33])",
              "layer_norm:backward(f32[6,33], f32[6,33])",
              "rms_norm(f32[6,33], f32[33])",
              "normalize(f32[6,33])",
              "normalize(bf16[6,150])",
          },
      .gradients =
          {
              "layer_norm:backward(f64[3,6], f64[6], f64[6], f64[3,6])",
              "layer_norm:backward(f64[2,3,4], f64[2,3,4]; normalized_rank=2 eps=0.1)",
              "rms_norm:backward(f64[3,6], f64[6], f64[3,6])",
          },
      .mistakes =
          {
              {"layer_norm(f32[4,32]; eps=0.001)", "layer_norm(f32[4,32])"},
              {"rms_norm(f32[4,32]; eps=0.0001)", "rms_norm(f32[4,32])"},
              {"batch_norm1d(f32[9,4], f32[4], f32[4]; training=true momentum=0.2)",
               "batch_norm1d(f32[9,4], f32[4], f32[4]; training=true)"},
              {"normalize(bf16[4,9]; p=3)", "normalize(bf16[4,9])"},
          },
      .gradient_mistakes =
          {
              {"layer_norm:backward(f32[4,32], f32[4,32]; eps=0.001)", "layer_norm:backward(f32[4,32], f32[4,32])"},
          },
  };
}

}  // namespace xpuruntime::cases
