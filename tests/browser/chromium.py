"""A small client of a headless Chromium: its DevTools protocol over a pipe, with no port and no library."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

ANSWER_SECONDS = 120.0
"""The longest that the browser may take over one command."""
OPTIONS = (
    "--headless", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage",
    "--disable-breakpad", "--disable-background-networking", "--disable-component-update", "--no-first-run",
    "--force-color-profile=srgb", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39}


class BrowserError(Exception):
    """The browser ended, is silent, or refused a command, or JavaScript of a test failed."""


class Pipe:
    """JSON messages to and from the browser, each ended by a NUL."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing, self._rest = reading, writing, b""
        os.set_blocking(writing, False)

    def send(self, message: dict[str, Any]) -> None:
        """Send one message. Raise ``BrowserError`` if the browser does not take it in time."""
        left, until = json.dumps(message).encode() + b"\0", time.monotonic() + ANSWER_SECONDS
        while left:
            _, ready, _ = select.select([], [self._writing], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise BrowserError("the browser takes no message")
            try:
                left = left[os.write(self._writing, left) :]
            except BrokenPipeError:
                raise BrowserError("the browser has ended") from None

    def receive(self, until: float) -> dict[str, Any]:
        """Return the next message. Raise ``BrowserError`` if none came until the monotonic time ``until``."""
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._reading], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise BrowserError(f"the browser was silent for {ANSWER_SECONDS:.0f} s")
            if not (chunk := os.read(self._reading, 1 << 20)):
                raise BrowserError("the browser has ended")
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed


