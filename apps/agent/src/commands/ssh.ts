import { flagOf, printResult, UsageError } from "@devplat/cli";
import { noteLine, printLine } from "@devplat/base/terminal";
import { loadConfig } from "../config/load.ts";
import { hostFault, sameHost } from "../surfaces/forwards/file/remote-entry.ts";
import { DaemonClient } from "../surfaces/socket/daemon-client.ts";
import { apiSocketPath } from "../surfaces/socket/places.ts";
import type { Invocation, RunCommand } from "./common/command.ts";
import { hostOf } from "./common/context.ts";
import { withConfirmedKeys } from "./ssh/confirm-keys.ts";
import { DaemonRemotes, unknownHost, unreachable } from "./ssh/daemon-remotes.ts";
import type { OfflineRemote } from "./ssh/offline-remotes.ts";
import { printRemote, printRemotes } from "./ssh/remote-text.ts";
import { settingsOf } from "./ssh/settings.ts";

/** Adds a remote after a connection was tried, or pins the key of one again. */
export const add: RunCommand = async (invocation) => {
  const { options, flags } = invocation;
  const [host = ""] = invocation.positionals;
  const fault = hostFault(host);
  if (fault !== undefined) throw new UsageError(`HOST is not a host: ${fault}`, "ssh add");
  const settings = settingsOf(options, "ssh add");
  const [force, repin] = [flagOf(options, "force"), flagOf(options, "repin")];
  if (repin && (force || Object.keys(settings).length > 0)) {
    throw new UsageError("--repin changes the pinned key only; 'ssh edit' changes settings", "ssh add");
  }
  if (flags.dryRun) {
    const verb = repin ? "have its key pinned again" : "be added";
    printResult(options, { host, outcome: `would ${verb}` }, () => printLine(`'${host}' would ${verb}`));
    return 0;
  }
  const remotes = await daemonRemotes(invocation);
  const acceptAll = flagOf(options, "accept-host-key");
  const action = repin ? `Asking ${host} for its key` : force ? `Saving ${host}` : `Connecting to ${host}`;
  const remote = await withConfirmedKeys(host, { action, acceptAll }, (accepted) => {
    if (repin) return remotes.repin(host, accepted);
    return remotes.add(host, { ...settings, ...(force && { force }) }, accepted);
  });
  printResult(options, remote, () => printRemote(remote));
  return 0;
};

/** Changes the given settings of a remote. */
export const edit: RunCommand = async (invocation) => {
  const settings = settingsOf(invocation.options, "ssh edit");
  if (Object.keys(settings).length === 0) throw new UsageError("nothing to change was given", "ssh edit");
  return await act(invocation, "changed", async (remotes, host) => {
    const remote = await remotes.edit(host, settings);
    printResult(invocation.options, remote, () => printRemote(remote));
  });
};

/** Every remote; those of ssh.yaml if no daemon answers. */
export const list: RunCommand = async (invocation) => {
  const found = await (await daemonRemotes(invocation)).list();
  const problem = found?.file_problem ?? null;
  if (problem !== null) noteLine(`ssh.yaml is not used: ${problem}`);
  if (found === undefined) noteLine(`${unreachable().message}. These are the entries of ssh.yaml.`);
  const remotes = found?.remotes ?? (await remotesOfFile(invocation));
  printResult(invocation.options, { remotes, file_problem: problem }, () => printRemotes(remotes));
  return 0;
};

/** Loaded only without a daemon. */
async function remotesOfFile(invocation: Invocation): Promise<readonly OfflineRemote[]> {
  const { offlineRemotes } = await import("./ssh/offline-remotes.ts");
  return await offlineRemotes(hostOf(invocation).places);
}

/** Removes a remote. */
export const remove: RunCommand = (invocation) =>
  act(invocation, "removed", async (remotes, host, tell) => {
    await remotes.remove(host);
    tell();
  });

/** Has the daemon try to connect now. */
export const retry: RunCommand = (invocation) =>
  act(invocation, "retried", async (remotes, host, tell) => {
    const found = (await remotes.list())?.remotes.find((each) => sameHost(each.host, host));
    const state = found?.state;
    if (state === "connected" || state === "disabled") {
      const text = state === "connected" ? "is connected already" : "is disabled, and was not tried";
      printResult(invocation.options, { host, outcome: state }, () => printLine(`${host}: ${text}`));
      return;
    }
    await remotes.retry(host);
    tell();
  });

/** Lends the token that a host waits for. */
export const allow: RunCommand = (invocation) =>
  act(invocation, "allowed", async (remotes, host, tell) => {
    await remotes.consent(host, true);
    tell();
  });

/** Refuses the token that a host waits for. */
export const refuse: RunCommand = (invocation) =>
  act(invocation, "refused", async (remotes, host, tell) => {
    await remotes.consent(host, false);
    tell();
  });

/** Revokes the tokens that a host has borrowed. */
export const revoke: RunCommand = (invocation) =>
  act(invocation, "revoked", async (remotes, host, tell) => {
    await remotes.revoke(host);
    tell();
  });

/** Texts for the outcome of an action on one remote. */
const OUTCOMES = {
  changed: ["", "would be changed"],
  removed: ["removed", "would be removed"],
  retried: ["tried again now", "would be tried again"],
  allowed: ["gets its token when it asks again, in a moment", "would get the token that it waits for"],
  refused: ["gets no token for 10 minutes", "would get no token for 10 minutes"],
  revoked: ["no token is lent any more", "would have its tokens revoked"],
} as const;

/** @param work `tell` prints the outcome */
async function act(
  invocation: Invocation,
  outcome: keyof typeof OUTCOMES,
  work: (remotes: DaemonRemotes, host: string, tell: () => void) => Promise<void>,
): Promise<number> {
  const { options, flags } = invocation;
  const [host = ""] = invocation.positionals;
  // No remote can have such a name, and it could lead to another address of the API.
  if (hostFault(host) !== undefined) throw unknownHost(host);
  const [done, planned] = OUTCOMES[outcome];
  if (flags.dryRun) {
    printResult(options, { host, outcome: planned }, () => printLine(`'${host}' ${planned}`));
    return 0;
  }
  await work(await daemonRemotes(invocation), host, () =>
    printResult(options, { host, outcome }, () => printLine(`${host}: ${done}`)),
  );
  return 0;
}

async function daemonRemotes(invocation: Invocation): Promise<DaemonRemotes> {
  const { places } = hostOf(invocation);
  // The daemon runs with a configuration that was good; one that has been broken since does not matter here.
  const loaded = await loadConfig(places, invocation.flags.config).catch(() => undefined);
  return new DaemonRemotes(new DaemonClient(places.runtime, apiSocketPath(places, loaded?.config.api)));
}
