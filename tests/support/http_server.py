#!/usr/bin/python3
"""A web server of the worst kind, for tests of downloads.

    http_server.py FOLDER LOG

Serves files of FOLDER on a free port of 127.0.0.1, which it prints. The first part of a path says
how: /ok/NAME whole, ranges too; /plain/NAME ignores ranges; /norange/NAME answers 416 to them;
/short/NAME breaks off in the middle; /stall/NAME sends half and then nothing; /wrong/NAME other
bytes of the same length; /page/NAME a page of HTML; /large/NAME bytes without end;
/redirect/NAME leads to /ok/NAME over http; /loop/NAME to itself; anything else is 404. Each request
is a line of LOG: path and range.
"""
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER, LOG = Path(sys.argv[1]), Path(sys.argv[2])
WAYS = {"ok", "plain", "norange", "short", "stall", "wrong", "page", "large", "redirect", "loop"}


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def head(self, status, length=None, **headers):
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def whole(self, body):
        self.head(200, len(body))
        self.wfile.write(body)

    def ok(self, body):
        wanted = self.headers.get("Range")
        if wanted is None:
            self.whole(body)
            return
        first = int(wanted.removeprefix("bytes=").rstrip("-"))
        part = body[first:]
        self.head(206, len(part), Content_Range=f"bytes {first}-{len(body) - 1}/{len(body)}")
        self.wfile.write(part)

    def plain(self, body):
        self.whole(body)

    def norange(self, body):
        if self.headers.get("Range"):
            self.head(416, 0)
        else:
            self.whole(body)

    def short(self, body):
        self.head(200, len(body))
        self.wfile.write(body[:len(body) // 2])

    def stall(self, body):
        self.short(body)
        self.wfile.flush()
        time.sleep(60)

    def wrong(self, body):
        self.whole(bytes(255 - b for b in body))

    def page(self, _):
        self.whole(b"<html>Please log in</html>")

    def large(self, body):
        self.head(200)
        for _ in range(1000):
            self.wfile.write(body)

    def redirect(self, _):
        port = self.server.server_address[1]
        name = self.path.rsplit("/", 1)[1]
        self.head(302, 0, Location=f"http://127.0.0.1:{port}/ok/{name}")

    def loop(self, _):
        self.head(302, 0, Location=self.path)

    def do_GET(self):
        with LOG.open("a", encoding="utf-8") as log:
            log.write(f"{self.path} {self.headers.get('Range', '')}\n")
        way, _, name = self.path.lstrip("/").partition("/")
        file = FOLDER / name
        if way not in WAYS or "/" in name or not file.is_file():
            self.head(404, 0)
            return
        try:
            getattr(self, way)(file.read_bytes())
        except (BrokenPipeError, ConnectionResetError):
            pass


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


main()
