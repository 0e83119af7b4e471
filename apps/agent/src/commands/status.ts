import { flagOf } from "@devplat/cli";
import { SecretStoreError } from "@devplat/secret-store";
import { printText, visibleJson } from "@devplat/base/terminal";
import { assemblePreview, enrolmentRunner, type SyncParts } from "../assemble/index.ts";
import { SHORT_STORE_TIMEOUT_MS } from "../host.ts";
import { volumeStatus } from "../assemble/volume-places.ts";
import type { Config } from "../config/schema.ts";
import { methodParts } from "../config/sections/store-section.ts";
import { AgentError, publicMessage } from "../errors.ts";
import type { RemoteState } from "../remote-view.ts";
import { fuseStatus } from "../surfaces/mount/mount-status.ts";
import { readDaemonStatus, type DaemonStatus } from "../surfaces/socket/daemon-status.ts";
import type { CommandStatus, CertificateStatus, DockerStatus } from "../status.ts";
import { PausedRules } from "../sync/paused-rules.ts";
import { StatusReport } from "../sync/status-report.ts";
import type { RunCommand } from "./common/command.ts";
import { hostOf, openContext } from "./common/context.ts";
import { statusText } from "./status/status-text.ts";
import { isConfigFault, statusWithoutConfig } from "./status/status-without-config.ts";
import { untilStopped } from "./common/signals.ts";

/**
 * Who is signed in, and the state of every rule as the last cycle left it; of a running daemon also what it alone
 * knows. Writes nothing.
 */
export const run: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation).catch(async (fault: unknown) => {
    // A file that was named and is missing is a typing error.
    const isNamed = invocation.flags.config !== undefined;
    if (!isConfigFault(fault) || (isNamed && fault.code === "config_unreadable")) throw fault;
    const asJson = flagOf(invocation.options, "json");
    printText((await statusWithoutConfig(hostOf(invocation), fault, asJson)) ?? "");
    throw fault;
  });
  const parts = await assemblePreview({ ...host, storeTimeoutMs: SHORT_STORE_TIMEOUT_MS }, loaded);
  const stop = untilStopped();
  try {
    let fault: SecretStoreError | undefined;
    const certificate = await certificateOf(parts, loaded.config);
    try {
      // The certificate is enough. The status needs no sign-in.
      if (certificate === undefined) await parts.signIn.ensure(stop.signal);
    } catch (error) {
      if (!(error instanceof AgentError || error instanceof SecretStoreError)) throw error;
      if (!(error instanceof AgentError)) fault = error;
    }
    const runner = enrolmentRunner(host, loaded, parts, () => undefined);
    await runner.look(stop.signal).catch((error: unknown) => {
      if (!(error instanceof SecretStoreError)) throw error;
      fault ??= error;
    });
    const report = new StatusReport(parts.facts, host.clock);
    const { document } = parts.state;
    const seen = report.status({
      signIn: parts.signIn.state(),
      document,
      rules: loaded.config.rules,
      paused: await new PausedRules(host.places.state).read(),
      running: false,
      nextCycleAt: null,
      events: "polling",
      enrolments: runner.list(),
    });
    const exposed = await parts.engine.exposedFiles();
    const docker = await volumeStatus(host, loaded.config);
    const fuse = await fuseStatus(loaded.config, host.places);
    const daemon = await readDaemonStatus(host.places, loaded.config);
    const status = withWarnings(
      exposed.map(({ warning }) => warning),
      withDaemon(
        withCertificate(
          withFault(
            { ...seen, ...(docker !== undefined && { docker }), ...(fuse !== undefined && { fuse }) },
            fault,
          ),
          certificate,
        ),
        withRegistrations(daemon, docker),
      ),
    );
    const text = flagOf(invocation.options, "json")
      ? `${visibleJson(status, 2)}\n`
      : statusText(status, document.stale_since);
    printText(text);
    return flagOf(invocation.options, "check") && hasTrouble(status) ? 1 : 0;
  } finally {
    stop.release();
    await parts.close();
  }
};

/** A store that says no is there. */
function withFault(status: CommandStatus, fault: SecretStoreError | undefined): CommandStatus {
  if (fault === undefined) return status;
  const reachable = fault.code === "denied" && status.store.reachable;
  return { ...status, store: { ...status.store, reachable, last_error: publicMessage(fault) } };
}

/**
 * The daemon's word counts for what happens in it, also where it can keep no state on a full disk. Who is signed in was
 * proven here and now. The store can be reached if neither has found the contrary.
 */
function withDaemon(
  status: CommandStatus,
  { config, rules = {}, storeFault, ...look }: DaemonStatus,
): CommandStatus {
  const known = Object.entries(rules).filter(([name]) => Object.hasOwn(status.rules, name));
  const { store } = status;
  return {
    ...status,
    ...look,
    rules: { ...status.rules, ...Object.fromEntries(known) },
    store: {
      ...store,
      reachable: store.reachable && storeFault?.reachable !== false,
      last_error: store.last_error ?? storeFault?.last_error ?? null,
    },
    config: { ...status.config, ...config },
  };
}

/** Registrations are read here: the daemon has those of its last look. */
function withRegistrations(
  { docker: seen, ...daemon }: DaemonStatus,
  docker: DockerStatus | undefined,
): DaemonStatus {
  if (seen === undefined || docker === undefined) return daemon;
  return { ...daemon, docker: { ...seen, registrations: docker.registrations } };
}

function withWarnings(warnings: readonly string[], status: CommandStatus): CommandStatus {
  const { config } = status;
  return { ...status, config: { ...config, problems: [...config.problems, ...warnings] } };
}

/** The certificate under `mtls+os`, which replaces a token; undefined under any other method. */
async function certificateOf(
  { tokens }: SyncParts,
  { store }: Config,
): Promise<CertificateStatus | undefined> {
  if (store.driver !== "vault" || methodParts(store.auth_method).suffix !== "os") return undefined;
  return await tokens?.certificates?.describe();
}

function withCertificate(status: CommandStatus, certificate: CertificateStatus | undefined): CommandStatus {
  if (certificate === undefined) return status;
  return { ...status, certificate, store: { ...status.store, last_error: null } };
}

/** States of an enabled forward that is down while no attempt runs: the ones that the pages show in red. */
const DOWN: ReadonlySet<RemoteState> = new Set(["offline", "authentication-error", "host-key-error"]);

function hasTrouble(status: CommandStatus): boolean {
  const { rules, sync, store, authenticated, certificate, remotes } = status;
  const failed = Object.values(rules).some(({ state }) => state === "failed" || state === "missing");
  const canSignIn = certificate === undefined ? authenticated : certificate.enrolled;
  const isDown = remotes.some(({ state }) => DOWN.has(state));
  const hasStore = store.reachable && store.last_error === null;
  return failed || sync.state === "stale" || !canSignIn || !hasStore || isDown;
}
