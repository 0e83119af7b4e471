import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { AGENT_LAUNCHER, run, tempFolder } from "@devplat/testkit";
import { Home } from "./agent-stand.ts";

const CONFIG = `store: {driver: embedded}
rules: [{name: a, key: k, target: {path: ~/disk/z1.yaml, format: yaml, template: "tok: {{ .v }}"}}]
`;

/** Runs with a small disk at ~/disk, which holds a file with a second name, and is filled up. */
const SCRIPT = `
set -e
mount -t tmpfs -o size=256k,mode=700 tmpfs "$HOME/disk"
cd "$HOME/disk"
{ echo "tok: old"; i=0; while [ $i -lt 200 ]; do echo "mine$i: kept"; i=$((i + 1)); done; } > z1.yaml
chmod 600 z1.yaml
ln z1.yaml z2.yaml
cp z1.yaml "$HOME/before"
dd if=/dev/zero of=fill bs=4k 2>/dev/null || true
"$0" sync && exit 9
cmp z1.yaml "$HOME/before" && cmp z2.yaml "$HOME/before" && echo "as it was"
rm fill
"$0" sync
head -c 10 z2.yaml; echo
grep -c kept z2.yaml
`;

it("a full disk leaves a hard-linked file unchanged, and the next sync writes it", async () => {
  const folder = await tempFolder("agent-full-disk");
  const place = new Home(folder.path);
  try {
    await mkdir(join(folder.path, "disk"));
    await place.configure(CONFIG);
    const value = await place.write("value", "S".repeat(100_000));
    await place.ok("secrets", "put", "k", `v=@${value}`);
    const args = ["--map-root-user", "--mount", "sh", "-c", SCRIPT, AGENT_LAUNCHER];
    const { code, stdout, stderr } = await run("unshare", args, { env: place.env });
    assert.equal(code, 0, stdout + stderr);
    assert.match(stderr, /the disk is full/);
    assert.match(stdout, /as it was\n[^]*1 changed[^]*tok: SSSSS\n200\n$/);
  } finally {
    await folder.remove();
  }
});

/** Runs with a state folder on a disk that is full before the first lock is made there. */
const STATE_SCRIPT = `
set -e
umask 022
mkdir -p "$HOME/.local/state/daemon"
mount -t tmpfs -o size=64k,mode=700 tmpfs "$HOME/.local/state/daemon"
cd "$HOME/.local/state/daemon"
dd if=/dev/zero of=fill bs=4k 2>/dev/null || true
"$0" sync && exit 9
stat -c %a lock.db
`;

it("a lock that is made on a full disk is readable by its user alone", async () => {
  const folder = await tempFolder("agent-full-state");
  const place = new Home(folder.path);
  try {
    await mkdir(join(folder.path, "disk"));
    await place.configure(CONFIG);
    const args = ["--map-root-user", "--mount", "sh", "-c", STATE_SCRIPT, AGENT_LAUNCHER];
    const { code, stdout, stderr } = await run("unshare", args, { env: place.env });
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /^600$/m, stderr);
  } finally {
    await folder.remove();
  }
});
