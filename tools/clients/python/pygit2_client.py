"""The libgit2 client of the interop tests, by pygit2: clone | shallow | fetch, then URL and FOLDER.

Takes credentials from CLIENT_USER and CLIENT_PASSWORD.
"""

import os
import sys

import pygit2

ALL = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"]

verb, url, folder = sys.argv[1:]
callbacks = None
if "CLIENT_USER" in os.environ:
    account = pygit2.UserPass(os.environ["CLIENT_USER"], os.environ["CLIENT_PASSWORD"])
    callbacks = pygit2.RemoteCallbacks(credentials=account)

if verb == "clone":
    pygit2.clone_repository(url, folder, callbacks=callbacks)
elif verb == "shallow":
    pygit2.clone_repository(url, folder, callbacks=callbacks, depth=1)
elif verb == "fetch":
    pygit2.Repository(folder).remotes["origin"].fetch(ALL, callbacks=callbacks)
else:
    sys.exit(f"unknown verb {verb}")
