import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startVault, until } from "@devplat/testkit";
import { python } from "./agent-mount-stand.ts";
import { KillableStand } from "./agent-mount/killable-stand.ts";
import { VaultStand } from "./agent-mount/vault-stand.ts";

const TIMEOUT_MS = 300_000;

/** Prints the names of a folder as JSON, and the result of a look-up of each. */
const NAMES = `
import json, os, sys
names = sorted(os.listdir(sys.argv[1]))
for name in names: os.path.lexists(os.path.join(sys.argv[1], name))
print(json.dumps(names))
`;

/** Tries to get the descriptors and the memory of a process. Prints the error of each way. */
const STEAL = `
import ctypes, errno, os, sys
pid = int(sys.argv[1])
def error(work):
    try:
        work()
        return "done"
    except OSError as fault:
        return errno.errorcode[fault.errno]
def descriptor():
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd_getfd = 438
    if libc.syscall(pidfd_getfd, os.pidfd_open(pid), 3, 0) < 0: raise OSError(ctypes.get_errno(), "")
print(error(lambda: os.listdir(f"/proc/{pid}/fd")), error(lambda: open(f"/proc/{pid}/fd/3")),
      error(lambda: open(f"/proc/{pid}/mem", "rb")), error(descriptor))
`;

describe("a hostile store", { timeout: TIMEOUT_MS }, () => {
  it("puts no name on the mount that leads elsewhere, and hides none of the others", async (context) => {
    const vault = await startVault();
    context.after(() => vault.stop());
    await vault.request("PUT", "sys/policies/acl/reader", {
      policy: 'path "kv/*" { capabilities = ["read", "list"] }',
    });
    const stand = await VaultStand.start(vault, "eve", ["reader"], {
      fuse: "cache_ttl: 1m, layout: both",
      more: "api: { enabled: true }\n",
    });
    context.after(() => stand.stop());
    for (const name of ["demo/registry", "evil/ok"]) await stand.put(name, { user: "ada" });
    await stand.untilError("", "demo/registry.json");
    const good = ["ok", "caf\u00e9", "cafe\u0301", "n".repeat(250), "a b", "sub/"];
    const bad = ["..", ".", "", "../", "./", "/", "../../etc/passwd", "a/b", "nul\0", "m".repeat(251)];
    const body = JSON.stringify({
      request_id: "1",
      lease_id: "",
      data: { keys: [...good, ...bad, "line\nbreak"] },
    });
    stand.proxy.fault = { status: 200, body, path: /\/metadata\/users\/eve\/evil/ };
    const names = JSON.parse(await python(NAMES, stand.at("evil"))) as string[];
    // A file name may have a line break. Names with a slash or NUL, too long ones and `..` have no entry.
    const files = [...good.slice(0, -1), "line\nbreak", "..", ".", ""];
    const expected = files.flatMap((name) => [`${name}.json`, `${name}.d`]);
    const long = `${"m".repeat(251)}.d`;
    assert.deepEqual(new Set(names), new Set([...expected, long, "sub"]));
    for (const name of ["...json", "..json", ".json", "line\nbreak.json"])
      assert.match((await stand.try("evil", name)).error, /^E(?:INVAL|NOENT)$/, JSON.stringify(name));
    await stand.untilError("", "demo/registry.json");
    assert.match(await stand.place.ok("status"), /Left out: +10 names/);
  });
});

describe("the mount server", { timeout: TIMEOUT_MS }, () => {
  it("gives its channel and its memory to no other process of the user", async (context) => {
    const stand = await KillableStand.create("agent-mount-hostile");
    context.after(() => stand.remove());
    stand.start();
    await stand.untilReadable();
    const [server = 0] = await until(async () => {
      const servers = await stand.servers();
      return servers.length === 1 && servers;
    });
    for (const pid of [server, stand.pid]) {
      const { stdout, stderr } = await stand.run("/usr/bin/python3", "-c", STEAL, String(pid));
      assert.equal(stdout, "EACCES EACCES EACCES EPERM\n", stderr);
    }
  });
});
