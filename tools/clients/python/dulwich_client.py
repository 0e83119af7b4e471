"""The dulwich client of the interop tests: clone | shallow | fetch, then URL and FOLDER.

Takes credentials from CLIENT_USER and CLIENT_PASSWORD.
"""

import io
import os
import sys

from dulwich import porcelain

verb, url, folder = sys.argv[1:]
options = {}
if "CLIENT_USER" in os.environ:
    options = {"username": os.environ["CLIENT_USER"], "password": os.environ["CLIENT_PASSWORD"]}

if verb == "clone":
    porcelain.clone(url, folder, checkout=False, errstream=io.BytesIO(), **options)
elif verb == "shallow":
    porcelain.clone(url, folder, checkout=False, errstream=io.BytesIO(), depth=1, **options)
elif verb == "fetch":
    porcelain.fetch(folder, "origin", quiet=True, **options)
else:
    sys.exit(f"unknown verb {verb}")
