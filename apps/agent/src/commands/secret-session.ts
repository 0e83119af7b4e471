import type { SecretStore } from "@devplat/secret-store";
import { assembleStore } from "../assemble-store.ts";
import { BRAND } from "../brand.ts";
import type { LoadedConfig } from "../config/load.ts";
import { AgentError } from "../errors.ts";
import type { Invocation } from "./command.ts";
import { openContext } from "./context.ts";
import { untilStopped } from "./signals.ts";

/**
 * Keeps `agent secrets` from writing what an enrolment has made, unless `--force` says so.
 * @throws AgentError `confirmation_needed`
 */
export function refuseEnrolled({ config }: LoadedConfig, { options }: Invocation, path: string): void {
  if (config.enrolments[path] === undefined || options["force"] === true) return;
  throw new AgentError("confirmation_needed", `${path} belongs to an enrolment`, {
    hint: `'${BRAND.command} enrol run ${path} --again' makes it anew; --force writes it all the same.`,
  });
}

/** Runs an action on the store, signed in; closes everything after it. */
export async function withStore<T>(
  invocation: Invocation,
  action: (store: SecretStore, signal: AbortSignal, loaded: LoadedConfig) => Promise<T>,
): Promise<T> {
  const { host, loaded } = await openContext(invocation);
  const parts = await assembleStore(host, loaded, !invocation.flags.dryRun);
  const stop = untilStopped();
  try {
    await parts.signIn.ensure(stop.signal);
    return await action(parts.store, stop.signal, loaded);
  } finally {
    stop.release();
    await parts.close();
  }
}
