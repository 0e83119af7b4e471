import type { SecretStore } from "@devplat/secret-store";
import { assembleStore } from "../../assemble/store.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { Host } from "../../host.ts";
import type { Invocation } from "./command.ts";
import { openContext } from "./context.ts";
import { untilStopped } from "./signals.ts";

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
