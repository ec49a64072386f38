#include "backends/cases.h"

namespace xpuruntime::cases {
namespace {

void add_class_losses(List& list) {
  for (const char* reduction : {"mean", "sum", "none"}) {
    const std::string tail = std::string(" reduction=") + reduction + ")";
    for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
      for (const char* text :
           {"cross_entropy(T[1,1], i64[1];", "cross_entropy(T[7,33], i64[7];", "cross_entropy(T[7,33], i32[7], T[33];",
            "cross_entropy(T[5,17], i64[5]; label_smoothing=0.1",
            "cross_entropy(T[5,17], i64[5], T[17]; label_smoothing=0.3",
            "cross_entropy(T[3,5,4,6], i64[3,4,6]; ignore_index=2", "cross_entropy(T[3,5,7], i64[3,7], T[5];",
            "cross_entropy(T[9], i64[];", "cross_entropy(T[6,9], T[6,9];",
            "cross_entropy(T[6,9], T[6,9], T[9]; label_smoothing=0.2", "cross_entropy(T[2,5,7], T[2,5,7];",
            "cross_entropy(T[12,9]{1,12}, i64[12]{2};", "cross_entropy(T[4,9], i64[4], f32[9];",
            "nll_loss(T[1,1], i64[1];", "nll_loss(T[17,9], i64[17];", "nll_loss(T[17,9], i32[17], T[9]; ignore_index=3",
            "nll_loss(T[3,5,4,6], i64[3,4,6], T[5];", "nll_loss(T[9], i64[];", "nll_loss(T[12,9]{1,12}, i64[12]{2};"}) {
        list.add(replaced(text, "T", dtype) + tail);
      }
    }
  }
  list.each({"f32", "f16", "bf16", "f64"}, {
                                               "cross_entropy(T[0,5], i64[0]; reduction=sum)",
                                               "cross_entropy(T[0,5], i64[0]; reduction=none)",
                                               "cross_entropy(T[0,5], i64[0])",  // 0 / 0
                                               "nll_loss(T[0,5], i64[0]; reduction=sum)",
                                               "nll_loss(T[0,5], i64[0])",
                                               "cross_entropy(T[6,9], i64[6]; reduction=none) -> T[6]{2}",
                                               "nll_loss(T[6,9], i64[6]; reduction=none) -> T[6]{2}",
                                           });
  list.each({"f32", "bf16"}, {"cross_entropy(T[300,1500], i64[300])", "cross_entropy(T[4,20,60,60], i64[4,60,60])",
                              "nll_loss(T[3000,100], i64[3000])"});
  list.each({"f32", "f16", "bf16", "f64"},
            {"cross_entropy(T[40,33], i64[40]; reduction=none)", "cross_entropy(T[9,5,9], i64[9,9]; reduction=none)",
             "nll_loss(T[40,33], i64[40]; reduction=none)", "nll_loss(T[9,5,9], i64[9,9]; reduction=none)"},
            oracle::Fill::special);
  list.add("cross_entropy(f32[5,13]/4, i64[5]/8) -> f32[]/4");
  list.add("cross_entropy(bf16[5,13], i64[5]) -> f32[]");
  list.add("cross_entropy(f32[5,13], i64[5]; reduction=none) -> f64[5]");
  list.add("nll_loss(bf16[5,13], i64[5]) -> f32[]");
  list.add("nll_loss(f32[5,13]/4, i32[5]/4)");
}

void add_pointwise_losses(List& list) {
  for (const char* reduction : {"mean", "sum", "none"}) {
    const std::string tail = std::string(" reduction=") + reduction + ")";
    for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
      for (const char* text :
           {"kl_div(T[], T[];", "kl_div(T[5,17], T[5,17];", "kl_div(T[5,17], T[5,17]; log_target=true",
            "kl_div(T[4,3,9], T[9];", "kl_div(T[1,9], T[5,9]; log_target=true", "kl_div(T[6,8]{1,6}, T[6,8];",
            "kl_div(T[0,8], T[0,8];", "poisson_nll_loss(T[], T[];", "poisson_nll_loss(T[5,17], T[5,17];",
            "poisson_nll_loss(T[5,17], T[5,17]; log_input=false", "poisson_nll_loss(T[5,17], T[5,17]; full=true",
            "poisson_nll_loss(T[5,17], T[5,17]; log_input=false full=true eps=0.001",
            "poisson_nll_loss(T[5,17], i64[17];", "poisson_nll_loss(T[6,8]{1,6}, i32[6,8];",
            "poisson_nll_loss(T[0], T[0];"}) {
        list.add(replaced(text, "T", dtype) + tail);
      }
    }
  }
  list.each({"f32", "f16", "bf16", "f64"}, {
                                               "kl_div(T[5,17], T[5,17]; reduction=batchmean)",
                                               "kl_div(T[7,33], T[7,33]; reduction=batchmean log_target=true)",
                                               "kl_div(T[5,17], T[5,17]; reduction=none) -> T[5,17]{34,2}",
                                               "poisson_nll_loss(T[5,17], T[5,17]; reduction=none) -> T[5,17]{34,2}",
                                           });
  list.each(
      {"f32", "bf16"},
      {"kl_div(T[300,1100], T[300,1100])", "kl_div(T[300,1100], T[300,1100]; log_target=true reduction=batchmean)",
       "poisson_nll_loss(T[330000], T[330000])", "poisson_nll_loss(T[330000], T[330000]; reduction=none)"});
  list.each({"f32", "f16", "bf16", "f64"}, {"kl_div(T[10,17], T[10,17]; reduction=none)"}, oracle::Fill::special);
  list.add("kl_div(f32[5,13]/4, f32[5,13]/4) -> f32[]/4");
  list.add("kl_div(bf16[5,13], bf16[5,13]) -> f32[]");
  list.add("poisson_nll_loss(f32[5,13]/4, f32[5,13]/4; reduction=none) -> f32[5,13]/4");
  list.add("poisson_nll_loss(f32[5,13], f32[5,13]) -> f64[]");
}

}  // namespace

