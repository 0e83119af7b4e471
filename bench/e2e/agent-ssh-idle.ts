import { setTimeout as sleep } from "node:timers/promises";
import { cpuSecondsOf, until } from "@devplat/testkit";
import type { SshStand } from "../../tests/interop/agent-ssh-stand.ts";
import { forwardStand, remotesOf, startDaemon, writeRemotes } from "../lib/forward-stand.ts";
import { proportionalMegabytes } from "../lib/memory.ts";
import type { Report } from "../lib/report.ts";
import { exactly } from "../lib/statistics.ts";

const FORWARDS = 50;
/** Seconds for which they are watched: IDLE_SECONDS. The aim is stated for ten minutes. */
const SECONDS = Number(process.env["IDLE_SECONDS"] ?? 600);
/** Aims of the project: part of a core, and megabytes of each forward. */
const CORE_PERCENT = 0.5;
const MEGABYTES = 10;

/** Processor and memory of many forwards to which nothing happens. One run: other programs change little about it. */
export async function run(): Promise<Report> {
  await using stand = await forwardStand();
  await writeRemotes(stand, []);
  await startDaemon(stand);
  const memory = await memoryOf(stand);
  await connect(stand);
  const begin = performance.now();
  const cpu = await cpuOf(stand);
  await sleep(SECONDS * 1000);
  const used = (await cpuOf(stand)) - cpu;
  const percent = (100_000 * used) / (performance.now() - begin);
  const megabytes = ((await memoryOf(stand)) - memory) / FORWARDS;
  const row = { referenceName: "the bound", target: { atMost: 1 } };
  return {
    name: "agent-ssh-idle",
    title: "Idle forwards of the daemon",
    method: `The daemon from its sources with its SSH agent, sshd on loopback. ${FORWARDS} forwards for ${SECONDS} s, from the moment at which all are proven. The daemon and its ssh together, without sshd.`,
    rows: [
      {
        ...row,
        what: `${FORWARDS} idle forwards, part of a core`,
        unit: "%",
        ours: exactly(percent),
        reference: exactly(CORE_PERCENT),
      },
      {
        ...row,
        what: "an idle forward, proportional memory",
        unit: "MB",
        ours: exactly(megabytes),
        reference: exactly(MEGABYTES),
      },
    ],
  };
}

/** Resolves when all forwards are proven. */
async function connect(stand: SshStand): Promise<void> {
  const remotes = Array.from({ length: FORWARDS }, (_, index) => ({
    host: `host${index}`,
    socket: `.ssh/idle-${index}.sock`,
    enabled: true,
  }));
  const aliases = remotes.map(({ host }) => `Host ${host}\n  HostName 127.0.0.1\n`).join("");
  await stand.sshConfig(`IdentityFile ${stand.sshd.userKey}\n${aliases}`);
  await writeRemotes(stand, remotes);
  await until(async () => {
    const found = await remotesOf(stand);
    return found.length === FORWARDS && found.every(({ proven }) => proven);
  });
}

/** Processes of the daemon and of its ssh. */
async function processesOf(stand: SshStand): Promise<number[]> {
  const pid = stand.agent?.pid;
  return [...(pid === undefined ? [] : [pid]), ...(await stand.connections())];
}

/** Processor seconds of all. */
async function cpuOf(stand: SshStand): Promise<number> {
  return (await processesOf(stand)).reduce((sum, pid) => sum + cpuSecondsOf(pid).own, 0);
}

/** Proportional set size of all, in MB. */
async function memoryOf(stand: SshStand): Promise<number> {
  return (await processesOf(stand)).reduce((sum, pid) => sum + proportionalMegabytes(pid), 0);
}
