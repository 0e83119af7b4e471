import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { loopSeconds } from "@devplat/testkit";
import { mountStand, python, type MountStand } from "./agent-mount-stand.ts";

const TIMEOUT_MS = 1_800_000;
const SHARE = 0.02;
const PROCESSES = 4;

/** Eight threads that open, read, map and close a file again and again. It prints the number of reads and of different versions. */
const READER = `
import json, mmap, os, sys, threading, time
path, seconds = sys.argv[1], float(sys.argv[2])
end = time.monotonic() + seconds
reads, seen, wrong = [0], set(), []
def check(data):
    fields = json.loads(data)
    assert len(fields['pad']) == fields['n'] * 37 % 9000, fields['n']
    seen.add(fields['n'])
def read(kind):
    while time.monotonic() < end and not wrong:
        try:
            fd = os.open(path, os.O_RDONLY)
            try:
                first = os.read(fd, 20000)
                if kind == 0: assert os.pread(fd, 20000, 0) == first
                if kind == 1:
                    with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as shared: assert shared[:] == first
                check(first)
            finally: os.close(fd)
            reads[0] += 1
        except Exception as error: wrong.append(repr(error))
threads = [threading.Thread(target=read, args=(kind % 3,)) for kind in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps([reads[0], sorted(seen), wrong[:3]]))
`;

/** Writes versions in all ways. It prints how many, and errors. */
const WRITER = `
import json, os, sys, time
path, seconds = sys.argv[1], float(sys.argv[2])
end = time.monotonic() + seconds
n, wrong = 0, []
while time.monotonic() < end:
    n += 1
    text = json.dumps({'n': n, 'pad': 'x' * (n * 37 % 9000)}).encode()
    try:
        if n % 3 == 0:
            with open(path + '.tmp', 'wb') as f: f.write(text)
            os.rename(path + '.tmp', path)
        else:
            fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
            for at in range(0, len(text), 1000): os.write(fd, text[at:at + 1000])
            if n % 3 == 1: os.fsync(fd)
            os.close(fd)
    except OSError as error: wrong.append(repr(error))
    time.sleep(0.002)
print(json.dumps([n, wrong[:3]]))
`;

describe("32 readers of a secret that is written on the mount", { timeout: TIMEOUT_MS }, () => {
  let stand: MountStand;
  before(async () => {
    stand = await mountStand("agent-mount-readers", "read_write: true, cache_ttl: 5m");
    await stand.store("demo/registry", '{"n": 0, "pad": ""}');
    await python(
      "import sys, time; time.sleep(0.5); open(sys.argv[1]).read()",
      stand.at("demo/registry.json"),
    );
  });
  after(() => stand.remove());

  it("see whole versions only, and never an error [agent 38.20]", async () => {
    const path = stand.at("demo/registry.json");
    const seconds = String(loopSeconds(SHARE));
    const [written, ...read] = await Promise.all([
      python(WRITER, path, seconds),
      ...Array.from({ length: PROCESSES }, () => python(READER, path, seconds)),
    ]);
    const [count, refused] = JSON.parse(written) as [number, string[]];
    assert.deepEqual(refused, []);
    assert.ok(count > 20, `${count} versions`);
    for (const text of read) {
      const [reads, seen, wrong] = JSON.parse(text) as [number, number[], string[]];
      assert.deepEqual(wrong, []);
      assert.ok(reads > count && seen.length > 5, `${reads} reads of ${seen.length} versions`);
    }
    assert.equal(((await stand.stored("demo/registry")) as { n: number }).n, count);
  });
});
