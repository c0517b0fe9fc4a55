"""A small client of a headless Chromium: its DevTools protocol over a socket that only both of them
hold."""

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ANSWER_SECONDS = 120.0
"""The longest that the browser may be silent while it is asked."""
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-breakpad",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


class BrowserError(Exception):
    """The browser refused a command or has ended, or JavaScript of a test failed."""


class Browser:
    """A browser that runs. ``heard`` holds what each event of each session told. A message ends
    with a NUL."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._rest, self._last = connection, b"", 0
        self.heard: defaultdict[tuple[str | None, str], list[dict[str, Any]]] = defaultdict(list)

    def command(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Return the browser's answer to one command. Raise ``BrowserError`` if it refuses."""
        self._last += 1
        target = {"sessionId": session} if session else {}
        question = {"id": self._last, "method": method, "params": parameters} | target
        self._connection.sendall(json.dumps(question).encode() + b"\0")
        while (answer := self.next()).get("id") != self._last:
            pass
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def next(self) -> dict[str, Any]:
        """Wait for the browser's next message and return it; what an event tells is heard."""
        while b"\0" not in self._rest:
            if not (chunk := self._connection.recv(1 << 20)):
                raise BrowserError("the browser has ended")
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.heard[message.get("sessionId"), message["method"]].append(message["params"])
        return message

    @contextmanager
    def page(self) -> Iterator["Page"]:
        """An empty page with storage of its own, closed at the end."""
        context = self.command("Target.createBrowserContext")["browserContextId"]
        try:
            target = self.command(
                "Target.createTarget", url="about:blank", browserContextId=context
            )["targetId"]
            yield Page(
                self,
                self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"],
            )
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

    def _heard(self, *methods: str) -> list[dict[str, Any]]:
        self.evaluate("0")  # what happened before this answer has arrived with it
        return [told for method in methods for told in self._browser.heard[self._session, method]]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What the page wrote to the console, its exceptions, and what the browser logged of it."""
        return self._heard("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")

    @property
    def requests(self) -> list[str]:
        """The address of each request of the page, its own file and data addresses too."""
        return [told["request"]["url"] for told in self._heard("Network.requestWillBeSent")]

    def open(self, address: Path | str) -> None:
        """Open a file, or an address, and wait until it is loaded."""
        url = address.resolve().as_uri() if isinstance(address, Path) else address
        loaded = self._browser.heard[self._session, "Page.loadEventFired"]
        loaded.clear()
        if error := self.command("Page.navigate", url=url).get("errorText"):
            raise BrowserError(f"{url}: {error}")
        while not loaded:
            self._browser.next()

    def viewport(self, width: int, height: int = 900) -> None:
        """Set the size of the window, in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.command("Emulation.setDeviceMetricsOverride", mobile=False, **size)

    def media(self, scheme: str = "light", medium: str = "") -> None:
        """Set the colour scheme that the reader prefers, and the medium: ``print`` for the page as
        it is printed."""
        preferred = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", media=medium, features=preferred)

    def without_scripts(self) -> None:
        """Execute no script of any file that is opened from now on; ``evaluate`` still works."""
        self.command("Emulation.setScriptExecutionDisabled", value=True)

    def evaluate(self, expression: str) -> Any:
        """Return the JSON value of a JavaScript expression, or the one that it promises."""
        answer = self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise BrowserError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def until(self, condition: str, seconds: float = 5.0) -> bool:
        """Return whether the expression becomes true in time."""
        end = time.monotonic() + seconds
        while not (true := bool(self.evaluate(condition))) and time.monotonic() < end:
            time.sleep(0.02)
        return true

    def click(self, element: str) -> None:
        """Scroll to the element of a JavaScript expression, move the mouse to its centre, and
        click."""
        x, y = self.evaluate(
            "(e => { e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height "
            f"/ 2]; }})({element})"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = "none" if kind == "mouseMoved" else "left"
            self.command(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1
            )

    def write(self, text: str) -> None:
        """Write a text where the focus is."""
        self.command("Input.insertText", text=text)

    def screenshot(self, top: float, height: float) -> bytes:
        """Return a PNG of the page's whole width from ``top`` on, ``height`` high, in CSS
        pixels."""
        clip = {
            "x": 0,
            "y": top,
            "width": self.evaluate("innerWidth"),
            "height": height,
            "scale": 1,
        }
        return base64.b64decode(
            self.command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        )

    def pdf(self) -> bytes:
        """Return the page as it is printed, as PDF, on the paper that it asks for or on A4."""
        paper = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}
        return base64.b64decode(self.command("Page.printToPDF", **paper)["data"])


def installed() -> str | None:
    """Return the path of the browser, or ``None`` where there is none."""
    return shutil.which("chromium") or shutil.which("google-chrome")


@contextmanager
def started(program: str) -> Iterator[Browser]:
    """A browser with a profile of its own; its whole process group ends with the context, whatever
    happens in it."""
    ours, its = socket.socketpair()
    ours.settimeout(ANSWER_SECONDS)
    # The browser reads descriptor 3 and writes 4: a shell opens both from the socket.
    command = ["bash", "-c", f'exec "$@" 3<&{its.fileno()} 4>&3', "bash", program, *OPTIONS]
    with ours, TemporaryDirectory(prefix="study-chromium-", ignore_cleanup_errors=True) as profile:
        with its:
            process = subprocess.Popen(
                [*command, f"--user-data-dir={profile}/profile", "about:blank"],
                pass_fds=[its.fileno()], start_new_session=True, env=os.environ | {"HOME": profile},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        try:
            yield Browser(ours)
        finally:
            # before it is waited for, so no other group can have it
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(ANSWER_SECONDS)
