import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { startVault, startVaultProxy, type Vault } from "@devplat/testkit";
import { buildTestRelease } from "../../tools/test/agent-release.ts";
import { VolumesStand } from "../../tests/interop/agent-volumes-stand.ts";
import { proportionalMegabytes } from "../lib/memory.ts";
import type { Report } from "../lib/report.ts";
import { summarize } from "../lib/statistics.ts";

const SECRETS = 200;
const CHANGES = 20;
/** Aims of the project, in milliseconds. */
const MOUNT_MS = 1000;
const REFRESH_MS = 500;
/** Interval at which a reader opens the file, in milliseconds. */
const LOOK_MS = 2;
/** Aim for the idle daemon, in MB. */
const MEMORY_MB = 100;
/** Time after which a daemon without work counts as idle, in milliseconds. */
const IDLE_MS = 30_000;
const ROOT = "users/ada/demo";

/** Container volumes against a real Vault: the first mount, and the time until a change is in a file. */
export async function run(rounds: number): Promise<Report> {
  const vault = await startVault();
  const proxy = await startVaultProxy(vault.address, { events: true });
  const release = await buildTestRelease();
  const stand = await VolumesStand.make({}, release.launcher);
  try {
    for (let index = 0; index < SECRETS; index++)
      await vault.put(`${ROOT}/s${index}`, { token: `value-${index}` });
    await stand.configure(
      `{ driver: vault, address: "${proxy.url}", auth_method: token, username: ada }`,
      "{ enabled: true, paths: [demo/] }",
    );
    await stand.home.write(".daemon-token", vault.rootToken);
    await stand.start();
    await stand.signedIn();
    await stand.ok("/VolumeDriver.Create", { Name: "app", Opts: { secrets: "demo/" } });
    const mounts: number[] = [];
    for (let round = 0; round < Math.max(rounds, 5); round++) {
      const begun = performance.now();
      await stand.ok("/VolumeDriver.Mount", { Name: "app", ID: "one" });
      mounts.push(performance.now() - begun);
      await stand.ok("/VolumeDriver.Unmount", { Name: "app", ID: "one" });
    }
    await stand.ok("/VolumeDriver.Mount", { Name: "app", ID: "one" });
    const changes: number[] = [];
    for (let change = 0; change < CHANGES; change++)
      changes.push(await changeOf(stand, { url: proxy.url, vault }, `changed-${change}`));
    await sleep(IDLE_MS);
    const memory = proportionalMegabytes(stand.agent.pid ?? 0);
    return {
      name: "agent-volumes",
      title: "Container volumes of the daemon",
      method: `The released daemon, a real Vault (development mode) behind a proxy that has Vault's event stream. A volume of ${SECRETS} secrets, mounted by curl ${mounts.length} times; ${CHANGES} changes of one secret, from the end of the write until a reader of the volume sees it (250 ms of that wait for further changes). The memory is that of the daemon with this volume, 30 s after the last change.`,
      rows: [
        row(`first mount of ${SECRETS} secrets`, mounts, MOUNT_MS),
        row("change to file, by events", changes, REFRESH_MS),
        row("proportional memory of the idle daemon", [memory], MEMORY_MB, "MB"),
      ],
    };
  } finally {
    await stand.remove();
    proxy.stop();
    await vault.stop();
    await release.remove();
  }
}

function row(what: string, ours: readonly number[], atMost: number, unit = "ms"): Report["rows"][number] {
  return {
    what,
    unit,
    ours: summarize(ours),
    reference: summarize([atMost]),
    referenceName: "the bound",
    target: { atMost: 1 },
  };
}

/** Changes one secret. @returns the time until its file has it, in milliseconds */
async function changeOf(
  stand: VolumesStand,
  { url, vault }: { url: string; vault: Vault },
  value: string,
): Promise<number> {
  // Through the proxy, which reports it.
  const { status } = await fetch(`${url}/v1/kv/data/${ROOT}/s7`, {
    method: "POST",
    headers: { "X-Vault-Token": vault.rootToken },
    body: JSON.stringify({ data: { token: value } }),
  });
  if (status !== 200) throw new Error(`Vault answered with ${status}`);
  const begun = performance.now();
  while (!(await readFile(stand.volume("app/demo/s7.json"), "utf8").catch(() => "")).includes(value)) {
    await sleep(LOOK_MS);
  }
  return performance.now() - begun;
}
