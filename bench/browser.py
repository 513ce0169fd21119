"""Chromium under chromedriver, by the protocol of WebDriver: what the scripts that make pictures share."""

import base64
import json
import subprocess
import sys
import time
import urllib.request

import lib

# The longest that anything may take.
PATIENCE = 60


def ask(url, body=None, method=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"},
                                     method=method or ("POST" if data else "GET"))
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["value"]


class Browser:
    """Chromium under chromedriver, by the protocol of WebDriver."""

    def __init__(self, width, height):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        port = next(line.rsplit("port ", 1)[1].strip(" .\n") for line in self.driver.stdout
                    if "successfully on port" in line)
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                     "--force-color-profile=srgb"]
        wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": {"args": arguments}}}}
        base = f"http://127.0.0.1:{port}/session"
        self.session = f"{base}/{ask(base, wanted)['sessionId']}"
        self.size(width, height)

    def size(self, width, height):
        """A screen of so many of the style sheet's pixels."""
        self.devtools("Emulation.setDeviceMetricsOverride",
                      {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def colours(self, scheme, medium="screen"):
        """Light or dark, on a screen or in print."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", {"media": medium, "features": features})

    def open(self, address):
        ask(f"{self.session}/url", {"url": address})

    def devtools(self, command, parameters):
        return ask(f"{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def run(self, script):
        return ask(f"{self.session}/execute/sync", {"script": script, "args": []})

    def until(self, script):
        end = time.monotonic() + PATIENCE
        while not self.run(f"return {script}"):
            if time.monotonic() > end:
                sys.exit(f"{lib.script()}: not within {PATIENCE} s: {script}")
            time.sleep(0.1)

    def picture(self, whole=False, form="png", **more):
        """The screen, or the whole page, as bytes."""
        shot = self.devtools("Page.captureScreenshot", {"format": form, "captureBeyondViewport": whole, **more})
        return base64.b64decode(shot["data"])

    def end(self):
        ask(self.session, method="DELETE")
        self.driver.terminate()
        self.driver.wait(30)
