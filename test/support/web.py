"""An HTTP server for tests of what is fetched: ranges, tags, links that are cut; it tells what it was asked for.

    with Web({"/a.zip": b"…"}) as web:
        web.cut("/a.zip", 1000)         # the next answer ends after 1,000 bytes, without a word
        fetch(web.url("/a.zip"), …)
        assert web.asked == [("/a.zip", None), ("/a.zip", "bytes=1000-")]
"""

from __future__ import annotations

import hashlib
import http.server
import re
import threading


class _Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        web = self.server.web
        asked = self.headers.get("Range")
        web.asked.append((self.path, asked))
        plan = web.plans[self.path].pop(0) if web.plans.get(self.path) else {}
        if "status" in plan:
            self.send_error(plan["status"])
            return
        if self.path not in web.files:
            self.send_error(404)
            return
        self.answer(web.files[self.path], asked, plan)

    def answer(self, body, asked, plan):
        tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        begin = 0
        same = self.headers.get("If-Range") in (None, tag)
        found = re.fullmatch(r"bytes=(\d+)-", asked or "") if self.server.web.ranges else None
        if found and same:
            begin = int(found.group(1))
            if begin >= len(body):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(body)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", plan.get("range") or f"bytes {begin}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(plan.get("length", len(body) - begin)))
        if self.server.web.tags:
            self.send_header("ETag", tag)
        self.end_headers()
        self.wfile.write(body[begin:plan.get("cut", len(body))])
        self.close_connection = True


class Web:
    """files: {path: bytes}, which may change meanwhile. asked: (path, Range) of each request."""

    def __init__(self, files, ranges=True, tags=True):
        self.files, self.ranges, self.tags = dict(files), ranges, tags
        self.asked, self.plans = [], {}
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.web = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def url(self, path=""):
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def plan(self, path, **what):
        """How one more answer for the path will be: status=, cut= (where its bytes end), length=, range=."""
        self.plans.setdefault(path, []).append(what)

    def cut(self, path, after):
        self.plan(path, cut=after)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
