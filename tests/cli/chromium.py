"""A headless Chromium for tests, driven over the DevTools protocol on a pair of pipes by Python's own library alone."""
import base64
import json
import os
import select
import shutil
import struct
import subprocess
import tempfile
import time
import zlib
from pathlib import Path
from urllib.parse import quote

PROGRAM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--hide-scrollbars",
         "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--force-device-scale-factor=1", "--remote-debugging-pipe"]
PATIENCE_S = 60


class Chromium:
    """One browser with one page. `calls` holds what the page asked the network for, `complaints` its errors."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        their_input, self.output = os.pipe()
        self.input, their_output = os.pipe()
        # The protocol wants its pipes at 3 and 4.
        script = f'exec "$0" "$@" 3<&{their_input} 4>&{their_output}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, PROGRAM, *FLAGS, f"--user-data-dir={self.folder.name}", "about:blank"],
            pass_fds=(their_input, their_output), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.folder.name}, start_new_session=True)
        os.close(their_input)
        os.close(their_output)
        self.buffer, self.number, self.session = b"", 0, None
        self.events, self.calls, self.complaints = [], [], []
        page = next(t for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Network", "Log"]:
            self.send(f"{domain}.enable")

    def close(self):
        try:
            self.session = None
            self.send("Browser.close")
            self.process.wait(timeout=10)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.input)
        os.close(self.output)
        self.folder.cleanup()

    def receive(self, deadline):
        """The next message."""
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.input], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            block = os.read(self.input, 1 << 20)
            if not block:
                raise EOFError("the browser has gone")
            self.buffer += block
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        self.note(message)
        return message

    def note(self, message):
        method, values = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.calls.append(values["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(values["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.complaints.append(values["entry"]["text"])
        if method:
            self.events.append(method)

    def send(self, method, **values):
        self.number += 1
        message = {"id": self.number, "method": method, "params": values}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path):
        """Shows a file; back when it is loaded."""
        self.events, self.calls, self.complaints = [], [], []
        self.send("Page.navigate", url="file://" + quote(str(Path(path).resolve())))
        deadline = time.monotonic() + PATIENCE_S
        while "Page.loadEventFired" not in self.events:
            self.receive(deadline)

    def run(self, script):
        """The value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def show_as(self, width=1280, height=900, scheme="light", media=""):
        """The size of the window, and what its user likes."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", media=media, features=features)

    def press(self, key, code=None, text=""):
        """One key, as a person presses it."""
        names = {"Tab": 9, "Enter": 13, " ": 32}
        values = {"key": key, "code": code or key, "windowsVirtualKeyCode": names.get(key, 0)}
        self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **values)
        self.send("Input.dispatchKeyEvent", type="keyUp", **values)

    def type(self, text):
        self.send("Input.insertText", text=text)

    def screenshot(self, whole=False):
        """A PNG file's bytes."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"])


def colours_of(png):
    """Width, height and the set of colours of a PNG of 8-bit RGB or RGBA."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n", png[:8]
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert depth == 8 and kind in (2, 6), (depth, kind)
    at, packed = 8, b""
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at:at + 8])
        if name == b"IDAT":
            packed += png[at + 8:at + 8 + length]
        at += 12 + length
    return width, height, pixels(zlib.decompress(packed), width, height, 3 if kind == 2 else 4)


def pixels(raw, width, height, size):
    """Undoes the filters of PNG, line by line."""
    found, above, stride = set(), bytes(width * size), width * size + 1
    for y in range(height):
        kind, line = raw[y * stride], bytearray(raw[y * stride + 1:(y + 1) * stride])
        for i in range(len(line)):
            left, up = line[i - size] if i >= size else 0, above[i]
            corner = above[i - size] if i >= size else 0
            line[i] = (line[i] + (0, left, up, (left + up) // 2, paeth(left, up, corner))[kind]) & 255
        found.update(zip(*(line[c::size] for c in range(3))))
        above = line
    return found


def paeth(left, up, corner):
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))
