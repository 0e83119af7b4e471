import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startVault, until, type Vault } from "@devplat/testkit";
import { writePolicies } from "./agent-auth-stand.ts";
import { SshStand } from "./agent-ssh-stand.ts";

/** Life of lent tokens: one that was granted in the instant of a kill ends by itself. In seconds. */
const TOKEN_TTL_S = 5;
/** Maximum time from a connection to the kill, in milliseconds. */
const MAX_LIFE_MS = 400;

/**
 * Kills (-9) the daemon and the ssh of its forward in turn at random moments, while a remote host borrows a token. Each time the
 * forward comes back, no ssh and no socket of the one before is left, the pin is there, and no lent token lives on.
 *
 * @param more told how many kills there were
 * @returns number of kills
 */
export async function killLoop(random: () => number, more: (kills: number) => boolean): Promise<number> {
  const vault = await startVault();
  try {
    await writePolicies(vault);
    await vault.request("PUT", "sys/policies/acl/lender", {
      policy: 'path "auth/token/create" { capabilities = ["update"] }',
    });
    const token = await vault.createUserToken("ada", ["default", "user", "lender"]);
    await using stand = await SshStand.start(
      {},
      `store: { address: "${vault.address}", username: ada }
api: { enabled: true }
`,
    );
    await stand.home.write(".daemon-token", token);
    const others = (await accessors(vault)).size;
    await stand.startAgent();
    const added = await stand.add({ token_ttl: `${TOKEN_TTL_S}s` });
    let kills = 0;
    for (; more(kills); kills++) {
      await stand.state("connected");
      const borrowed = borrow(stand);
      await sleep(random() * MAX_LIFE_MS);
      if (kills % 2 === 0) await killDaemon(stand);
      else await killSsh(stand);
      await borrowed;
      const back = await stand.state("connected");
      assert.equal(back.proven, true);
      assert.equal(back.host_key?.fingerprint, added.host_key?.fingerprint);
      // Requests to the control socket are processes of ssh, too.
      await until(
        async () => (await stand.connections()).length === 1,
        () => `more than one ssh is running\n${stand.agent?.log() ?? ""}`,
      );
      let left: readonly string[] = [];
      await until(
        async () => (left = await leftovers(stand)).length === 0,
        () => `left behind by kill ${kills}: ${left.join(" ")}\n${stand.agent?.log() ?? ""}`,
      );
      // The children of the connection before are revoked; one granted in the instant of the kill ends by itself.
      await until(
        async () => (await accessors(vault)).size === others,
        () => stand.agent?.log() ?? "",
      );
      assert.match(await stand.remote("/api/v1/token"), /200$/);
      assert.equal((await accessors(vault)).size, others + 1, "a child is lent, not the daemon's own token");
    }
    await stand.agent?.stop();
    await until(async () => (await accessors(vault)).size === others);
    return kills;
  } finally {
    await vault.stop();
  }
}

/** Asks for the token again and again until nobody answers. */
async function borrow(stand: SshStand): Promise<void> {
  while ((await stand.remote("/api/v1/token")).endsWith("200"));
}

async function killDaemon(stand: SshStand): Promise<void> {
  const { agent } = stand;
  assert.ok(agent?.pid);
  process.kill(agent.pid, "SIGKILL");
  await agent.stop();
  await until(
    async () => (await stand.connections()).length === 0,
    () => "ssh outlives the daemon",
  );
  await stand.startAgent();
}

async function killSsh(stand: SshStand): Promise<void> {
  const before = (await stand.list()).remotes[0]?.reconnects ?? 0;
  for (const pid of await stand.connections()) process.kill(pid, "SIGKILL");
  await until(
    async () => ((await stand.list()).remotes[0]?.reconnects ?? 0) > before,
    () => stand.agent?.log() ?? "",
  );
}

async function accessors(vault: Vault): Promise<Set<string>> {
  const { body } = await vault.request("LIST", "auth/token/accessors");
  return new Set((body["data"] as { keys: string[] }).keys);
}

/** Files in the folder of connections that belong to no process that runs. */
async function leftovers(stand: SshStand): Promise<string[]> {
  const folder = join(stand.home.path, "run/daemon/ssh");
  const names = await readdir(folder);
  const live = new Set<string>();
  for (const name of names.filter((each) => each.endsWith(".pid"))) {
    const { pid } = JSON.parse(await readFile(join(folder, name), "utf8")) as { pid: number };
    if ((await stand.connections()).includes(pid)) live.add(name.slice(0, -".pid".length));
  }
  return names.filter(
    (name) => /\.(?:ctl|pid|probe|peer)$/.test(name) && !live.has(name.split(".")[0] ?? ""),
  );
}
