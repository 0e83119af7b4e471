/**
 * `npm start`: both programs on this machine, for a first try. The service runs in development mode with SQLite, the
 * daemon with its embedded store; everything they write lies in `data/`. Ctrl-C stops both.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { freePortFrom } from "./ports.ts";
import { Program, untilReady } from "./program.ts";
import { prepareAgent, prepareSvc, trySheet } from "./workspace.ts";

const root = resolve(import.meta.dirname, "../..");
const data = join(root, "data");

async function main(): Promise<number> {
  await mkdir(data, { recursive: true, mode: 0o700 });
  const svc = await prepareSvc(root, data, await freePortFrom(8080), await freePortFrom(9136));
  const agent = await prepareAgent(root, data, await freePortFrom(8200));
  process.stderr.write(`Starting svc at ${svc.url} and agent at ${agent.url} ...\n`);
  const programs = [
    new Program("svc", svc.command, svc.args, svc.env),
    new Program("agent", agent.command, agent.args, agent.env),
  ] as const;
  let stopping = false;
  const stop = (): void => {
    stopping = true;
    for (const program of programs) program.stop();
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  const firstEnd = Promise.race(programs.map(async (program) => ({ program, code: await program.ended })));

  const ready = await Promise.all([
    untilReady(`${svc.url}/readyz`, firstEnd),
    untilReady(`${agent.url}/healthz`, firstEnd),
  ]);
  if (!stopping && ready.every(Boolean)) {
    const token = await developmentSession(svc.url);
    await writeFile(join(data, "env"), trySheet.environment(root, svc, agent, token), { mode: 0o600 });
    process.stdout.write(trySheet.text(svc, agent));
  }
  const { program, code } = await firstEnd;
  if (!stopping)
    process.stderr.write(`${program.name} ended with ${code ?? "a signal"}; stopping the other\n`);
  const failed = !stopping;
  stop();
  const codes = await Promise.all(programs.map((each) => each.ended));
  if (!failed) process.stderr.write("Both stopped.\n");
  return failed || codes.some((each) => each !== 0) ? 1 : 0;
}

/** A session of the development mode, so that the printed lines work as they are. */
async function developmentSession(url: string): Promise<string> {
  const answer = await fetch(`${url}/auth/test-login`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ username: "dev", role: "admin" }),
  });
  if (!answer.ok) throw new Error(`The development login answered ${answer.status}`);
  const { session_token: token } = (await answer.json()) as { session_token: string };
  return token;
}

process.exitCode = await main();
