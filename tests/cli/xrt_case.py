"""How the tests run the built xrt. XRT is its path, XRT_BAD_KERNELS and XRT_TOY_DEVICE plugins', XRT_ROOT the repository's."""
import json
import os
import pty
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

XRT = os.environ["XRT"]
BAD_KERNELS = os.environ["XRT_BAD_KERNELS"]
TOY_DEVICE = os.environ["XRT_TOY_DEVICE"]  # its device is toy:0, its kernel toy_relu
ROOT = Path(os.environ["XRT_ROOT"])
PROFILES = ROOT / "tests" / "data" / "profiles"

# Nothing that the user has measured or set may show in a test, and no test may write there.
SCRATCH = tempfile.TemporaryDirectory()
os.environ["XPURUNTIME_STORE"] = f"{SCRATCH.name}/store.sqlite"
for variable in ("XPURUNTIME_POLICY", "XPURUNTIME_LOCK"):
    os.environ.pop(variable, None)

# A shell starts background jobs with Ctrl-C ignored, and commands that tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

SQUARE = "matmul(f32[64,64], f32[64,64])"
COMMANDS = ["devices", "profile", "kernels", "explain", "inspect", "run", "bench", "tune", "policy", "lock", "store", "cache", "report", "trace", "amp", "demo", "completion"]


def xrt(*arguments, **options):
    environment = {**os.environ, **options.pop("env", {})}
    return subprocess.run([XRT, *map(str, arguments)], capture_output=True, text=True, timeout=120, env=environment,
                          **options)


def on_terminal(*arguments, **environment):
    """What xrt writes when its stdout is a terminal."""
    leader, follower = pty.openpty()
    variables = {**os.environ, "TERM": "xterm", **environment}
    if "NO_COLOR" not in environment:
        variables.pop("NO_COLOR", None)
    with subprocess.Popen([XRT, *arguments], stdout=follower, stderr=subprocess.DEVNULL, env=variables) as process:
        os.close(follower)
        output = b""
        while True:
            try:
                block = os.read(leader, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not block:
                break
            output += block
        process.wait(timeout=120)
    os.close(leader)
    return output.decode()


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def fine(self, *arguments, **options):
        """The answer of a command that has nothing to complain of."""
        answer = xrt(*arguments, **options)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""), answer)
        return answer.stdout

    def document(self, *arguments, code=0, **options):
        """The one JSON document on stdout."""
        answer = xrt(*arguments, **options)
        self.assertEqual(answer.returncode, code, answer)
        return json.loads(answer.stdout)

    def refused(self, code, *arguments, says=(), with_answer=False, **options):
        """A complaint: its exit code, its message on stderr, and nothing on stdout unless there is an answer too."""
        answer = xrt(*arguments, **options)
        self.assertEqual(answer.returncode, code, answer)
        self.assertTrue(answer.stderr.startswith("xrt: "), answer)
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, answer.stderr)
        self.assertEqual(answer.stdout != "", with_answer, answer)
        return answer
