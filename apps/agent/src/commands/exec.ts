import { flagOf, textOf } from "@devplat/cli";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { systemCode } from "@devplat/base";
import { printLine } from "@devplat/base/terminal";
import type { SecretStore } from "@devplat/secret-store";
import { assemblePreview, type SyncParts } from "../assemble/index.ts";
import { AgentError } from "../errors.ts";
import { childEnvironment } from "../platform/child-environment.ts";
import { valueText } from "../sync/content/value-text.ts";
import { noSuchField } from "./secrets/no-such-field.ts";
import type { Invocation, RunCommand } from "./common/command.ts";
import { openContext } from "./common/context.ts";
import { findRule } from "./common/find-rule.ts";

/** Time for a child to end by itself before it is restarted, in milliseconds. */
const END_GRACE_MS = 10_000;
/** Signals of a terminal or a supervisor, which are the child's. */
const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

interface Reference {
  readonly variable: string;
  readonly path: string;
  readonly field: string;
}

/** Runs a command with secrets in its environment; they are written nowhere. Exit code: the command's. */
export const run: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const references = list(invocation, "env").map(parseReference);
  const rules = list(invocation, "rule").map((name) => findRule(loaded, name));
  for (const { name, target } of rules) {
    if (target.format === "dotenv") continue;
    throw new AgentError("usage", `rule '${name}' is not of the format dotenv: it has no variables`);
  }
  const onChange = changeAction(invocation);
  const parts = await assemblePreview(host, loaded, !invocation.flags.dryRun);
  const stop = new AbortController();
  try {
    await parts.signIn.ensure(stop.signal);
    const read = async (): Promise<ReadonlyMap<string, string>> =>
      new Map([
        ...(await parts.engine.variables(rules, stop.signal)),
        ...(await readReferences(parts.store, references, stop.signal)),
      ]);
    const variables = await read();
    if (invocation.flags.dryRun) {
      printLine(`would set ${[...variables.keys()].join(", ") || "nothing"}`);
      return 0;
    }
    const [program = "", ...args] = invocation.positionals;
    const supervised = new Supervised(program, args, host.environment);
    supervised.start(variables);
    if (onChange !== undefined) {
      const followed = follow(parts, loaded.config.sync.interval, read, variables, stop.signal, (next) =>
        supervised.change(onChange, next),
      );
      followed.catch((error: unknown) =>
        host.logger.warn({ err: error }, "changes are not followed any more"),
      );
    }
    return await supervised.ended();
  } finally {
    stop.abort();
    await parts.close();
  }
};

function list({ options }: Invocation, name: string): readonly string[] {
  const value = options[name];
  return Array.isArray(value) ? (value as readonly string[]) : [];
}

/** `VAR=path#field` */
function parseReference(text: string): Reference {
  const match = /^([^=]+)=([^#]+)#(.+)$/.exec(text);
  const [, variable = "", path = "", field = ""] = match ?? [];
  if (match === null || !VARIABLE.test(variable)) {
    throw new AgentError("usage", "--env takes VARIABLE=path#field");
  }
  return { variable, path, field };
}

/** Action on the command when a secret changes; undefined for none. */
function changeAction({ options }: Invocation): "restart" | NodeJS.Signals | undefined {
  const given = textOf(options, "signal");
  if (flagOf(options, "restart") && given !== undefined) {
    throw new AgentError("usage", "--restart and --signal exclude each other");
  }
  if (flagOf(options, "restart")) return "restart";
  if (given === undefined) return undefined;
  const name = `SIG${given.toUpperCase().replace(/^SIG/, "")}`;
  if (name in constants.signals) return name as NodeJS.Signals;
  throw new AgentError("usage", "--signal takes the name of a signal, such as HUP");
}

async function readReferences(
  store: SecretStore,
  references: readonly Reference[],
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const variables = new Map<string, string>();
  for (const { variable, path, field } of references) {
    const { fields } = await store.read(path, { signal });
    const value = fields.get(field);
    if (value === undefined) throw noSuchField(path, fields, field);
    variables.set(variable, withoutNul(valueText(value), variable));
  }
  return variables;
}

function withoutNul(text: string, variable: string): string {
  if (!text.includes("\0")) return text;
  throw new AgentError(
    "value_injection",
    `the value of ${variable} holds a NUL, which no environment can carry`,
  );
}

/** Calls back whenever the variables have changed: by events of the store where it has them, else by polling. */
async function follow(
  { store, signIn }: SyncParts,
  intervalMs: number,
  read: () => Promise<ReadonlyMap<string, string>>,
  first: ReadonlyMap<string, string>,
  signal: AbortSignal,
  onChange: (next: ReadonlyMap<string, string>) => Promise<void>,
): Promise<void> {
  let current = JSON.stringify([...first]);
  const look = async (): Promise<void> => {
    try {
      await signIn.ensure(signal);
      const next = await read();
      const text = JSON.stringify([...next]);
      if (text === current) return;
      current = text;
      await onChange(next);
    } catch {
      // The command keeps what it has; the next look may work.
    }
  };
  const [{ systemClock, silentLogger }, { Serializer }, { StoreWatch }] = await Promise.all([
    import("@devplat/base"),
    import("@devplat/base/serializer"),
    import("../sync/store-watch.ts"),
  ]);
  // One look after the other: an older one must not be the last.
  const looks = new Serializer();
  const watch = new StoreWatch({ store, clock: systemClock, logger: silentLogger });
  const watching = watch.run(signal, { onChange: () => void looks.run(look) });
  while (!signal.aborted) {
    await systemClock.sleep(intervalMs, signal).catch(() => undefined);
    if (!signal.aborted && watch.state !== "connected") await looks.run(look);
  }
  await watching;
  await looks.settled();
}

/** The command, which may be started again with other variables. */
class Supervised {
  readonly #program: string;
  readonly #args: readonly string[];
  readonly #environment: NodeJS.ProcessEnv;
  readonly #end = Promise.withResolvers<number>();
  #child: ChildProcess | undefined;
  #restarting = false;

  constructor(program: string, args: readonly string[], environment: NodeJS.ProcessEnv) {
    this.#program = program;
    this.#args = args;
    this.#environment = environment;
    for (const name of FORWARDED) process.on(name, () => this.#child?.kill(name));
  }

  start(variables: ReadonlyMap<string, string>): void {
    const env = { ...childEnvironment(this.#environment), ...Object.fromEntries(variables) };
    const child = spawn(this.#program, this.#args, { stdio: "inherit", env });
    this.#child = child;
    child.on("error", (error) => {
      const why = systemCode(error) ?? "unknown error";
      this.#end.reject(
        new AgentError("run_failed", `cannot start ${this.#program} (${why})`, { hint: "Is it in PATH?" }),
      );
    });
    child.on("exit", (code, signal) => {
      if (!this.#restarting)
        this.#end.resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  }

  /** @returns the exit code, or 128 and the signal's number as in a shell */
  ended(): Promise<number> {
    return this.#end.promise;
  }

  async change(action: "restart" | NodeJS.Signals, variables: ReadonlyMap<string, string>): Promise<void> {
    const child = this.#child;
    // A child that a signal has ended has no exit code: the wait for it would never end.
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    if (action !== "restart") return void child.kill(action);
    this.#restarting = true;
    child.kill("SIGTERM");
    const killer = setTimeout(() => child.kill("SIGKILL"), END_GRACE_MS);
    await once(child, "exit");
    clearTimeout(killer);
    this.#restarting = false;
    this.start(variables);
  }
}
