import type { SecretStore } from "@devplat/secret-store";
import { assembleStore } from "../assemble-store.ts";
import { BRAND } from "../brand.ts";
import type { LoadedConfig } from "../config/load.ts";
import { AgentError } from "../errors.ts";
import type { Host } from "../host.ts";
import type { Invocation } from "./command.ts";
import { openContext } from "./context.ts";
import { FilesOfSecret } from "./files-of-secret.ts";
import { untilStopped } from "./signals.ts";

/**
 * Keeps `agent secrets` from writing what an enrolment has made, unless `--force` says so.
 * @throws AgentError `confirmation_needed`
 */
function refuseEnrolled({ config }: LoadedConfig, { options }: Invocation, path: string): void {
  if (config.enrolments[path] === undefined || options["force"] === true) return;
  throw new AgentError("confirmation_needed", `${path} belongs to an enrolment`, {
    hint: `'${BRAND.command} enrol run ${path} --again' makes it anew; --force writes it all the same.`,
  });
}

/** Runs an action on the store, signed in; closes everything after it. */
export async function withStore<T>(
  invocation: Invocation,
  action: (store: SecretStore, signal: AbortSignal, loaded: LoadedConfig, host: Host) => Promise<T>,
): Promise<T> {
  const { host, loaded } = await openContext(invocation);
  const parts = await assembleStore(host, loaded, !invocation.flags.dryRun);
  const stop = untilStopped();
  try {
    await parts.signIn.ensure(stop.signal);
    return await action(parts.store, stop.signal, loaded, host);
  } finally {
    stop.release();
    await parts.close();
  }
}

/** Changes a secret, and waits for the running daemon to have written it into its files, unless `--no-wait` says otherwise. */
export async function changeSecret(
  invocation: Invocation,
  secretPath: string,
  change: (store: SecretStore, signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const { options, flags } = invocation;
  const files = await withStore(invocation, async (store, signal, loaded, host) => {
    refuseEnrolled(loaded, invocation, secretPath);
    const before = await FilesOfSecret.look(host, loaded, secretPath);
    await change(store, signal);
    return before;
  });
  // The running daemon has its own configuration: what it does says nothing of one that was named here.
  if (!flags.dryRun && flags.config === undefined && options["no-wait"] !== true) await files.untilSynced();
  return 0;
}
