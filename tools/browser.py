#!/usr/bin/env python3
"""Tests the page of examples/browser in headless Chromium and takes pictures of it.

    tools/browser.py SITE PICTURES

SITE is the folder that tools/browser.sh built. The page is served on this machine only. The test trains a network, loads PyTorch's network,
and draws a digit with the mouse. Needs Python 3, and Chromium with its driver.
"""

import base64
import functools
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

LIMIT = 180  # seconds for each wait, on a busy machine
OPTIONS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1000,1200",
]
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
# The points of a 0, in shares of the drawing area. A 7 would need a bar in the middle, as in the data set.
ZERO = [(0.5, 0.1), (0.3, 0.25), (0.25, 0.5), (0.3, 0.75), (0.5, 0.9), (0.7, 0.75), (0.75, 0.5), (0.7, 0.25), (0.5, 0.1)]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line for each request."""

    def log_message(self, *_):
        pass


class Browser:
    """A session of the driver, by the WebDriver protocol (https://www.w3.org/TR/webdriver2/)."""

    def __init__(self, port, profile):
        self.root = f"http://127.0.0.1:{port}"
        until(lambda: self.call("GET", "/status")["ready"], "the driver starts")
        chromium = next(path for path in map(shutil.which, ["chromium", "chromium-browser", "google-chrome"]) if path)
        options = {"binary": chromium, "args": [*OPTIONS, f"--user-data-dir={profile}"]}
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})
        self.root += f"/session/{answer['sessionId']}"

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=LIMIT) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from None

    def run(self, script):
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def data(self):
        """Returns the state that the page shows in the attributes of its body."""
        return self.run("return {...document.body.dataset}")

    def wait_for(self, state):
        until(lambda: self.data().get("state") in (state, "failed"), f"the page is {state}")
        data = self.data()
        if data["state"] == "failed":
            raise RuntimeError(self.run("return document.getElementById('status').textContent"))
        return data

    def click(self, name):
        self.run(f"document.getElementById('{name}').click()")

    def draw(self, points):
        area = self.run("const {x, y, width, height} = document.getElementById('drawing').getBoundingClientRect(); return [x, y, width, height]")
        places = [(round(area[0] + x * area[2]), round(area[1] + y * area[3])) for x, y in points]
        moves = [{"type": "pointerMove", "duration": 20, "x": x, "y": y} for x, y in places]
        actions = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}
        self.call("POST", "/actions", {"actions": [mouse]})

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))


def until(condition, what):
    """Waits until the condition is true."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"not within {LIMIT} s: {what}")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test(browser, address, pictures):
    browser.call("POST", "/url", {"url": address})
    until(lambda: "loaded" in browser.data(), "the page is loaded")
    start = browser.wait_for("ready")
    assert float(start["accuracy"]) < 0.5, start
    browser.picture(pictures / "start.png")
    browser.click("train")
    trained = browser.wait_for("trained")
    assert float(trained["accuracy"]) > 0.95, trained
    browser.click("pytorch")
    loaded = browser.wait_for("loaded")
    assert float(loaded["accuracy"]) > 0.95 and loaded["accuracy"] != trained["accuracy"], (trained, loaded)
    browser.draw(ZERO)
    until(lambda: browser.data().get("guess") == "0", "the page reads a drawn 0")
    browser.picture(pictures / "drawn.png")
    # A phone has a narrow screen. The page must not be wider.
    browser.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": PHONE})
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE["width"]
    browser.picture(pictures / "phone.png")
    browser.click("clear")
    assert browser.data()["guess"] == "", browser.data()
    print(f"loaded in {float(start['loaded']) / 1000:.2f} s, {trained['steps']} steps of {float(trained['milliseconds']):.3f} ms")
    print(f"accuracy {float(trained['accuracy']):.4f}; PyTorch's network {float(loaded['accuracy']):.4f}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    site, pictures = Path(sys.argv[1]), Path(sys.argv[2])
    pictures.mkdir(parents=True, exist_ok=True)
    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": {**os.environ, "HOME": profile}}
        driver = subprocess.Popen(["chromedriver", f"--port={port}"], **quiet)
        browser = None
        try:
            browser = Browser(port, profile)
            test(browser, f"http://127.0.0.1:{server.server_port}/", pictures)
        finally:
            if browser:
                browser.call("DELETE", "")
            driver.terminate()
            driver.wait(timeout=30)
    print("passed")


if __name__ == "__main__":
    main()