class Browser:
    """A browser that runs. ``heard`` holds the events of each session, in their order."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe, self._last = pipe, 0
        self.heard: dict[str | None, list[dict[str, Any]]] = {}

    def command(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Return the browser's answer to one command. Raise ``BrowserError`` if it refuses or says nothing."""
        self._last += 1
        target = {"sessionId": session} if session else {}
        self._pipe.send({"id": self._last, "method": method, "params": parameters} | target)
        until = time.monotonic() + ANSWER_SECONDS
        while (answer := self._next(until)).get("id") != self._last:
            pass
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def wait_for(self, event: str, session: str, since: int) -> None:
        """Return once the session has had the event, its first ``since`` events left out."""
        until = time.monotonic() + ANSWER_SECONDS
        while not any(heard["method"] == event for heard in self.heard.get(session, [])[since:]):
            self._next(until)

    def _next(self, until: float) -> dict[str, Any]:
        message = self._pipe.receive(until)
        if "method" in message:
            self.heard.setdefault(message.get("sessionId"), []).append(message)
        return message

    @contextmanager
    def page(self) -> Iterator["Page"]:
        """An empty page with storage of its own, closed at the end."""
        context = self.command("Target.createBrowserContext")["browserContextId"]
        try:
            target = self.command("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
            session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            yield Page(self, session)
        finally:
            self.command("Target.disposeBrowserContext", browserContextId=context)


class Page:
    """One page: what a reader does with it, and what it says and asks for."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.command(f"{domain}.enable")
        self.command("Emulation.setFocusEmulationEnabled", enabled=True)
        self.viewport(1280)

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer to one command to this page."""
        return self._browser.command(method, self._session, **parameters)

    def _heard(self, method: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self._browser.heard.get(self._session, []) if event["method"] == method]

    @property
    def messages(self) -> list[str]:
        """What the page wrote to the console, its exceptions, and what the browser logged of it."""
        self.evaluate("0")  # what was said before this answer has arrived with it
        said = [" ".join(str(one.get("value", one.get("description"))) for one in event["args"])
                for event in self._heard("Runtime.consoleAPICalled")]  # fmt: skip
        thrown = [_exception(event["exceptionDetails"]) for event in self._heard("Runtime.exceptionThrown")]
        return said + thrown + [event["entry"]["text"] for event in self._heard("Log.entryAdded")]

    @property
    def requests(self) -> list[str]:
        """The address of each request of the page, its own file and data addresses too."""
        self.evaluate("0")
        return [event["request"]["url"] for event in self._heard("Network.requestWillBeSent")]

    def open(self, address: Path | str) -> None:
        """Open a file, or an address, and wait until it is loaded."""
        since = len(self._browser.heard.get(self._session, []))
        url = address.resolve().as_uri() if isinstance(address, Path) else address
        answer = self.command("Page.navigate", url=url)
        if "errorText" in answer:
            raise BrowserError(f"{url}: {answer['errorText']}")
        if "loaderId" in answer:  # a new fragment of the same file loads nothing
            self._browser.wait_for("Page.loadEventFired", self._session, since)

    def viewport(self, width: int, height: int = 900, scale: float = 1.0) -> None:
        """Set the size of the window, in CSS pixels, and the device's pixels to one of those."""
        size = {"width": width, "height": height, "deviceScaleFactor": scale}
        self.command("Emulation.setDeviceMetricsOverride", mobile=False, **size)

    def media(self, scheme: Literal["light", "dark"] = "light", medium: Literal["", "print"] = "") -> None:
        """Set the colour scheme that the reader prefers, and whether the page is shown as in print."""
        preferred = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", media=medium, features=preferred)

    def without_scripts(self) -> None:
        """Execute no script of any file that is opened from now on; ``evaluate`` still works."""
        self.command("Emulation.setScriptExecutionDisabled", value=True)

    def evaluate(self, expression: str) -> Any:
        """Return the JSON value of a JavaScript expression, or the one that it promises."""
        answer = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(_exception(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def until(self, condition: str, seconds: float = 5.0) -> bool:
        """Return whether the expression becomes true in time."""
        end = time.monotonic() + seconds
        while not (true := bool(self.evaluate(condition))) and time.monotonic() < end:
            time.sleep(0.05)
        return true

    def centre(self, element: str) -> tuple[float, float]:
        """Return the centre of the element of a JavaScript expression in the window, after scrolling to it."""
        to_centre = "e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'})"
        x, y = self.evaluate(
            f"(e => {{{to_centre}; const b = e.getBoundingClientRect();"
            f"return [b.x + b.width / 2, b.y + b.height / 2]}})({element})"
        )
        return x, y

    def click(self, element: str) -> None:
        """Move the mouse to the centre of an element, and click."""
        x, y = self.centre(element)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def press(self, key: Literal["Tab", "Enter", "Escape", "ArrowRight"]) -> None:
        """Press a key and let it go."""
        named: dict[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        self.command("Input.dispatchKeyEvent", type="keyDown", **named, **({"text": "\r"} if key == "Enter" else {}))
        self.command("Input.dispatchKeyEvent", type="keyUp", **named)

    def write(self, text: str) -> None:
        """Write a text where the focus is."""
        self.command("Input.insertText", text=text)

    def screenshot(self, top: float | None = None, height: float = 0.0) -> bytes:
        """Return a PNG of the window, or of the whole width from ``top`` on, ``height`` high, in CSS pixels."""
        wide: dict[str, Any] = {}
        if top is not None:
            clip = {"x": 0, "y": top, "width": self.evaluate("innerWidth"), "height": height, "scale": 1}
            wide = {"captureBeyondViewport": True, "clip": clip}
        return base64.b64decode(self.command("Page.captureScreenshot", format="png", **wide)["data"])

    def pdf(self) -> bytes:
        """Return the page as it is printed, as PDF, on the paper that it asks for or on A4."""
        paper = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}
        return base64.b64decode(self.command("Page.printToPDF", **paper)["data"])


def _exception(details: dict[str, Any]) -> str:
    return str(details.get("exception", {}).get("description") or details["text"])


def installed() -> str | None:
    """Return the path of the browser, or ``None`` where there is none."""
    return next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)


@contextmanager
def started(program: str) -> Iterator[Browser]:
    """A browser with a profile of its own; its whole process group ends with the context, whatever happens in it."""
    with TemporaryDirectory(prefix="study-chromium-", ignore_cleanup_errors=True) as profile:
        answers, to_us = os.pipe()
        to_it, questions = os.pipe()
        # The browser reads descriptor 3 and writes 4. They are opened from ends with higher numbers, by a shell.
        ends = (os.dup(to_it), os.dup(to_us))
        script = 'exec "${@:3}" 3<&"$1" 4>&"$2"'
        command = [program, *OPTIONS, f"--user-data-dir={profile}/profile", "about:blank"]
        with (Path(profile) / "said").open("wb") as said:
            process = subprocess.Popen(
                ["bash", "-c", script, "bash", *(str(end) for end in ends), *command],
                pass_fds=ends, start_new_session=True, env=os.environ | {"HOME": profile},
                stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            )  # fmt: skip
        for end in (*ends, to_it, to_us):
            os.close(end)
        try:
            yield Browser(Pipe(answers, questions))
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # before it is waited for, so no other group can have it
            process.wait(ANSWER_SECONDS)
            os.close(answers)
            os.close(questions)
