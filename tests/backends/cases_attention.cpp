#include "backends/cases.h"

namespace xpuruntime::cases {

std::vector<CaseText> attention_cases() {
  List list;
  list.each(
      {"f32", "f16", "bf16", "f64"},
      {
          "attention(T[1,1,1,1], T[1,1,1,1], T[1,1,1,1])",
          "attention(T[1,2,8,16], T[1,2,8,16], T[1,2,8,16])",
          "attention(T[2,3,17,7], T[2,3,17,7], T[2,3,17,7])",
          "attention(T[1,2,33,64], T[1,2,33,64], T[1,2,33,64]; causal=true)",
          "attention(T[1,2,5,32], T[1,2,65,32], T[1,2,65,32])",
          "attention(T[1,2,65,32], T[1,2,5,32], T[1,2,5,32])",
          "attention(T[1,2,13,32], T[1,2,31,32], T[1,2,31,32]; causal=true)",  // keys past the diagonal
          "attention(T[1,2,31,32], T[1,2,13,32], T[1,2,13,32]; causal=true)",
          "attention(T[1,4,1,64], T[1,4,65,64], T[1,4,65,64])",  // single query
          "attention(T[3,4,1,33], T[3,2,17,33], T[3,2,17,33])",
          "attention(T[1,8,1,128], T[1,1,130,128], T[1,1,130,128])",
          "attention(T[1,2,1,16], T[1,2,9,16], T[1,2,9,16]; causal=true)",  // only the first key
          "attention(T[1,2,1,16], T[1,2,9,16], T[1,2,9,16], bool[9])",
          "attention(T[1,2,1,16], T[1,2,9,16], T[1,2,9,16], T[1,1,1,9])",
          "attention(T[1,8,20,32], T[1,2,20,32], T[1,2,20,32])",  // grouped heads
          "attention(T[2,6,9,16], T[2,3,9,16], T[2,3,9,16]; causal=true)",
          "attention(T[1,4,9,16], T[1,1,9,16], T[1,1,9,16]; scale=0.5)",
          "attention(T[1,4,9,16], T[1,2,40,16], T[1,2,40,16]; scale=-0.5 causal=true)",
          "attention(T[1,4,1,16], T[1,2,40,16], T[1,2,40,16]; scale=-0.25)",
          "attention(T[1,2,9,16], T[1,2,12,16], T[1,2,12,16], bool[9,12]; scale=-2)",
          "attention(T[1,2,9,24], T[1,2,12,24], T[1,2,12,40])",  // values of another size
          "attention(T[1,2,9,15], T[1,2,12,15], T[1,2,12,17]; scale=1)",
          "attention(T[1,2,9,128], T[1,2,40,128], T[1,2,40,128])",
          "attention(T[1,1,4,3], T[1,1,7,3], T[1,1,7,1])",
          "attention(T[1,2,12,16], T[1,2,12,16], T[1,2,12,16], bool[12,12])",
          "attention(T[2,2,12,16], T[2,2,15,16], T[2,2,15,16], bool[2,1,12,15])",
          "attention(T[2,2,12,16], T[2,2,15,16], T[2,2,15,16], bool[2,2,12,15]; causal=true)",
          "attention(T[2,2,12,16], T[2,2,15,16], T[2,2,15,16], bool[2,1,1,15])",
          "attention(T[2,2,12,16], T[2,2,15,16], T[2,2,15,16], bool[12,1])",
          "attention(T[1,2,12,16], T[1,2,12,16], T[1,2,12,16], T[12,12])",
          "attention(T[2,2,12,16], T[2,2,15,16], T[2,2,15,16], T[2,1,12,15]; causal=true)",
          "attention(T[2,2,12,16], T[2,2,15,16], T[2,2,15,16], f32[1,2,12,15])",
          "attention(T[2,4,33,16], T[2,2,47,16], T[2,2,47,16], T[2,4,33,47])",
          "attention(T[0,2,4,8], T[0,2,4,8], T[0,2,4,8])",
          "attention(T[1,2,0,8], T[1,2,4,8], T[1,2,4,8])",
          "attention(T[1,2,4,8], T[1,2,4,8], T[1,2,4,0])",
          "attention(T[2,9,4,16]{576,16,144,1}, T[2,9,4,16]{576,16,144,1}, T[2,9,4,16]{576,16,144,1})",  // [B,L,H,D]
          "attention(T[2,3,9,16]{432,16,48,1}, T[2,3,9,16]{432,16,48,1}, T[2,3,9,16]{432,16,48,1}; causal=true) -> "
          "T[2,3,9,16]{432,16,48,1}",
          "attention(T[1,2,8,16]{512,256,32,2}, T[1,2,8,16], T[1,2,8,16])",
          "attention(T[1,2,8,16], T[1,2,8,16]{256,128,1,8}, T[1,2,8,16])",  // keys transposed
          "attention(T[1,2,8,16], T[1,2,8,16], T[1,2,8,16]{256,128,1,8})",
          "attention(T[1,2,12,16], T[1,2,12,16], T[1,2,12,16], bool[12,12]{1,12})",
          "attention(T[1,2,8,16], T[1,2,8,16], T[1,2,8,16]) -> T[1,2,8,16]{512,256,32,2}",
      });
  list.each({"f32", "f16", "bf16"}, {
                                        "attention(T[1,3,150,64], T[1,3,150,64], T[1,3,150,64]; causal=true)",
                                        "attention(T[2,4,65,64], T[2,2,130,64], T[2,2,130,64])",
                                        "attention(T[1,2,70,80], T[1,2,257,80], T[1,2,257,80], bool[70,257])",
                                        "attention(T[1,16,1,64], T[1,4,700,64], T[1,4,700,64])",
                                    });
  list.each(
      {"f32", "f16", "bf16", "f64"},
      {
          "attention(T[1,2,13,32], T[1,2,31,32], T[1,2,31,32]; causal=true causal_align=bottom_right)",
          "attention(T[1,2,50,32], T[1,2,13,32], T[1,2,13,32]; causal=true causal_align=bottom_right)",  // rows of none
          "attention(T[1,4,3,16], T[1,2,9,16], T[1,2,9,16]; causal=true causal_align=bottom_right)",
          "attention(T[1,2,4,16], T[1,2,2,16], T[1,2,2,16]; causal=true causal_align=bottom_right lse=true)",
          "attention(T[3,4,9,16], T[3,2,40,16], T[3,2,40,16], none, i32[3])",
          "attention(T[5,2,40,16], T[5,1,140,16], T[5,1,140,16], none, i32[5]{2}; lse=true)",
          "attention(T[3,4,1,16], T[3,2,600,16], T[3,2,600,16], none, i64[3])",
          "attention(T[5,2,6,16], T[5,2,20,16], T[5,2,20,16], none, i64[5]; causal=true causal_align=bottom_right)",
          "attention(T[5,2,2,16], T[5,2,20,16], T[5,2,20,16], none, i32[5]; causal=true)",
          "attention(T[3,2,7,16], T[3,2,40,16], T[3,2,40,16], bool[3,1,7,40], i32[3]; lse=true)",
          "attention(T[3,2,1,16], T[3,2,40,16], T[3,2,40,16], T[3,1,1,40], i32[3]; lse=true)",
          "attention(T[2,4,9,16], T[2,2,40,16], T[2,2,40,16]; lse=true)",
          "attention(T[2,4,1,16], T[2,2,700,16], T[2,2,700,16]; lse=true scale=0.5)",
          "attention(T[2,2,5,16], T[2,2,9,16], T[2,2,9,16]; lse=true scale=-0.5) -> T[2,2,5,16], f32[2,2,5]{1,2,4}",
          "attention(T[1,2,4,8], T[1,2,4,8], T[1,2,4,0]; lse=true)",
          "attention(T[2,4,1,16], T[7,8,2,16], T[7,8,2,16], none, none, i32[2,3])",
          "attention(T[3,8,1,64], T[40,16,2,64], T[40,16,2,64], none, i32[3], i32[3,20]; lse=true)",
          "attention(T[4,2,3,15], T[9,3,1,15], T[9,3,1,17], none, i32[4], i32[4,5]{1,4}; causal=true "
          "causal_align=bottom_right)",
          "attention(T[2,2,1,16], T[3,300,2,16], T[3,300,2,16], bool[600], i64[2], i32[2,2])",  // pages past a chunk
          "attention(T[2,2,9,16], T[7,8,2,16], T[7,8,2,16], none, i32[2], i32[2,3]; causal=true)",
      });
  for (const char* text : {"attention(f32[1,2,9,16]/4, f32[1,2,9,16]/4, f32[1,2,9,16]/4) -> f32[1,2,9,16]/4",
                           "attention(bf16[1,2,9,16]/2, bf16[1,2,9,16]/2, bf16[1,2,9,16]/2) -> bf16[1,2,9,16]/2",
                           "attention(f32[1,2,9,16], f32[1,2,9,16], f32[1,2,9,16]) -> bf16[1,2,9,16]",
                           "attention(bf16[1,2,9,16], bf16[1,2,9,16], bf16[1,2,9,16]) -> f32[1,2,9,16]",
                           "attention(f16[1,2,9,16], f32[1,2,9,16], f32[1,2,9,16])"}) {
    list.add(text);
  }
  return list.take();
}

Checks attention_checks() {
  return {
      .small =
          {
              "attention(T[1,2,5,16], T[1,2,40,16], T[1,2,40,16])",
              "attention(T[1,2,1,8], T[1,1,9,8], T[1,1,9,8])",
              "attention(T[1,1,9,4], T[1,1,9,4], T[1,1,9,4]; causal=true)",
              "attention(T[2,1,9,4], T[2,1,7,4], T[2,1,7,4], none, i32[2]; causal=true causal_align=bottom_right "
              "lse=true)",
              "attention(T[2,2,1,8], T[5,4,1,8], T[5,4,1,8], none, i32[2], i32[2,3]; lse=true)",
          },
      .by_lines =
          {
              "attention(f32[1,1,6,16], f32[1,1,40,16], f32[1,1,40,16])",
              "attention(bf16[1,1,6,16], bf16[1,1,300,16], bf16[1,1,300,16])",
              "attention(f32[6,1,1,16], f32[6,1,40,16], f32[6,1,40,16])",
          },
      .mistakes =
          {
              {"attention(bf16[1,1,9,8], bf16[1,1,9,8], bf16[1,1,9,8]; causal=true)",
               "attention(bf16[1,1,9,8], bf16[1,1,9,8], bf16[1,1,9,8])"},
              {"attention(bf16[1,1,9,8], bf16[1,1,12,8], bf16[1,1,12,8]; causal=true causal_align=bottom_right)",
               "attention(bf16[1,1,9,8], bf16[1,1,12,8], bf16[1,1,12,8]; causal=true)"},
              {"attention(bf16[1,1,9,8], bf16[1,1,9,8], bf16[1,1,9,8]; scale=0.5)",
               "attention(bf16[1,1,9,8], bf16[1,1,9,8], bf16[1,1,9,8])"},
          },
  };
}

}  // namespace xpuruntime::cases
