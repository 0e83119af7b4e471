import { spawnSync } from "node:child_process";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startVault, tempFolder } from "@devplat/testkit";
import { isMounted, python } from "../../tests/interop/agent-mount-stand.ts";
import { Home, daemon } from "../../tests/interop/agent-stand.ts";
import { proportionalMegabytes } from "../lib/memory.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { exactly, summarize } from "../lib/statistics.ts";

const SECRETS = 1000;
/** The cache time of the mount, so that a round begins cold. */
const CACHE_TTL_MS = 20_000;
const ROOT = "users/ada/demo";

/** Median times in microseconds of 3,000 operations with direct I/O, so that each one reaches the daemon's process. */
const OPERATIONS = `
import json, mmap, os, sys, time
path, page = sys.argv[1], mmap.mmap(-1, 4096)
def median(run):
    times = []
    for _ in range(3000):
        begun = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - begun)
    return sorted(times)[1500] / 1000
def whole():
    opened = os.open(path, os.O_RDONLY | os.O_DIRECT)
    os.readv(opened, [page])
    os.close(opened)
kept = os.open(path, os.O_RDONLY | os.O_DIRECT)
print(json.dumps({"read": median(lambda: os.preadv(kept, [page], 0)), "whole": median(whole)}))
`;

/** The filesystem mount against a real Vault: single operations, and find over all secrets. */
export async function run(rounds: number): Promise<Report> {
  const folder = await tempFolder("bench-mount");
  const vault = await startVault();
  const home = new Home(folder.path, { XDG_RUNTIME_DIR: folder.path });
  const mountpoint = join(folder.path, ".daemon");
  await home.configure(`store: { driver: vault, address: "${vault.address}", auth_method: token, username: ada }
fuse: { enabled: true, cache_ttl: ${CACHE_TTL_MS / 1000}s }
`);
  await home.write(".daemon-token", vault.rootToken);
  for (let index = 0; index < SECRETS; index++)
    await vault.put(`${ROOT}/s${index}`, { token: `value-${index}` });
  const agent = await daemon(home, async () => {
    if (!(await isMounted(mountpoint))) return false;
    return (await readdir(mountpoint).catch(() => [])).length > 0;
  });
  try {
    const samples: Record<"read" | "whole" | "cold" | "warm", number[]> = {
      read: [],
      whole: [],
      cold: [],
      warm: [],
    };
    for (let round = 0; round < rounds; round++) {
      await sleep(CACHE_TTL_MS + 500);
      samples.cold.push(find(mountpoint));
      samples.warm.push(find(mountpoint));
      const times = JSON.parse(await python(OPERATIONS, join(mountpoint, "demo/s1.json"))) as Record<
        "read" | "whole",
        number
      >;
      samples.read.push(times.read);
      samples.whole.push(times.whole);
    }
    const memory = await serverMemoryMb(agent.pid ?? 0);
    return {
      name: "agent-mount",
      title: "The filesystem mount of the daemon",
      method: `The daemon from its sources, a real Vault (development mode) on this machine, ${SECRETS} secrets in one folder, ${rounds} rounds. Reads and opens are those of a Python process with direct I/O, medians of 3,000. "find" asks for the size of each file; it is cold after the cache time.`,
      rows: [
        row("read of 4 KiB, p50", "µs", samples.read, 40),
        row("open, read and close, p50", "µs", samples.whole, 150),
        row(`find over ${SECRETS} secrets, cold`, "ms", samples.cold, 2000),
        row(`find over ${SECRETS} secrets, warm`, "ms", samples.warm, 50),
        row("proportional memory of the mount server", "MB", [memory], 60),
      ],
    };
  } finally {
    await agent.stop();
    await vault.stop();
    await folder.remove();
  }
}

/** @returns milliseconds */
function find(mountpoint: string): number {
  const begun = performance.now();
  const { stdout } = spawnSync("find", [mountpoint, "-type", "f", "-size", "+0c"], { encoding: "utf8" });
  const count = stdout.trim().split("\n").length;
  if (count !== SECRETS) throw new Error(`find has ${count} of ${SECRETS} files`);
  return performance.now() - begun;
}

/** PSS of the only child of the daemon. */
async function serverMemoryMb(daemonPid: number): Promise<number> {
  const child = await readFile(`/proc/${daemonPid}/task/${daemonPid}/children`, "utf8");
  return proportionalMegabytes(Number(child.trim()));
}

function row(what: string, unit: string, ours: readonly number[], atMost: number): Row {
  return {
    what,
    unit,
    ours: summarize(ours),
    reference: exactly(atMost),
    referenceName: "the bound",
    target: { atMost: 1 },
  };
}
