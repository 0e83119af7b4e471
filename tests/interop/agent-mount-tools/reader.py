"""Holds a file open. For each line of input, prints its content by read, pread and mmap, and that of the path, as JSON."""

import json
import mmap
import os
import sys

path = sys.argv[1]
fd = os.open(path, os.O_RDONLY)
shared = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
private = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
for _ in sys.stdin:
    size = os.fstat(fd).st_size
    os.lseek(fd, 0, os.SEEK_SET)
    held = [os.read(fd, size + 1), os.pread(fd, size + 1, 0), shared[:], private[:]]
    with open(path, "rb") as again:
        now = [again.read(), mmap.mmap(again.fileno(), 0, access=mmap.ACCESS_READ)[:]]
    texts = {"held": held, "now": now}
    print(json.dumps({key: [each.decode() for each in texts[key]] for key in texts}), flush=True)
