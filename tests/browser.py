"""A headless Chromium for tests, spoken to in its DevTools protocol over a pair of pipes. Nothing to install but it.

The browser reads commands from file descriptor 3 and writes answers and events to 4, as JSON, each ended by a zero
byte (`--remote-debugging-pipe`). Everything here waits for its answer, so a test reads from top to bottom.
"""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-dev-shm-usage", "--force-color-profile=srgb", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 60  # seconds for one answer
KEYS = {"ArrowLeft": 37, "ArrowRight": 39, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36, "Tab": 9, "Enter": 13}


def find_chromium():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One Chromium with one page. `with Browser(folder) as browser: …`; folder is for its profile."""

    def __init__(self, folder):
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        flags = [*FLAGS, f"--user-data-dir={folder}", "about:blank"]
        shell = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "sh", str(commands), str(answers), find_chromium(), *flags],
            pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(commands)
        os.close(answers)
        self._number, self._buffer, self._session = 0, b"", None
        self.problems = []  # what the console has said of errors and warnings, uncaught exceptions, refused requests
        self.requests = []  # addresses that pages have asked for
        targets = self.command("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.command("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._session = None
        try:
            self.command("Browser.close")
        finally:
            os.close(self._commands)
            os.close(self._answers)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    # ---- the protocol ------------------------------------------------------------------------------

    def command(self, method, **params):
        """Send a command, and wait for its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _read(self):
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0, until - time.monotonic()))
            chunk = os.read(self._answers, 1 << 16) if ready else b""
            if not chunk:
                raise RuntimeError("the browser does not answer" if not ready else "the browser has gone")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(params["exceptionDetails"].get("exception", {}).get("description", str(params)))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    # ---- what a person does ------------------------------------------------------------------------

    def open(self, path, width=1280, height=900, dark=False, calm=False, fragment="", touch=False):
        """Open a file in a window of this size, and wait until it is there."""
        self.problems.clear()
        self.requests.clear()
        size = dict(width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.command("Emulation.setDeviceMetricsOverride", **size)
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if calm else "no-preference"},
        ]
        self.command("Emulation.setEmulatedMedia", features=features)
        self.command("Page.navigate", url="about:blank")
        self.command("Page.navigate", url=pathlib.Path(path).resolve().as_uri() + fragment)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def wait(self, condition):
        """Wait until an expression of JavaScript is true."""
        until = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            assert time.monotonic() < until, f"never came true: {condition}"
            time.sleep(0.02)

    def evaluate(self, expression):
        """The value of an expression of JavaScript, as JSON can say it."""
        result = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']['exception'].get('description')}")
        return result["result"].get("value")

    def text(self, selector):
        """The text of the first element that a CSS selector finds."""
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def texts(self, selector):
        """The texts of all of them."""
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")

    def attribute(self, selector, name):
        """An attribute of the first element that a CSS selector finds."""
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).getAttribute({json.dumps(name)})")

    def press(self, *keys):
        """Press keys, one after the other."""
        for key in keys:
            code = KEYS.get(key, ord(key.upper()) if len(key) == 1 else 0)
            params = dict(key=key, windowsVirtualKeyCode=code)
            if len(key) == 1:
                params["text"] = key
            self.command("Input.dispatchKeyEvent", type="keyDown", **params)
            self.command("Input.dispatchKeyEvent", type="keyUp", **params)

    def click(self, x, y, to=None):
        """Press the mouse at a point of the window, and release it there, or after a drag to another."""
        button = dict(button="left", clickCount=1)
        self.command("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, buttons=1, **button)
        if to is not None:
            x, y = to
            self.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, buttons=1, button="left")
        self.command("Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y, buttons=0, **button)

    def screenshot(self, path=None, whole=False):
        """The window as PNG bytes, written to a file too if there is a path; `whole`: the page to its end."""
        data = base64.b64decode(self.command("Page.captureScreenshot", captureBeyondViewport=whole)["data"])
        if path is not None:
            pathlib.Path(path).write_bytes(data)
        return data
