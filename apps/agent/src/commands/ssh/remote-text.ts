import { printLine, tableLines } from "@devplat/base/terminal";
import { BRAND } from "../../brand.ts";
import type { RemoteView } from "../../remote-view.ts";
import type { AgentStatus } from "../../status.ts";
import type { OfflineRemote } from "./offline-remotes.ts";

/** A remote of the daemon, or of ssh.yaml. */
type ShownRemote = AgentStatus["remotes"][number] | OfflineRemote;

/** Prints a remote with all its settings. */
export function printRemote(remote: RemoteView): void {
  const { host_key: key, tokens, error } = remote;
  const rows: [string, string][] = [
    ["host", remote.host],
    ["port", String(remote.port)],
    ["remote socket", remote.remote_socket],
    ["enabled", yesOrNo(remote.enabled)],
    ["user", remote.user ?? "as your ssh does"],
    ["proxy jump", remote.proxy_jump ?? "as your ssh does"],
    ["offers", remote.offers.join(", ") || "none"],
    ["policies", remote.policies?.join(", ") ?? "those of the daemon's token"],
    ["policies strict", yesOrNo(remote.policies_strict)],
    ["token ttl", remote.token_ttl],
    ["ask", remote.ask],
    ["lend", remote.lend],
    ["host key", key === null ? keyless(remote) : `${key.type} ${key.fingerprint}`],
    ...remote.hop_keys.map(({ host, type, fingerprint }): [string, string] => [
      `key of ${host}`,
      `${type} ${fingerprint}`,
    ]),
    ["state", stateText(remote)],
  ];
  if (tokens.added_policies.length > 0) rows.push(["the store adds", tokens.added_policies.join(", ")]);
  if (error !== null) rows.push(["error", `${error.class}: ${error.message}`], ["advice", error.advice]);
  const width = Math.max(...rows.map(([name]) => name.length));
  for (const [name, value] of rows) printLine(`${name.padEnd(width)}  ${value}`);
}

/** Prints a table of remotes, then what is wrong with them. */
export function printRemotes(remotes: readonly ShownRemote[]): void {
  if (remotes.length === 0) printLine("No remotes.");
  else for (const line of remoteLines(remotes)) printLine(line);
}

/** A table of remotes, then what is wrong with them. */
export function remoteLines(remotes: readonly ShownRemote[]): string[] {
  const table = tableLines(
    ["HOST", "STATE", "SINCE", "REMOTE SOCKET", "LENT"],
    remotes.map((remote) => [
      remote.port === 22 ? remote.host : `${remote.host} (port ${remote.port})`,
      stateText(remote),
      remote.since ?? "",
      remote.remote_socket_expanded ?? remote.remote_socket,
      lentText(remote),
    ]),
  );
  return [...table, ...remotes.flatMap(faultsOf)];
}

function faultsOf({ host, error, tokens }: ShownRemote): string[] {
  const problem = tokens?.problem ?? null;
  const added = tokens?.added_policies ?? [];
  return [
    ...(error === null ? [] : [`${host}: ${error.class}: ${error.message}`, `  ${error.advice}`]),
    ...(added.length === 0 ? [] : [`${host}: the store adds to its tokens: ${added.join(", ")}`]),
    ...(tokens?.asking === true
      ? [
          `${host}: waits for a token: '${BRAND.command} ssh allow ${host}' or '${BRAND.command} ssh refuse ${host}'`,
        ]
      : []),
    ...(problem === null ? [] : [`${host}: no token is lent: ${problem}`]),
  ];
}

function stateText({ state, proven, enabled }: ShownRemote): string {
  if (state === "unavailable") return enabled ? state : `${state} (disabled)`;
  return state === "connected" && !proven ? "connected (not proven)" : state;
}

function lentText({ tokens }: ShownRemote): string {
  if (tokens === null) return "";
  if (tokens.asking) return "waiting for consent";
  const { length } = tokens.lent;
  return length === 0 ? "none" : length === 1 ? "1 token" : `${length} tokens`;
}

function keyless({ trust }: RemoteView): string {
  return trust === "ca" ? "by a certificate authority" : "none";
}

function yesOrNo(value: boolean): string {
  return value ? "yes" : "no";
}
