/**
 * `npm start`: both programs on this machine, for a first try. The service runs in development mode with SQLite, the
 * daemon with its embedded store; all their files are in `data/`, or in START_DATA_DIR. Ctrl-C stops both. With
 * `--local-host` a small code host with a sample repository is started, too, and the files are in the folder `local-host` there.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { developmentSession } from "./development-session.ts";
import { freePortFrom } from "./ports.ts";
import { Program, untilReady } from "./program.ts";
import { forgetRunning, noteRunning, runningStart } from "./running.ts";
import { hostWarning, readSettings, type StartSettings } from "./settings.ts";
import { prepareAgent, prepareSvc, trySheet, type Launch } from "./workspace.ts";

const root = resolve(import.meta.dirname, "../..");

/** Folder for everything. */
interface DataFolder {
  readonly data: string;
  /** As the lines to paste name it, which are pasted in the root folder. */
  readonly shown: string;
}

/** @param part folder in the one for all starts */
function dataFolder(part = ""): DataFolder {
  const data = resolve(root, process.env["START_DATA_DIR"] ?? "data", part);
  return { data, shown: relative(root, data).startsWith("..") ? data : relative(root, data) };
}

async function main(): Promise<number> {
  const settings = readSettings(process.argv.slice(2), process.env);
  if (settings !== "local-host") return await start(settings, dataFolder());
  const { startLocalHost } = await import("./local-host.ts");
  process.stderr.write("Making a sample repository and starting a code host ...\n");
  const host = await startLocalHost();
  try {
    // The service and its command line take them from here.
    Object.assign(process.env, host.env);
    return await start(host.settings, dataFolder("local-host"));
  } finally {
    await host.stop();
  }
}

async function start(settings: StartSettings, folder: DataFolder): Promise<number> {
  const { data, shown } = folder;
  await mkdir(data, { recursive: true, mode: 0o700 });
  const other = await runningStart(data);
  if (other !== undefined) {
    const where = other.urls.join(" and ");
    throw new Error(
      `npm start already runs here (process ${other.pid}): ${where}. The lines to paste are in ${shown}/lines.txt.`,
    );
  }
  const svc = await prepareSvc(root, data, await freePortFrom(8080), await freePortFrom(9136));
  const agent = await prepareAgent(root, data, await freePortFrom(8200));
  process.stderr.write(
    `Starting svc at ${svc.url} and agent at ${agent.url} (logs: ${shown}/svc.log, ${shown}/agent.log) ...\n`,
  );
  await noteRunning(data, [svc.url, agent.url]);
  try {
    return await runBoth(settings, folder, svc, agent);
  } finally {
    await forgetRunning(data);
  }
}

async function runBoth(
  settings: StartSettings,
  { data, shown }: DataFolder,
  svc: Launch,
  agent: Launch & { readonly file: string },
): Promise<number> {
  const programs = [
    new Program("svc", svc, join(data, "svc.log")),
    new Program("agent", agent, join(data, "agent.log")),
  ] as const;
  let stopping = false;
  const stop = (): void => {
    if (!stopping) for (const program of programs) program.stop();
    stopping = true;
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, stop);
  const firstEnd = Promise.race(programs.map(async (program) => ({ program, code: await program.ended })));

  const warning = hostWarning(settings.host);
  const ready = await Promise.all([
    untilReady(`${svc.url}/readyz`, firstEnd),
    untilReady(`${agent.url}/healthz`, firstEnd),
  ]);
  if (!stopping && ready.every(Boolean)) {
    const token = await developmentSession(svc.url);
    await writeFile(join(data, "env"), trySheet.environment(root, svc, agent, token), { mode: 0o600 });
    const isListed = await isListedAlready(svc.url, token, settings.repository);
    const text = trySheet.text(settings, { svc, agent, data: shown, isListed });
    await writeFile(join(data, "lines.txt"), text, { mode: 0o600 });
    process.stdout.write(text);
    const said = await warning;
    if (said !== undefined) process.stderr.write(`\n${said}\n`);
  }
  const { program, code } = await firstEnd;
  const failed = !stopping;
  if (failed) {
    process.stderr.write(
      `${program.name} ended with ${code ?? "a signal"} (${shown}/${program.name}.log tells more); stopping the other\n`,
    );
  }
  stop();
  const codes = await Promise.all(programs.map((each) => each.ended));
  if (!failed) process.stderr.write("Both stopped.\n");
  return failed || codes.some((each) => each !== 0) ? 1 : 0;
}

async function isListedAlready(url: string, token: string, repository: string): Promise<boolean> {
  const answer = await fetch(`${url}/api/cached-repos`, { headers: { Authorization: `Bearer ${token}` } });
  const listed = (await answer.json()) as { owner: string; name: string }[];
  return listed.some(({ owner, name }) => `${owner}/${name}` === repository);
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
