"""What holds for every command: help, errors, pipes, colours, completion."""
import os
import shutil
import subprocess
import unittest

from xrt_case import COMMANDS, SQUARE, XRT, CliTest, on_terminal


class CommandLine(CliTest):
    def test_version_is_one_line(self):
        self.assertRegex(self.fine("--version"), r"\Axrt \d+\.\d+\.\d+\n\Z")

    def test_help_names_every_command_and_each_has_an_example(self):
        text = self.fine("--help")
        for command in COMMANDS:
            self.assertIn(f"  {command} ", text)
            self.assertRegex(self.fine(command, "--help"), rf"Example:\n  .*xrt {command}")

    def test_no_command_is_wrong_usage(self):
        self.refused(2, says="no command was given")

    def test_unknown_words_list_near_ones(self):
        self.refused(2, "kernls", says=["unknown command 'kernls'", "kernels"])
        self.refused(2, "kernels", "--jsn", says=["unknown option '--jsn'", "--json"])
        self.assertEqual(self.refused(2, "run", SQUARE, "--bogus").stderr.count("--help"), 1)
        self.refused(2, "kernels", "", says="unknown op ''")
        self.refused(2, "kernels", "matmull", says=["unknown op 'matmull'", "matmul"])
        self.refused(2, "explain", SQUARE, "--force", "openblass", says=["'openblass'", "openblas"])
        self.refused(2, "explain", "matmul(f31[2,2], f32[2,2])", says=["column 8", "f31"])
        self.refused(2, "explain", SQUARE, "--device", "cudda", says="cuda")
        self.refused(2, "completion", "tcsh", says="bash")

    def test_missing_and_extra_arguments_are_wrong_usage(self):
        self.refused(2, "explain", says="problem")
        self.refused(2, "run", says="problem")
        self.refused(2, "trace", says="problem")
        self.refused(2, "--device", says="--device")
        self.refused(2, "explain", SQUARE, SQUARE)
        self.refused(2, "run", SQUARE, "--repeat", "0", says="--repeat")
        self.refused(2, "run", SQUARE, "--repeat", "many", says="--repeat")
        for command in ["run", "trace"]:
            for seed in ["-1", "x", "", "1.5", "18446744073709551616"]:
                answer = self.refused(2, command, SQUARE, "--seed", seed, says=["--seed", "18446744073709551615"])
                self.assertLess(len(answer.stderr), 200)
        self.fine("run", SQUARE, "--seed", "18446744073709551615")

    def test_garbage_problems_are_wrong_usage(self):
        for text in ["", " ", "(", "matmul", "matmul(", "matmul()", "f32[2,2]", "matmul(f32[2,2], f32[3,3])",
                     "relu(f32[2]) @", "relu(f32[2]) @cpu:999", "relu(f32[-2])", "relu(f32[2]) more", "\x01\xff",
                     "relu(f32[1,1,1,1,1,1,1,1,1])", "relu(" * 2000]:
            with self.subTest(text[:40]):
                self.refused(2, "explain", text)
                self.refused(2, "run", text)
                self.refused(2, "trace", text)

    def test_shapes_past_63_bits_are_wrong_usage_and_those_past_memory_a_no(self):
        huge = "relu(f32[4000000000,4000000000])"
        self.refused(2, "explain", huge, says="63 bits")
        self.refused(2, "run", huge, says="63 bits")
        too_large = "relu(f32[1000000,10000000])"
        self.fine("explain", too_large)
        self.refused(1, "run", too_large, says="GiB")
        self.refused(1, "trace", too_large, says="GiB")
        self.refused(1, "run", "relu(f32[2]{1000000000000000})", says="GiB")

    def test_global_options_may_stand_before_and_after_the_command(self):
        for arguments in [("--device", "cpu:0", "explain", SQUARE), ("explain", "--device", "cpu:0", SQUARE),
                          ("explain", SQUARE, "--device", "cpu")]:
            self.assertIn("@cpu:0", self.fine(*arguments))

    def test_a_closed_pipe_is_no_crash(self):
        script = '"$XRT" kernels | head -1; echo "${PIPESTATUS[0]}"'
        for _ in range(5):
            answer = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
            self.assertEqual((answer.stdout, answer.stderr), ("matmul\n0\n", ""))
        reader, writer = os.pipe()
        os.close(reader)  # nobody will ever read: every write fails
        with os.fdopen(writer, "w") as closed:
            answer = subprocess.run([XRT, "kernels"], stdout=closed, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))

    def test_an_answer_that_cannot_be_written_is_told(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            answer = subprocess.run([XRT, "kernels"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(answer.returncode, 1)
        self.assertIn("xrt: the output could not be written", answer.stderr)


class Colours(CliTest):
    COLOURED = [("devices",), ("kernels",), ("explain", SQUARE), ("run", SQUARE)]

    def test_pipes_get_none(self):
        for arguments in self.COLOURED:
            self.assertNotIn("\033", self.fine(*arguments))

    def test_a_terminal_gets_some_unless_it_says_no(self):
        for arguments in self.COLOURED:
            self.assertIn("\033[", on_terminal(*arguments))
            self.assertNotIn("\033", on_terminal(*arguments, NO_COLOR="1"))
            self.assertNotIn("\033", on_terminal(*arguments, TERM="dumb"))
        self.assertIn("\033[31m", on_terminal("explain", "exp:backward(f32[8], f32[8])"))

    def test_json_has_none_even_on_a_terminal(self):
        self.assertNotIn("\033", on_terminal("explain", SQUARE, "--json"))


class Completion(CliTest):
    def completed(self, *words):
        """What bash offers for the last of the words."""
        script = ('eval "$("$XRT" completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  '_xrt; echo "${COMPREPLY[*]}"')
        answer = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, timeout=60)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        return answer.stdout.split()

    def test_bash_offers_commands_options_ops_and_kernels(self):
        self.assertEqual(self.completed("xrt", "ke"), ["kernels"])
        self.assertEqual(self.completed("xrt", "explain", "--p"), ["--policy", "--profile"])
        self.assertEqual(self.completed("xrt", "kernels", "softm"), ["softmax"])
        self.assertEqual(self.completed("xrt", "run", "x", "--force", "openb"), ["openblas"])
        self.assertEqual(self.completed("xrt", "--device", "cu"), ["cuda"])
        self.assertEqual(self.completed("xrt", "completion", "z"), ["zsh"])

    def test_the_scripts_have_no_syntax_errors_and_know_every_command(self):
        for shell in ["bash", "zsh", "fish"]:
            script = self.fine("completion", shell)
            for command in COMMANDS:
                self.assertIn(command, script)
            if shutil.which(shell):
                path = self.write(f"completion.{shell}", script)
                answer = subprocess.run([shell, "-n", path], capture_output=True, text=True, timeout=60)
                self.assertEqual((answer.returncode, answer.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
