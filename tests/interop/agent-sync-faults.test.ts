import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, describe, it } from "node:test";
import {
  AGENT_LAUNCHER,
  makeCertificate,
  run,
  startVault,
  startVaultProxy,
  type TempFolder,
  tempFolder,
  until,
  type Vault,
  type VaultFault,
} from "@devplat/testkit";
import { RETRY_NONE } from "../../apps/agent/src/sync/retry-scope.ts";
import { Home, daemon, webUrl } from "./agent-stand.ts";

const folders: TempFolder[] = [];
let vault: Vault;
before(async () => {
  vault = await startVault();
  await vault.request("PUT", "sys/policies/acl/reader", {
    policy: 'path "kv/*" { capabilities = ["read", "list"] }',
  });
});
after(async () => {
  await vault.stop();
  for (const folder of folders) await folder.remove();
});

const RULES = `rules:
  - {name: app, key: app, target: {path: ~/app.yaml, format: yaml, on_missing: remove}}
`;

async function home(address: string, more = ""): Promise<Home> {
  const folder = await tempFolder("agent-home");
  folders.push(folder);
  const place = new Home(folder.path);
  await place.configure(`store: {address: "${address}", username: ada}\n${more}${RULES}`);
  return place;
}

interface Status {
  readonly authenticated: boolean;
  readonly sync: { readonly state: string };
  readonly store: { readonly last_error: string | null };
  readonly rules: Record<string, { readonly state: string; readonly error: string | null }>;
}

/** Asks the daemon for a cycle that begins after now, and then for its status. */
async function syncAndStatus(url: string): Promise<Status> {
  // The first may wait for one that is under way: a try after an outage comes when it likes.
  for (let times = 0; times < 2; times++) {
    const { token } = (await (await fetch(`${url}/api/v1/csrf`)).json()) as { token: string };
    const headers = { "X-CSRF-Token": token };
    const asked = await fetch(`${url}/api/v1/sync?wait=true`, { method: "POST", headers });
    assert.notEqual(asked.status, 403, await asked.text());
  }
  return (await (await fetch(`${url}/api/v1/status`)).json()) as Status;
}

