"""xrt amp, and explain --autocast."""
import unittest

from xrt_case import CliTest

ROW_KEYS = ["op", "forward", "backward", "from", "forward_dtype", "backward_dtype"]


class Amp(CliTest):
    def rows(self, *arguments):
        document = self.document("amp", "list", "--json", *arguments)
        self.assertEqual(list(document), ["version", "target", "higher", "ops"])
        return {row["op"]: row for row in document["ops"]}

    def test_the_list_has_every_op_and_where_its_rule_comes_from(self):
        rows = self.rows()
        self.assertEqual(len(rows), len({row["op"] for row in self.document("kernels", "--json")["kernels"]}))
        for row in rows.values():
            self.assertEqual(list(row), ROW_KEYS)
        self.assertEqual((rows["matmul"]["forward"], rows["matmul"]["from"]), ("lower", "default"))
        self.assertEqual((rows["softmax"]["forward"], rows["softmax"]["from"]), ("higher", "default"))
        self.assertEqual((rows["attention"]["forward"], rows["attention"]["from"]), ("lower", "category"))
        self.assertEqual(rows["matmul"]["forward_dtype"], {"f64": "f64", "f32": "bf16", "f16": "f16", "bf16": "bf16"})
        self.assertEqual(self.rows("--dtype", "fp16")["matmul"]["backward_dtype"]["f32"], "f16")

    def test_a_policys_rules_are_shown_as_its_own(self):
        policy = self.write("policy.json", '{"precision": {"Conv2d": {"forward": "bf16", "backward": "f32"}}}')
        row = self.rows("--policy", policy)["conv2d"]
        self.assertEqual((row["forward"], row["backward"], row["from"]), ("bf16", "f32", "policy"))
        self.assertEqual((row["forward_dtype"]["f64"], row["backward_dtype"]["f64"]), ("bf16", "f32"))
        self.assertIn("forward bf16, backward f32 (policy)", self.fine("amp", "get", "conv", "--policy", policy))
        policy = self.write("policy.json", '{"precision": {"matmul": {"backward": "f32"}}}')
        row = self.rows("--policy", policy)["matmul"]
        self.assertEqual((row["forward"], row["backward"], row["from"]), ("lower", "f32", "default, backward policy"))

    def test_wrong_usage_says_what_to_write(self):
        self.refused(2, "amp", "get", says="get needs an op")
        self.refused(2, "amp", "list", "matmul", says="xrt amp get matmul")
        self.refused(2, "amp", "get", "matmull", says="did you mean matmul")
        self.refused(2, "amp", "list", "--dtype", "f32", says="give f16 or bf16")
        self.refused(2, "amp", "list", "--dtype", "f17", says="f16")
        self.refused(2, "amp", "show", says="show")
        self.refused(2, "amp", "list", "--policy", self.folder / "none.json", says="none.json")
        bad = self.write("bad.json", '{"precision": {"matmul": {"forwards": "bf16"}}}')
        self.refused(2, "amp", "list", "--policy", bad, says="precision.matmul.forwards")
        bad = self.write("bad.json", '{"precision": {"matmul": "i8"}}')
        self.refused(2, "amp", "list", "--policy", bad, says="not a float type")
        bad = self.write("bad.json", '{"precision": {"matmul": "bf16", "gemm": "f16"}}')
        self.refused(2, "amp", "list", "--policy", bad, says="another name")

    def test_explain_shows_the_casts(self):
        decision = self.document("explain", "linear(f32[4,8], f32[6,8], f32[6])", "--autocast", "f16", "--json")
        self.assertEqual(decision["problem"], "linear(f16[4,8], f16[6,8], f16[6]) @cpu:0")
        self.assertEqual([cast["tensor"] for cast in decision["casts"]], ["input 0", "input 1", "input 2", "output 0"])
        self.assertEqual(decision["precision"]["forward"], "f16")
        self.refused(2, "explain", "relu(f32[4])", "--autocast", "f64", says="not a low precision")

    def test_a_run_in_lower_precision_is_held_to_that_precision(self):
        policy = self.write("policy.json", '{"precision": {"matmul": "bf16"}}')
        result = self.document("run", "matmul(f32[64,64], f32[64,64])", "--policy", policy, "--json")
        self.assertEqual(result["decision"]["problem"], "matmul(bf16[64,64], bf16[64,64]) @cpu:0")
        self.assertEqual(len(result["decision"]["casts"]), 3)
        self.assertGreater(result["check"]["max_rel_error"], 1e-4)
        self.assertTrue(result["check"]["within"])


if __name__ == "__main__":
    unittest.main()
