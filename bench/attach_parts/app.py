"""What gunicorn serves: a little at /, and text that is compressed for each request elsewhere."""

import gzip
import os
import pathlib

TEXT = pathlib.Path(os.environ["BENCH_TEXT"]).read_bytes() if "BENCH_TEXT" in os.environ else b"text" * 10_000


def app(environ, start):
    body = b"answered" if environ["PATH_INFO"] == "/" else gzip.compress(TEXT, 6)
    start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