describe("a store that fails under a running daemon", () => {
  it("files stay, the status says what, and it recovers without a restart [agent 11.3 16.5]", async () => {
    const proxy = await startVaultProxy(vault.address);
    const place = await home(proxy.url, 'web: {enabled: true, listen: "127.0.0.1:0"}\n');
    await place.write(".daemon-token", await vault.createUserToken("ada", ["reader"]));
    let value = 0;
    const put = (): Promise<number> => vault.put("users/ada/app", { token: `value-${++value}` });
    const current = async (): Promise<boolean> =>
      (await place.read("app.yaml")) === `token: value-${value}\n`;
    await put();
    const running = await daemon(place, current);
    const url = await webUrl(running);
    try {
      const faults: [string, VaultFault, RegExp, "stale" | "idle"][] = [
        ["429", { status: 429 }, /429|too many/i, "stale"],
        ["500", { status: 500 }, /500/, "stale"],
        ["a gateway's page", { status: 502, body: "<html>planted-page</html>" }, /502/, "stale"],
        ["a proxy's 404", { status: 404, body: "<html>planted-page</html>" }, /not from a Vault/, "stale"],
        ["an empty 404", { status: 404, body: "" }, /not from a Vault/, "stale"],
        ["another API's 404", { status: 404, body: '{"errors":[{}]}' }, /not from a Vault/, "stale"],
        ["a proxy's 403", { status: 403, body: "<html>planted-page</html>" }, /not from a Vault/, "stale"],
        ["a sign-in page", { status: 200, body: "<html>planted-page</html>" }, /not from a Vault/, "stale"],
        ["a cut connection", { cut: true }, /cannot reach/, "stale"],
        ["403 for one secret", { status: 403, path: /^\/v1\/kv\// }, /denies it/, "idle"],
      ];
      for (const [name, fault, expected, state] of faults) {
        const synced = await place.read("app.yaml");
        await put();
        proxy.fault = fault;
        const failed = await syncAndStatus(url);
        assert.equal(await place.read("app.yaml"), synced, name);
        assert.equal(failed.sync.state, state, name);
        const said = state === "stale" ? failed.store.last_error : failed.rules["app"]?.error;
        assert.match(said ?? "", expected, name);
        assert.doesNotMatch(JSON.stringify(failed), /planted-page/);
        const shown = (await place.agent(["status"])).stdout;
        if (state === "stale")
          assert.match(shown, /^Last sync: .*, stale since \d{4}-\d\d-\d\dT\S+Z$/m, name);
        proxy.fault = undefined;
        const recovered = await syncAndStatus(url);
        assert.equal(recovered.sync.state, "idle", name);
        assert.equal(recovered.store.last_error, null, name);
        assert.ok(await current(), name);
      }

      await put();
      proxy.fault = { delayMs: 300 };
      assert.equal((await syncAndStatus(url)).sync.state, "idle", "slow is no fault");
      assert.ok(await current());
      proxy.fault = undefined;

      await put();
      await vault.seal();
      const sealed = await syncAndStatus(url);
      assert.equal(sealed.sync.state, "stale");
      assert.match(sealed.store.last_error ?? "", /sealed/);
      await vault.unseal();
      await until(current, () => running.log());

      const revoked = (await place.read(".daemon-token")).trim();
      await vault.request("POST", "auth/token/revoke", { token: revoked });
      await put();
      const signedOut = async (): Promise<boolean> => !(await syncAndStatus(url)).authenticated;
      await until(signedOut, () => running.log());
      await writeFile(join(place.path, ".daemon-token"), await vault.createUserToken("ada", ["reader"]));
      await until(current, () => running.log());
      assert.doesNotMatch(running.log(), /value-\d/);
    } finally {
      await running.stop();
      proxy.stop();
    }
  });
});

describe("a server certificate that is wrong", () => {
  it("files stay, status names the fault, and sync recovers without a restart", async () => {
    const place = await home("https://unused.example");
    const made = await Promise.all(
      ["right", "wrong"].map((file) =>
        makeCertificate(place.path, ["IP:127.0.0.1"], { file, subject: file }),
      ),
    );
    const [right = { key: "", cert: "" }, wrong = right] = made;
    const server = createServer(right, (incoming, outgoing) => {
      const { method, headers, url = "" } = incoming;
      const onward = request(vault.address + url, { method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      incoming.pipe(onward);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await place.configure(`store: {address: "https://127.0.0.1:${port}", ca_cert: ~/right.crt, username: ada}
web: {enabled: true, listen: "127.0.0.1:0"}
${RULES}`);
    await place.write(".daemon-token", await vault.createUserToken("ada", ["reader"]));
    await vault.put("users/ada/app", { token: "before" });
    const holds = (value: string) => async (): Promise<boolean> =>
      (await place.read("app.yaml")) === `token: ${value}\n`;
    const running = await daemon(place, holds("before"));
    try {
      const url = await webUrl(running);
      server.setSecureContext(wrong);
      // A connection whose handshake is under way is not among those that are closed.
      await until(async () => {
        server.closeAllConnections();
        return (await syncAndStatus(url)).sync.state === "stale";
      });
      await vault.put("users/ada/app", { token: "after" });
      const failed = await syncAndStatus(url);
      assert.equal(failed.sync.state, "stale");
      assert.match(failed.store.last_error ?? "", /SELF_SIGNED|UNABLE_TO_VERIFY|DEPTH_ZERO.*store\.ca_cert/);
      assert.ok(await holds("before")());
      server.setSecureContext(right);
      await until(async () => (await syncAndStatus(url)).sync.state === "idle");
      assert.ok(await holds("after")());
    } finally {
      await running.stop();
      server.closeAllConnections();
      server.close();
    }
  });
});

describe("a clock that is wrong", () => {
  for (const [name, days] of [
    ["a day ahead", 1],
    ["a day behind", -1],
  ] as const) {
    it(`${name}: a token's lifetime counts, not the clocks of two hosts`, async () => {
      const place = await home(vault.address);
      await place.write(".daemon-token", await vault.createUserToken("ada", ["reader"]));
      await vault.put("users/ada/app", { token: name });
      const shift = await place.write(
        "shift.cjs",
        `const now = Date.now; Date.now = () => now() + ${days * 86_400_000};\n`,
      );
      const env = { NODE_OPTIONS: `--require ${shift}` };
      const synced = await place.agent(["sync"], env);
      assert.equal(synced.code, 0, synced.stderr);
      assert.equal(await place.read("app.yaml"), `token: ${name}\n`);
      const { stdout } = await place.agent(["status", "--json"], env);
      const { auth, time } = JSON.parse(stdout) as { auth: { token_ttl_seconds: number }; time: string };
      assert.ok(
        Math.abs(Date.parse(time) - Date.now() - days * 86_400_000) < 60_000,
        "the clock is wrong indeed",
      );
      assert.ok(auth.token_ttl_seconds > 2_000_000, "as the store says");
      // The same files under the right time: nothing to do.
      assert.match(await place.ok("sync"), /0 changed, 1 unchanged, 0 failed/);
    });
  }
});

describe("a store that does not answer", () => {
  it("a cycle ends after its time-out, the files stay, and the next one works [agent 16.5]", async () => {
    const { Secret, systemClock } = await import("@devplat/base");
    const { openVaultStore, userRoot } = await import("@devplat/secret-store");
    const { workspace } = await import("../../apps/agent/src/sync/workspace.test-kit.ts");
    const proxy = await startVaultProxy(vault.address);
    const w = await workspace();
    const timing = { tryMs: 10_000, callMs: 30_000, firstMs: 10, maxMs: 20 };
    const store = openVaultStore({
      address: proxy.url,
      root: userRoot({ mount: "kv", prefix: "users/", username: "ada" }),
      token: () => new Secret(vault.rootToken),
      timing,
    });
    try {
      await vault.put("users/ada/slow", { token: "one" });
      const rule = { name: "slow", key: "slow", target: { path: "~/slow.yaml", format: "yaml" } };
      const { engine, state } = await w.engine([rule], { store });
      const signal = new AbortController().signal;
      await engine.cycle(signal, { retry: RETRY_NONE });
      await vault.put("users/ada/slow", { token: "two" });
      proxy.fault = { hang: true };
      // While nothing answers, the daemon's waits would be this test's.
      Object.assign(timing, { tryMs: 100, callMs: 300 });
      const begun = systemClock.now();
      await assert.rejects(engine.cycle(signal, { retry: RETRY_NONE }), { code: "unavailable" });
      assert.equal(await w.read("slow.yaml"), "token: one\n");
      assert.ok(Date.parse(state.document.stale_since ?? "") >= begun - 1);
      assert.match(state.document.last_error ?? "", /no answer in time/);
      proxy.fault = undefined;
      Object.assign(timing, { tryMs: 10_000, callMs: 30_000 });
      await engine.cycle(signal, { retry: RETRY_NONE });
      assert.equal(await w.read("slow.yaml"), "token: two\n");
      assert.equal(state.document.stale_since, null);
    } finally {
      await store.close();
      await w.remove();
      proxy.stop();
    }
  });
});

describe("a disk that is full", () => {
  it("leaves the file as it was, names the reason, and the next sync works [agent 13.8]", async () => {
    const place = await home(vault.address);
    await place.write(".daemon-token", await vault.createUserToken("ada", ["reader"]));
    const lines = Array.from({ length: 20_000 }, (_, i) => `key${i}: value ${i}\n`).join("");
    await place.write("app.yaml", `${lines}token: old\n`);
    await vault.put("users/ada/app", { token: "new" });
    // In blocks of 512 bytes: enough for our own files, too little for the target.
    const limited = await run("/bin/sh", ["-c", 'ulimit -f 200; exec "$0" sync', AGENT_LAUNCHER], {
      env: place.env,
    });
    assert.equal(limited.code, 1);
    assert.match(limited.stderr, /cannot write ~\/app\.yaml: the (disk is full|operating system says EFBIG)/);
    assert.equal(await place.read("app.yaml"), `${lines}token: old\n`);
    assert.deepEqual(
      (await readdir(place.path)).filter((name) => name.endsWith("~")),
      [],
    );
    await place.ok("sync");
    assert.equal(await place.read("app.yaml"), `${lines}token: new\n`);
  });
});

/** Reads the file, adds its next line, and saves: in place or through a rename. */
const EDITOR = `
import { readFileSync, renameSync, writeFileSync, openSync, writeSync, closeSync } from "node:fs";
const [file, how, count] = process.argv.slice(1);
const wait = new Int32Array(new SharedArrayBuffer(4));
for (let i = 0; i < Number(count); i++) {
  const next = readFileSync(file, "utf8") + "edit" + i + ": saved\\n";
  if (how === "rename") { writeFileSync(file + ".swp", next, { mode: 0o600 }); renameSync(file + ".swp", file); }
  else { const fd = openSync(file, "r+"); writeSync(fd, next, 0); closeSync(fd); }
  Atomics.wait(wait, 0, 0, 15);
}
`;

describe("an editor that saves the same file at the same time", () => {
  for (const how of ["rename", "in place"]) {
    it(`by ${how}: its edits are kept, and the file is never torn [agent 13.6]`, async (t) => {
      const { InPlaceJournal } = await import("../../apps/agent/src/sync/target/in-place.ts");
      const { TargetPolicy } = await import("../../apps/agent/src/sync/target/target-policy.ts");
      const { writeTarget } = await import("../../apps/agent/src/sync/target/write-target.ts");
      const { AgentError } = await import("../../apps/agent/src/errors.ts");
      const { findPlaces } = await import("../../apps/agent/src/agent-files/places.ts");
      const place = await home(vault.address);
      const file = await place.write("app.yaml", "token: value-0\n");
      const places = findPlaces({ HOME: place.path });
      const policy = new TargetPolicy(places, ["~"], []);
      const journal = new InPlaceJournal(places.state);
      const EDITS = 60;
      const args = ["--input-type=module", "-e", EDITOR, file, how, String(EDITS)];
      const editor = spawn(process.execPath, args, { stdio: "inherit" });
      let writes = 0;
      const ended = once(editor, "close");
      while (editor.exitCode === null) {
        const target = await policy.resolve(file);
        const merge = (existing: Buffer | undefined): Buffer =>
          Buffer.from((existing ?? "").toString().replace(/token: value-\d+/, `token: value-${writes}`));
        try {
          await writeTarget({ path: file, target, merge, mode: 0o600, dirMode: 0o700 }, journal);
          writes += 1;
        } catch (error) {
          // A machine under load may stop the writer each time until the editor has saved again; a sync tries later.
          if (!(error instanceof AgentError) || error.code !== "target_busy") throw error;
        }
        await sleep(20);
      }
      await ended;
      assert.ok(writes > 0);
      const content = await place.read("app.yaml");
      assert.match(content, /^token: value-\d+\n(edit\d+: saved\n)*$/);
      const kept = content.match(/^edit/gm)?.length ?? 0;
      t.diagnostic(`${EDITS - kept} of ${EDITS} edits lost against ${writes} writes`);
      // An edit is lost between the agent's link and rename, or between an editor's own read and write. A writer that
      // hardly pauses makes this many thousand times as likely as a sync cycle does. Mostly none is lost. A loaded
      // machine can stop either process in this window for long: there a fifth was lost.
      assert.ok(kept >= EDITS / 2, `${kept} of ${EDITS}`);
    });
  }
});
