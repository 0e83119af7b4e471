import { formatDuration } from "@devplat/base";
import { tableLines, visible } from "@devplat/base/terminal";
import { BRAND } from "../../brand.ts";
import { remoteLines } from "../ssh/remote-text.ts";
import { volumeLines } from "../docker/volume-text.ts";
import { sshAgentLines } from "../ssh-agent/ssh-agent-text.ts";
import type { CommandStatus, CertificateStatus } from "../../status.ts";

/**
 * The status for people, block by block.
 * @param staleSince ISO 8601; null while the files are up to date
 */
export function statusText(status: CommandStatus, staleSince: string | null): string {
  const { auth, store, sync, config } = status;
  const lines = [
    ...(status.certificate === undefined
      ? [`Authentication: ${authLine(status)}`]
      : certificateLines(status.certificate)),
    ...(auth.token_ttl_seconds === null
      ? []
      : [
          `Token:          ${formatDuration(auth.token_ttl_seconds * 1000)} left${auth.renewable ? ", renewable" : ""}`,
        ]),
    `Store:          ${store.address} (${store.kv_mount}/${store.user_prefix}${status.username})${store.reachable ? "" : ", not reachable"}`,
    ...daemonLine(status),
    `Last sync:      ${sync.last_cycle_at ?? "never"}${staleText(sync.state, staleSince)}`,
    ...(store.last_error === null ? [] : [`Last error:     ${store.last_error}`]),
    `Configuration:  ${config.sources.join(", ")}`,
    ...enrolmentLines(status),
    ...socketLines(status),
    ...config.problems.map((problem) => `Warning:        ${problem}`),
    ...(config.reload_needed.length === 0
      ? []
      : [
          `Warning:        changed, applies after the daemon's next start: ${config.reload_needed.join(", ")}`,
        ]),
  ];
  if (status.remotes.length > 0) lines.push("", "Remotes", ...remoteLines(status.remotes));
  lines.push(...sshAgentLines(status.ssh_agent), ...fuseLines(status), ...volumeLines(status));
  return `${[...lines, "", ...ruleLines(status.rules)].join("\n")}\n`;
}

function staleText(state: CommandStatus["sync"]["state"], since: string | null): string {
  if (since !== null) return `, stale since ${since}`;
  return state === "stale" ? ", stale" : "";
}

/** Every rule's state as a table. */
export function ruleLines(states: CommandStatus["rules"]): string[] {
  const rules = Object.entries(states).map(([name, rule]) => [
    name,
    rule.state,
    rule.version === null ? "-" : String(rule.version),
    rule.last_synced ?? "never",
    rule.error ?? "",
  ]);
  if (rules.length === 0) return ["No rules."];
  return tableLines(["RULE", "STATE", "VERSION", "LAST SYNCED", "ERROR"], rules);
}

/** Lines about the certificate under `mtls+os`, which has no token. */
function certificateLines({ enrolled, identity, backend, expires_at, fault }: CertificateStatus): string[] {
  return [
    `Certificate:    ${enrolled ? `enrolled as ${identity ?? ""}` : `not enrolled (${fault ?? ""})`}`,
    `  Backend:      ${backend}`,
    ...(expires_at === null ? [] : [`  Expires:      ${expires_at}`]),
  ];
}

/** Empty if the daemon has neither a socket nor a port. */
export function daemonLine({
  daemon,
  uptime_seconds: uptime,
  sync,
}: Pick<CommandStatus, "daemon" | "uptime_seconds" | "sync">): string[] {
  if (daemon === undefined) return [];
  if (!daemon.running) return ["Daemon:         not running"];
  const next = sync.next_cycle_at === null ? "" : `, next cycle ${sync.next_cycle_at}`;
  const events = sync.events === "connected" ? ", follows the store's events" : "";
  return [
    `Daemon:         running${uptime === 0 ? "" : ` for ${formatDuration(uptime * 1000)}`}${next}${events}`,
  ];
}

/** Sockets of the daemon, and who has borrowed its token. */
function socketLines({ api, peers }: CommandStatus): string[] {
  if (api === undefined) return [];
  const lines = [`API socket:     ${api.socket} (${api.present ? "present" : "not present"})`];
  if (peers === undefined) return lines;
  const { token_handouts: count, last_token_handout_at: last } = peers;
  const times = count === 1 ? "once" : `${count} times`;
  const handouts = last === null ? "no token handed out" : `token handed out ${times}, last ${last}`;
  return [...lines, `Peer socket:    ${peers.socket} (${handouts})`, ...lentTokenLines(peers.tokens)];
}

/** Tokens that live now, and why none is lent. */
function lentTokenLines({
  lent,
  added_policies: added,
  problem,
  asking,
}: NonNullable<CommandStatus["peers"]>["tokens"]): string[] {
  return [
    ...lent.map(
      ({ expires_at: end, handouts }) => `  Lent token: until ${end}, handed out ${handouts} times`,
    ),
    ...(added.length === 0 ? [] : [`  Policies: the store adds: ${added.map(visible).join(", ")}`]),
    ...(asking
      ? [
          `  A host waits for a token: '${BRAND.command} peer-socket allow' or '${BRAND.command} peer-socket refuse'`,
        ]
      : []),
    ...(problem === null ? [] : [`  Not lent: ${visible(problem)}`]),
  ];
}

function fuseLines({ fuse }: CommandStatus): string[] {
  if (fuse === undefined) return [];
  const {
    mountpoint,
    access,
    cache_ttl_seconds: ttl,
    mounted,
    problem = null,
    omitted_names: omitted = 0,
  } = fuse;
  const byRequest =
    !mounted && fuse.state === "unmounted"
      ? ` (unmounted by request; '${BRAND.command} mount' mounts again)`
      : "";
  return [
    "",
    "Filesystem",
    `  Mountpoint: ${visible(mountpoint)}`,
    `  Access:     ${access}`,
    `  Cache TTL:  ${formatDuration(ttl * 1000)}`,
    `  Mounted:    ${mounted ? "yes" : "no"}${byRequest}`,
    ...(problem === null ? [] : [`  Problem:    ${visible(problem)}`]),
    ...(omitted === 0 ? [] : [`  Left out:   ${omitted} names that no file can have`]),
    ...(fuse.unsaved ?? []).map(({ path, reason }) => `  Not stored: ${visible(path)} (${visible(reason)})`),
  ];
}

/** Enrolments that wait for the user or have failed; empty without enrolments. */
function enrolmentLines({ enrolments }: CommandStatus): string[] {
  if (enrolments.length === 0) return [];
  const open = enrolments.filter(({ state }) => state !== "complete" && state !== "skipped");
  const listed = open.map(({ key, status }) => `${key} (${status})`).join(", ");
  return [`Enrolments:     ${open.length === 0 ? "all dealt with" : listed}`];
}

function authLine({ authenticated, auth, store }: CommandStatus): string {
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
