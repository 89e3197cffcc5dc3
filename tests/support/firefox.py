"""Firefox for tests of pages, driven by WebDriver BiDi over its own port: Playwright drives no Firefox of a distribution."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
WAIT_S = 60.0
_PREFERENCES = {
    "remote.active-protocols": 1, "datareporting.policy.dataSubmissionEnabled": False, "app.update.disabledForTesting": True,
    "browser.shell.checkDefaultBrowser": False, "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False, "services.settings.server": "data:,#remote-settings-dummy/v1",
}  # fmt: skip


class WebSocket:
    """The client side of a WebSocket with text messages, as far as BiDi needs it."""

    def __init__(self, host: str, port: int, path: str) -> None:
        self.socket = socket.create_connection((host, port), timeout=WAIT_S)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}:{port}", "Upgrade: websocket", "Connection: Upgrade",
                 f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]  # fmt: skip
        self.socket.sendall("\r\n".join(lines).encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += self._read(1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise ConnectionError(head.decode("latin-1"))

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            piece = self.socket.recv(size - len(found))
            if not piece:
                raise ConnectionError("the browser closed the connection")
            found += piece
        return found

    def send(self, text: str) -> None:
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        length = struct.pack("!B", 128 | size) if size < 126 else struct.pack("!BH", 254, size)
        length = struct.pack("!BQ", 255, size) if size > 65_535 else length
        self.socket.sendall(b"\x81" + length + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def receive(self) -> str:
        message = b""
        while True:
            first, second = self._read(2)
            size = second & 127
            if size == 126:
                (size,) = struct.unpack("!H", self._read(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self._read(8))
            data = self._read(size)
            if first & 15 in (0, 1):
                message += data
                if first & 128:
                    return message.decode()


class Firefox:
    """One window of Firefox."""

    def __init__(self, port: int) -> None:
        self.socket, self.number, self.errors = WebSocket("127.0.0.1", port, "/session"), 0, list[str]()
        self.ask("session.new", capabilities={})
        self.ask("session.subscribe", events=["log.entryAdded"])
        self.window = self.ask("browsingContext.getTree")["contexts"][0]["context"]

    def ask(self, method: str, **parameters: Any) -> Any:
        """Send a command, and wait for its answer; errors and warnings on the page are kept."""
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.receive())
            if answer.get("method") == "log.entryAdded":
                entry = answer["params"]
                if entry["level"] in ("error", "warn"):
                    self.errors.append(str(entry["text"]))
            elif answer.get("id") == self.number:
                if answer.get("type") == "error":
                    raise AssertionError(f"{method}: {answer['message']}")
                return answer["result"]

    def open(self, url: str, width: int = 1100, height: int = 800) -> None:
        """Go to a page."""
        self.ask("browsingContext.setViewport", context=self.window, viewport={"width": width, "height": height})
        self.ask("browsingContext.navigate", context=self.window, url=url, wait="complete")

    def run(self, script: str) -> Any:
        """Return what an expression of JavaScript comes to, as JSON."""
        target, text = {"context": self.window}, f"JSON.stringify(({script}) ?? null)"
        answer = self.ask("script.evaluate", expression=text, target=target, awaitPromise=True)
        if answer["type"] == "exception":
            raise AssertionError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def wait_for(self, script: str) -> Any:
        """Wait until an expression comes to something."""
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            found = self.run(script)
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"it did not happen in time: {script}")

    def fill(self, selector: str, text: str) -> None:
        """Type into a field."""
        self.wait_for(f"document.querySelector({selector!r}) !== null")
        self.run(f"""(() => {{ const field = document.querySelector({selector!r}); field.value = {text!r};
            for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, {{bubbles: true}}));
            return true; }})()""")

    def click(self, selector: str, text: str = "") -> None:
        """Click on the first element with a text."""
        element = (
            f"[...document.querySelectorAll({selector!r})].find((e) => e.textContent.includes({text!r}) && !e.disabled)"
        )
        self.wait_for(f"{element} !== undefined")
        self.run(f"({element}.click(), true)")

    def choose(self, selector: str, *paths: Path) -> None:
        """Choose files."""
        answer = self.ask(
            "browsingContext.locateNodes", context=self.window, locator={"type": "css", "value": selector}
        )
        element = {"sharedId": answer["nodes"][0]["sharedId"]}
        self.ask("input.setFiles", context=self.window, element=element, files=[str(path) for path in paths])

    def picture(self) -> bytes:
        """Return the page as PNG."""
        return base64.b64decode(self.ask("browsingContext.captureScreenshot", context=self.window)["data"])


@contextmanager
def firefox(profile: Path, port: int) -> Iterator[Firefox]:
    """Start Firefox without a window on the screen, with a profile of its own."""
    profile.mkdir(parents=True, exist_ok=True)
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in _PREFERENCES.items()]
    (profile / "user.js").write_text("\n".join(lines))
    command = [
        str(FIREFOX),
        "--headless",
        "--no-remote",
        "--profile",
        str(profile),
        "--remote-debugging-port",
        str(port),
    ]
    process = subprocess.Popen(
        [*command, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": str(profile)}
    )  # fmt: skip
    page: Firefox | None = None
    try:
        page = _connected(port, process)
        yield page
    finally:
        if page is not None:
            page.socket.socket.close()
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def _connected(port: int, process: subprocess.Popen[bytes]) -> Firefox:
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until and process.poll() is None:
        try:
            return Firefox(port)
        except OSError:
            time.sleep(0.1)
    raise AssertionError("Firefox does not answer")
