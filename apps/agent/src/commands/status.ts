import { formatDuration } from "@devplat/base";
import { SecretStoreError } from "@devplat/secret-store";
import { assemblePreview, enrolmentRunner } from "../assemble.ts";
import { AgentError } from "../errors.ts";
import type { AgentStatus } from "../status.ts";
import { publicMessage } from "../sync/records.ts";
import { StatusReport } from "../sync/status-report.ts";
import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";
import { table } from "./table-text.ts";
import { untilStopped } from "./signals.ts";

/** Who is signed in, and the state of every rule as the last cycle left it. Writes nothing. */
export const run: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const parts = await assemblePreview(host, loaded);
  const stop = untilStopped();
  try {
    let storeError: string | null = null;
    try {
      await parts.signIn.ensure(stop.signal);
    } catch (error) {
      if (!(error instanceof AgentError || error instanceof SecretStoreError)) throw error;
      if (!(error instanceof AgentError)) storeError = publicMessage(error);
    }
    const runner = enrolmentRunner(host, loaded, parts, () => undefined);
    await runner.look(stop.signal).catch((error: unknown) => {
      if (!(error instanceof SecretStoreError)) throw error;
      storeError ??= publicMessage(error);
    });
    const report = new StatusReport(parts.facts, host.clock);
    const { document } = parts.state;
    const seen = report.status({
      signIn: parts.signIn.state(),
      document,
      rules: loaded.config.rules,
      running: false,
      nextCycleAt: null,
      events: parts.store.watch === undefined ? "unsupported" : "polling",
      enrolments: runner.list(),
    });
    const status = storeError === null ? seen : unreachable(seen, storeError);
    const text =
      invocation.options["json"] === true
        ? `${JSON.stringify(status, undefined, 2)}\n`
        : print(status, document.stale_since);
    process.stdout.write(text);
    return invocation.options["check"] === true && hasTrouble(status) ? 1 : 0;
  } finally {
    stop.release();
    await parts.close();
  }
};

function unreachable(status: AgentStatus, error: string): AgentStatus {
  return { ...status, store: { ...status.store, reachable: false, last_error: error } };
}

function hasTrouble(status: AgentStatus): boolean {
  const failed = Object.values(status.rules).some((rule) => rule.state === "failed");
  return failed || status.sync.state === "stale" || !status.authenticated || !status.store.reachable;
}

function print(status: AgentStatus, staleSince: string | null): string {
  const { auth, store, sync, config } = status;
  const lines = [
    `Authentication: ${authLine(status)}`,
    ...(auth.token_ttl_seconds === null
      ? []
      : [
          `Token:          ${formatDuration(auth.token_ttl_seconds * 1000)} left${auth.renewable ? ", renewable" : ""}`,
        ]),
    `Store:          ${store.address} (${store.kv_mount}/${store.user_prefix}${status.username})${store.reachable ? "" : ", not reachable"}`,
    `Last sync:      ${sync.last_cycle_at ?? "never"}${staleSince === null ? "" : `, stale since ${staleSince}`}`,
    ...(store.last_error === null ? [] : [`Last error:     ${store.last_error}`]),
    `Configuration:  ${config.sources.join(", ")}`,
    ...enrolmentLines(status),
    ...config.problems.map((problem) => `Warning:        ${problem}`),
  ];
  lines.push(...dockerLines(status));
  const rules = Object.entries(status.rules).map(([name, rule]) => [
    name,
    rule.state,
    rule.version === null ? "-" : String(rule.version),
    rule.last_synced ?? "never",
    rule.error ?? "",
  ]);
  const listed =
    rules.length === 0 ? ["No rules."] : table(["RULE", "STATE", "VERSION", "LAST SYNCED", "ERROR"], rules);
  return `${[...lines, "", ...listed].join("\n")}\n`;
}

/** Also with the section off, while a file sends Docker to a socket that nobody serves. */
function dockerLines({ docker }: AgentStatus): string[] {
  if (docker === undefined) return [];
  const { path, expected, state } = docker.registration;
  return [
    "",
    "Docker Volumes",
    `  Plugin socket: ${docker.socket}${docker.enabled ? "" : " (docker.enabled is false: nobody serves it)"}`,
    `  Registration:  ${path}`,
    `  Expected line: ${expected}`,
    `  State:         ${state}`,
  ];
}

/** What waits for the user, or went wrong; nothing without enrolments. */
function enrolmentLines({ enrolments }: AgentStatus): string[] {
  if (enrolments.length === 0) return [];
  const open = enrolments.filter(({ state }) => state !== "complete" && state !== "skipped");
  const listed = open.map(({ key, status }) => `${key} (${status})`).join(", ");
  return [`Enrolments:     ${open.length === 0 ? "all dealt with" : listed}`];
}

function authLine({ authenticated, auth, store }: AgentStatus): string {
  if (!authenticated) return `not signed in${store.last_error === null ? "" : ` (${store.last_error})`}`;
  if (auth.borrowed_from !== undefined)
    return `authenticated, by a token borrowed from ${auth.borrowed_from}`;
  const from = { environment: " by the environment's token", file: " by the token file" } as Partial<
    Record<string, string>
  >;
  return auth.source === "embedded"
    ? "signed in (store on this host)"
    : `signed in${from[auth.source] ?? ""}`;
}
