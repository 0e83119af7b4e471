import { noteLine } from "@devplat/base/terminal";
import { AgentError } from "../../errors.ts";
import type { OfferedKeyView, RemoteView } from "../../remote-view.ts";
import { ask } from "../common/prompt.ts";
import type { DialResult } from "./daemon-remotes.ts";

/** Maximum hosts on the way to a remote, itself included. */
const MAX_HOSTS = 16;
/** A line is printed again after this time without a result, in milliseconds. */
const PROGRESS_MS = 10_000;

export interface ConfirmOptions {
  /** The action, for the lines of progress. */
  readonly action: string;
  /** `--accept-host-key`: nobody is asked. */
  readonly acceptAll: boolean;
}

/**
 * Repeats a request until every host key on the way to a remote is confirmed.
 *
 * @param dial sends the request with the fingerprints that were confirmed
 * @throws AgentError `confirmation_needed` | `daemon_refused` if a host shows another key than the confirmed one
 */
export async function withConfirmedKeys(
  host: string,
  { action, acceptAll }: ConfirmOptions,
  dial: (accepted: readonly string[]) => Promise<DialResult>,
): Promise<RemoteView> {
  const confirmed = new Map<string, string>();
  for (;;) {
    const result = await withProgress(action, dial([...confirmed.values()]));
    if (result.state === "saved") return result.remote;
    const { offered } = result;
    if (confirmed.has(offered.host)) throw changedKey(offered);
    if (confirmed.size >= MAX_HOSTS)
      throw new AgentError("daemon_refused", `there are more than ${MAX_HOSTS} hosts on the way to ${host}`);
    show(offered);
    const [same] = [...confirmed].find(([, fingerprint]) => fingerprint === offered.fingerprint) ?? [];
    if (same !== undefined)
      noteLine(`  Warning: ${same} has this key too, and may answer in place of ${offered.host}.`);
    if (!acceptAll && offered.pinned !== offered.fingerprint) await confirm(offered);
    confirmed.set(offered.host, offered.fingerprint);
  }
}

async function withProgress<T>(action: string, work: Promise<T>): Promise<T> {
  const begun = performance.now();
  noteLine(`${action} …`);
  const timer = setInterval(() => {
    noteLine(`${action} … (${Math.round((performance.now() - begun) / 1000)} s)`);
  }, PROGRESS_MS);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}

function show({ host, type, fingerprint, known, pinned }: OfferedKeyView): void {
  const inKnownHosts = known ? "has exactly this key" : "does not have this key";
  const lines = [
    `${host} has this host key:`,
    `  ${type} ${fingerprint}`,
    `  Your known_hosts ${inKnownHosts} for the host.`,
  ];
  if (pinned === fingerprint) lines.push("  It is the pinned key.");
  else if (pinned !== null) lines.push(`  Another key is pinned: ${pinned}`);
  for (const line of lines) noteLine(line);
}

async function confirm({ host, fingerprint }: OfferedKeyView): Promise<void> {
  if (!process.stdin.isTTY) throw notConfirmed(host, "repeat the command with --accept-host-key");
  const answer = (await ask("Is this the key of the host? (yes/no) ", { hidden: false })).trim();
  if (!["yes", "y"].includes(answer.toLowerCase()) && answer !== fingerprint)
    throw notConfirmed(host, "answer yes");
}

function notConfirmed(host: string, next: string): AgentError {
  return new AgentError("confirmation_needed", `the key of ${host} was not confirmed; nothing was saved`, {
    hint: `Compare the fingerprint with one that you trust, then ${next}.`,
  });
}

function changedKey({ host, type, fingerprint }: OfferedKeyView): AgentError {
  return new AgentError(
    "daemon_refused",
    `${host} shows another key than the one that was confirmed: ${type} ${fingerprint}; nothing was saved`,
    { hint: "Somebody may answer in place of the host. Ask its administrator." },
  );
}
