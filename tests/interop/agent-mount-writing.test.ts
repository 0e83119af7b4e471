import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import { until } from "@devplat/testkit";
import { mountStand, python, quick, type MountStand } from "./agent-mount-stand.ts";

const TIMEOUT_MS = 480_000;

describe("writing to the filesystem mount", { timeout: TIMEOUT_MS }, () => {
  let stand: MountStand;
  before(async () => {
    stand = await mountStand("agent-mount-writing", "read_write: true, layout: both, cache_ttl: 5m");
  });
  after(() => stand.remove());

  const stored = (path: string): Promise<unknown> => stand.stored(path);
  /** Runs a script of the shell in the folder `demo` of the mount. */
  const shell = async (script: string): Promise<string> => {
    const { stdout, stderr, code } = await quick("bash", "-c", `cd '${stand.at("demo")}' && ${script}`);
    return `${stdout}${stderr}${code === 0 ? "" : `exit ${code}`}`;
  };
  const reset = async (fields = '{"user": "ada", "password": "first"}'): Promise<void> => {
    await stand.store("demo/registry", fields);
    await until(
      async () =>
        JSON.stringify(JSON.parse(await shell("cat registry.json"))) === JSON.stringify(JSON.parse(fields)),
      () => "the mount does not show the secret",
    );
  };

  it("is writable only for the user", async () => {
    assert.equal(await shell("stat -c '%a %F' . registry.json"), "700 directory\n600 regular file\n");
    assert.match(await stand.place.ok("status"), /Access: +read-write/);
  });

  for (const [name, script, user] of [
    ["a redirection of the shell", `echo '{"user": "shell"}' > registry.json`, "shell"],
    ["printf into the file", `printf '{"user": "printf"}' > registry.json`, "printf"],
    ["jq into a file that is renamed", `jq '.user = "jq"' registry.json > tmp && mv tmp registry.json`, "jq"],
    ["sed -i", `sed -i 's/"user": .*/"user": "sed",/' registry.json`, "sed"],
    // An editor that writes in place refuses a file whose inode number is another one after the open.
    ["vim", `vim -u NONE -N -es -c '%s/ada/vim/' -c wq registry.json < /dev/null 2>&1`, "vim"],
    ["cp", `cp registry.json c.tmp && sed 's/ada/cp/' c.tmp | cp /dev/stdin registry.json; rm c.tmp`, "cp"],
  ] as const)
    it(`takes ${name} [agent 38.10]`, async () => {
      await reset();
      assert.equal(await shell(script), "");
      assert.equal(((await stored("demo/registry")) as { user: string }).user, user);
      assert.match(await shell("cat registry.json"), new RegExp(`"user": "${user}"`));
      assert.deepEqual((await readdir(stand.at("demo"))).toSorted(), ["registry.d", "registry.json"]);
    });

  it("takes writes of Python: fsync, mapped memory, pwrite, O_APPEND, O_EXCL [agent 38.10]", async () => {
    await reset();
    const seen = await python(
      `
import errno, json, mmap, os, sys
path = sys.argv[1]
with open(path, 'r+') as f:
    fields = json.load(f)
    fields['user'] = 'first'
    f.seek(0); f.truncate(); json.dump(fields, f); f.flush(); os.fsync(f.fileno())
    print(json.load(open(path))['user'], end=' ')
fd = os.open(path, os.O_RDWR)
shared = mmap.mmap(fd, os.fstat(fd).st_size)
at = shared.find(b'first')
shared[at:at + 5] = b'maped'
shared.close(); os.close(fd)
import time
time.sleep(0.3)
print(json.load(open(path))['user'], end=' ')
fd = os.open(path, os.O_RDWR)
os.pwrite(fd, b'pwrit', open(path).read().find('maped'))
os.close(fd)
print(json.load(open(path))['user'], end=' ')
fd = os.open(path, os.O_WRONLY | os.O_APPEND)
os.write(fd, b'\\n\\n'); os.close(fd)
print(json.load(open(path))['user'], end=' ')
try: os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
except OSError as error: print(errno.errorcode[error.errno])
`,
      stand.at("demo/registry.json"),
    );
    assert.equal(seen, "first maped pwrit pwrit EEXIST\n");
    assert.deepEqual(await stored("demo/registry"), { user: "pwrit", password: "first" });
  });

  it("refuses what is not one JSON object, and keeps the text [agent 38.11]", async () => {
    await reset();
    const errors = await python(
      `
import errno, os, sys
for text in [b'no json', b'[1]', b'{"a": 1', b'"a"', b'\\xff{}', b'{"a":1,"a":2}']:
    fd = os.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC)
    os.write(fd, text)
    try: os.fsync(fd)
    except OSError as error: print(errno.errorcode[error.errno], end=' ')
    try: os.close(fd)
    except OSError as error: print(errno.errorcode[error.errno], end=' ')
    print(open(os.path.dirname(sys.argv[1]) + '/.registry.json.rejected', 'rb').read() == text, end=' ')
`,
      stand.at("demo/registry.json"),
    );
    assert.equal(errors, "EINVAL EINVAL True ".repeat(6));
    assert.deepEqual(await stored("demo/registry"), { user: "ada", password: "first" });
    const status = await stand.place.ok("status");
    assert.match(status, /Not stored: demo\/\.registry\.json\.rejected \(it is not one JSON object\)/);
    assert.equal(
      await shell(`echo '{"user": "good"}' > registry.json; ls -A`),
      "registry.d\nregistry.json\n",
    );
    assert.doesNotMatch(await stand.place.ok("status"), /Not stored/);
  });

  it("keeps the stored version of a file that is only emptied [agent 38.11]", async () => {
    await reset();
    assert.equal(
      await shell("> registry.json; : > registry.json; truncate -s 0 registry.json; ls -A"),
      "registry.d\nregistry.json\n",
    );
    assert.deepEqual(await stored("demo/registry"), { user: "ada", password: "first" });
  });

  it("refuses to replace a version that nobody has seen, and keeps both [agent 38.12]", async () => {
    await reset();
    const script = `
import errno, os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC)
os.write(fd, b'{"user": "ours"}')
print('open', flush=True)
sys.stdin.readline()
try: os.close(fd)
except OSError as error: print(errno.errorcode[error.errno])
`;
    const { spawn } = await import("node:child_process");
    const writer = spawn("python3", ["-c", script, stand.at("demo/registry.json")], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const output = { text: "" };
    writer.stdout.on("data", (chunk: Buffer) => (output.text += chunk.toString()));
    await until(
      async () => output.text.includes("open"),
      () => output.text,
    );
    await stand.place.ok("secrets", "put", "demo/registry", "user=theirs");
    writer.stdin.end("\n");
    await until(
      async () => output.text === "open\nESTALE\n",
      () => output.text,
    );
    assert.deepEqual(await stored("demo/registry"), { user: "theirs", password: "first" });
    assert.equal(await readFile(stand.at("demo/.registry.json.conflict"), "utf8"), '{"user": "ours"}');
    assert.match(
      await stand.place.ok("status"),
      /conflict \(the secret was changed in the store after it was opened\)/,
    );
    await shell("rm .registry.json.conflict");
  });

  it("makes a secret of a new file after a time, or at fsync [agent 38.13]", async () => {
    assert.equal(
      await shell(
        `echo '{"n": 1}' > slow.json; echo '{"n": 2}' > moved.json; mv moved.json other.json; touch empty.json`,
      ),
      "",
    );
    assert.match(await stand.place.ok("status"), /Not stored: demo\/empty\.json \(it is empty\)/);
    await python(
      `
import os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
os.write(fd, b'{"n": 3}')
os.fsync(fd)
`,
      stand.at("demo/synced.json"),
    );
    assert.deepEqual(await stored("demo/synced"), { n: 3 });
    await until(
      async () => (await stored("demo/other")) !== undefined,
      () => "the new file is not stored",
    );
    assert.deepEqual([await stored("demo/slow"), await stored("demo/other")], [{ n: 1 }, { n: 2 }]);
    assert.equal(
      await shell("rm slow.json other.json synced.json empty.json; ls -A"),
      "registry.d\nregistry.json\n",
    );
  });

  it("writes, adds and removes fields, and never the last one [agent 38.14]", async () => {
    await reset('{"user": "ada", "port": 5432}');
    assert.equal(
      await shell("printf eve > registry.d/user; echo 5433 > registry.d/port; sed -i s/v/d/ registry.d/user"),
      "",
    );
    assert.deepEqual(await stored("demo/registry"), { user: "ede", port: 5433 });
    assert.equal(
      await shell(
        "printf more > registry.d/extra; sync registry.d/extra; rm registry.d/port; mv registry.d/user registry.d/name",
      ),
      "",
    );
    assert.deepEqual(await stored("demo/registry"), { name: "ede", extra: "more" });
    assert.match(await shell("rm registry.d/name && rm registry.d/extra"), /Operation not permitted/);
    assert.deepEqual(await stored("demo/registry"), { extra: "more" });
  });

  it("refuses a rename onto a secret that has changed since it was read [agent 38.15]", async () => {
    await reset();
    await shell("cat registry.json");
    await stand.place.ok("secrets", "put", "demo/registry", "user=theirs");
    assert.match(
      await shell(
        `stat registry.json > /dev/null; echo '{"user": "ours"}' > x.tmp; mv -f x.tmp registry.json`,
      ),
      /Stale file handle\nexit 1$/,
    );
    assert.deepEqual(await stored("demo/registry"), { user: "theirs", password: "first" });
    assert.equal(await shell("cat .registry.json.conflict"), '{"user": "ours"}\n');
    assert.equal(
      await shell("mv -f x.tmp registry.json; rm -f .registry.json.conflict; ls -A"),
      "registry.d\nregistry.json\n",
    );
    assert.deepEqual(await stored("demo/registry"), { user: "ours" });
  });

  it("renames, backs up and removes secrets [agent 38.15]", async () => {
    await reset();
    assert.equal(await shell("mv registry.json other.json; ls -A"), "other.d\nother.json\n");
    assert.deepEqual(await stored("demo/other"), { user: "ada", password: "first" });
    assert.equal(
      await shell("mv other.json other.json~; ls -A; cmp other.json~ <(echo no) >/dev/null"),
      "other.d\nother.json~\nexit 1",
    );
    assert.deepEqual(await stored("demo/other"), { user: "ada", password: "first" });
    assert.equal(
      await shell(`echo '{"user": "new"}' > other.json; rm other.json~; mv other.json registry.json; ls -A`),
      "registry.d\nregistry.json\n",
    );
    assert.deepEqual(await stored("demo/registry"), { user: "new" });
    assert.equal(await shell("rm registry.json; ls -A"), "");
    assert.equal(await stored("demo/registry"), undefined);
    await stand.store("demo/registry", '{"user": "ada"}');
  });

  it("renames directories with all that is in them [agent 38.15]", async () => {
    assert.equal(
      await shell(
        `mkdir -p a/b && echo '{"x": 1}' > a/b/c.json && sync a/b/c.json && echo '{"x": 2}' > a/d.json && cat a/b/c.json > /dev/null`,
      ),
      "",
    );
    assert.equal(await shell("mv a z && ls z z/b && cat z/b/c.d/x"), "z:\nb\nd.json\n\nz/b:\nc.d\nc.json\n1");
    assert.deepEqual(await stored("demo/z/b/c"), { x: 1 });
    assert.equal(await stored("demo/a/b/c"), undefined);
    assert.equal(
      await shell("mv z/b z/e && cat z/e/c.json && rm z/e/c.json z/d.json && rm -r z && ls a"),
      "{\n  \"x\": 1\n}\nls: cannot access 'a': No such file or directory\nexit 2",
    );
    assert.equal(await stored("demo/z/d"), undefined);
  });

  it("has directories in memory until something in them is stored", async () => {
    assert.equal(
      await shell("mkdir -p a/b && rmdir a"),
      "rmdir: failed to remove 'a': Directory not empty\nexit 1",
    );
    assert.equal(
      await shell(`echo '{"x": 1}' > a/b/c.json && sync a/b/c.json && ls a a/b`),
      "a:\nb\n\na/b:\nc.d\nc.json\n",
    );
    assert.deepEqual(await stored("demo/a/b/c"), { x: 1 });
    assert.equal(await shell("rm a/b/c.json && ls a && rm -r a && ls"), "b\nregistry.d\nregistry.json\n");
  });

  it("has no links, devices and owners, and ignores modes", async () => {
    await reset();
    for (const command of ["ln -s a b", "ln registry.json hard", "mknod n p", "chown 12345 registry.json"])
      assert.match(await shell(command), /Operation not permitted/);
    assert.equal(
      await shell("chmod 777 registry.json && touch registry.json && stat -c %a registry.json"),
      "600\n",
    );
  });

  it("limits documents to 1 MiB, and memory to 8 MiB", async () => {
    assert.match(await shell("head -c 1048577 /dev/zero > big.json"), /File too large/);
    assert.match(await shell("head -c 9000000 /dev/zero > big"), /No space left/);
    assert.equal(
      await shell("rm big big.json; head -c 8000000 /dev/zero > big; rm big; ls -A"),
      "registry.d\nregistry.json\n",
    );
  });
});
