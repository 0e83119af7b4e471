import assert from "node:assert/strict";
import { request } from "node:http";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { run, startVault, until } from "@devplat/testkit";
import { webUrl } from "./agent-stand.ts";
import { VaultStand } from "./agent-mount/vault-stand.ts";

const TIMEOUT_MS = 480_000;
/** More than the mount's concurrent requests to the store. */
const CALLERS = 40;
/** Usual time for anything else that the daemon does, in milliseconds. Without a hung store it takes a tenth of it. */
const OTHER_WORK_MS = 1000;
/** The longest time for it, on a machine with other work. The store hangs for 30 s. */
const SLOWEST_MS = 5000;

const OTHER_SECTIONS = `web: { enabled: true, listen: "127.0.0.1:0" }
api: { enabled: true }
agent: { enabled: true, unix: { path: ~/a.sock } }
rules:
  - { name: app, key: app, target: { path: ~/app.yaml, format: yaml } }
`;

describe("the mount over a Vault that hangs for a folder", { timeout: TIMEOUT_MS }, () => {
  it("answers ETIMEDOUT after 30 s, and delays nothing else of the daemon [agent 38.4]", async (context) => {
    const vault = await startVault();
    context.after(() => vault.stop());
    await vault.request("PUT", "sys/policies/acl/reader", {
      policy: 'path "kv/*" { capabilities = ["read", "list"] }',
    });
    const stand = await VaultStand.start(vault, "ada", ["reader"], {
      more: OTHER_SECTIONS,
      fuse: "cache_ttl: 1m",
    });
    context.after(() => stand.stop());
    for (let each = 0; each < CALLERS; each++) await stand.put(`hung/s${each}`, { a: "b" });
    await stand.put("app", { token: "value-0" });
    await stand.put("demo/registry", { user: "ada" });
    const url = await webUrl(stand.agent);
    await stand.untilError("", "demo/registry.json");
    // Names are known, and values are not.
    stand.proxy.fault = { hang: true, path: /\/(?:data\/users\/ada\/hung|metadata\/users\/ada\/hung\/s)/ };
    const start = performance.now();
    const waiting = Array.from({ length: CALLERS }, (_, each) => stand.try(`hung/s${each}.json`));
    const listing = stand.try("hung");
    const shown = run("timeout", ["--signal=KILL", "60", "ls", "-l", stand.at("hung")], {});
    await sleep(1000);
    const times: Record<string, number[]> = {};
    for (let round = 1; performance.now() - start < 25_000; round++) {
      const measure = async (name: string, work: () => Promise<unknown>): Promise<void> => {
        const before = performance.now();
        await work();
        (times[name] ??= []).push(Math.round(performance.now() - before));
      };
      await stand.put("app", { token: `value-${round}` });
      await measure("sync of a file", async () => {
        await post(url, "/api/v1/sync?wait=true");
        await until(async () => (await stand.place.read("app.yaml")) === `token: value-${round}\n`);
      });
      await measure("status by the API", () => fetchText(`${url}/api/v1/status`));
      await measure("a request of the local socket", () =>
        localRequest(join(stand.place.path, "daemon/api.sock")),
      );
      await measure("the SSH agent", () => sshKeys(join(stand.place.path, "a.sock")));
      await measure("another file of the mount", async () => {
        assert.equal((await stand.try("demo/registry.json")).error, "");
      });
      await sleep(500);
    }
    const results = [...(await Promise.all(waiting)), await listing];
    const seconds = Math.max(...results.map((each) => each.seconds));
    for (const each of results.slice(0, CALLERS)) assert.equal(each.error, "ETIMEDOUT");
    assert.ok(seconds > 29 && seconds < 34, `${seconds} s`);
    assert.notEqual((await shown).code, 137, "ls -l hangs");
    process.stderr.write(`while the store hangs, in ms: ${JSON.stringify(times)}\n`);
    for (const [name, each] of Object.entries(times)) {
      const median = each.toSorted((a, b) => a - b)[Math.floor(each.length / 2)] ?? Infinity;
      assert.ok(
        median < OTHER_WORK_MS && Math.max(...each) < SLOWEST_MS,
        `${name} took ${each.join(", ")} ms`,
      );
    }
    assert.ok(Object.keys(times).length === 5);
    stand.proxy.fault = undefined;
    await stand.untilError("", "hung/s0.json");
    assert.doesNotMatch(stand.agent.log(), /is started again/);
  });
});

async function fetchText(url: string): Promise<string> {
  return await (await fetch(url)).text();
}

async function post(url: string, path: string): Promise<void> {
  const { token } = JSON.parse(await fetchText(`${url}/api/v1/csrf`)) as { token: string };
  const response = await fetch(`${url}${path}`, { method: "POST", headers: { "X-CSRF-Token": token } });
  assert.ok(response.ok, await response.text());
}

async function localRequest(socketPath: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const outgoing = request({ socketPath, path: "/api/v1/status" }, (response) => {
    response.resume().on("end", resolve);
  });
  outgoing.on("error", reject).end();
  await promise;
}

/** Exit code 1 of ssh-add: the agent answers, and has no key. */
async function sshKeys(socket: string): Promise<void> {
  const { code, stderr } = await run("ssh-add", ["-l"], { env: { ...process.env, SSH_AUTH_SOCK: socket } });
  assert.equal(code, 1, stderr);
}