std::vector<CaseText> loss_cases() {
  List list;
  add_class_losses(list);
  add_pointwise_losses(list);
  return list.take();
}

Checks loss_checks() {
  return {
      .small =
          {
              "cross_entropy(T[5,7], i64[5])",
              "cross_entropy(T[5,7], i64[5], T[7]; label_smoothing=0.1)",
              "cross_entropy(T[5,7], T[5,7]; reduction=none)",
              "nll_loss(T[5,7], i64[5], T[7])",
              "kl_div(T[5,7], T[5,7])",
              "poisson_nll_loss(T[5,7], T[5,7]; full=true)",
              "cross_entropy:backward(T[5,7], i64[5], T[])",
              "nll_loss:backward(T[5,7], i64[5], T[7], T[])",
          },
      .by_lines =
          {
              "cross_entropy(f32[6,33], i64[6]; reduction=none)",
              "cross_entropy(f32[6,9001], i64[6]; reduction=none)",
              "cross_entropy(f32[6,33], f32[6,33]; reduction=none)",
              "cross_entropy(f32[6,33], i64[6]; reduction=none label_smoothing=0.1)",
              "cross_entropy:backward(f32[6,33], i64[6], f32[6]; reduction=none)",
          },
      .gradients =
          {
              "cross_entropy:backward(f64[4,5], i64[4], f64[])",
              "cross_entropy:backward(f64[4,5], i64[4], f64[5], f64[4]; reduction=none)",
              "cross_entropy:backward(f64[4,5], i64[4], f64[5], f64[]; label_smoothing=0.2 ignore_index=2)",
              "cross_entropy:backward(f64[2,5,3], i64[2,3], f64[]; reduction=sum)",
              "cross_entropy:backward(f64[5], i64[], f64[])",
              "cross_entropy:backward(f64[4,5], f64[4,5], f64[5], f64[]; label_smoothing=0.3)",
              "nll_loss:backward(f64[4,5], i64[4], f64[5], f64[])",
              "nll_loss:backward(f64[2,5,3], i64[2,3], f64[2,3]; reduction=none)",
          },
      .mistakes =
          {
              {"cross_entropy(f32[20,9], i64[20])", "cross_entropy(f32[20,9], i64[20]; label_smoothing=0.01)"},
              {"poisson_nll_loss(bf16[50], bf16[50]; full=true)", "poisson_nll_loss(bf16[50], bf16[50])"},
              {"kl_div(f32[5,9], f32[5,9]; reduction=batchmean)", "kl_div(f32[5,9], f32[5,9])"},
          },
      .gradient_mistakes =
          {
              {"cross_entropy:backward(f32[20,9], i64[20], f32[])",
               "cross_entropy:backward(f32[20,9], i64[20], f32[]; label_smoothing=0.01)"},
              {"cross_entropy:backward(bf16[20,9], i64[20], bf16[])",
               "cross_entropy:backward(bf16[20,9], i64[20], bf16[]; reduction=sum)"},
          },
  };
}

}  // namespace xpuruntime::cases
