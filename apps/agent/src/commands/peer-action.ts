import { printLine } from "@devplat/base/terminal";
import type { Host } from "../host.ts";
import { loadConfig } from "../config/load.ts";
import { systemDesktop } from "../desktop/desktop.ts";
import { AgentError } from "../errors.ts";
import type { ActionKind } from "../config/action-kinds.ts";
import { parseAction } from "../peers/action.ts";
import { failureOf } from "../peers/failure.ts";
import { PeerFanOut } from "../peers/fan-out.ts";
import type { FormFields } from "../peers/form.ts";
import { performOn } from "../peers/local-actions.ts";
import { publicMessage } from "../sync/records.ts";
import type { Invocation } from "./command.ts";
import { hostOf } from "./context.ts";
import { untilStopped } from "./signals.ts";

/**
 * Asks the peers for an action, and does it on this host when none has accepted. Says nothing when it is done.
 *
 * @param fields as in the form that a peer gets; checked before anything else
 * @throws AgentError `usage` | `desktop_failed`
 */
export async function preferPeers(
  invocation: Invocation,
  kind: ActionKind,
  fields: FormFields,
): Promise<number> {
  const parsed = parseAction(kind, fields);
  if ("fault" in parsed) throw new AgentError("usage", parsed.fault);
  const host = hostOf(invocation);
  const peers = await peersOf(host, invocation.flags.config);
  if (invocation.flags.dryRun) {
    const sockets = (await peers?.sockets()) ?? [];
    const order = [...sockets, "this host, if no peer accepts"];
    for (const place of order) printLine(`would ask ${place}`);
    return 0;
  }
  const stop = untilStopped();
  try {
    if (peers !== undefined && (await peers.send(parsed.action, stop.signal)) > 0) return 0;
    if (stop.signal.aborted) return 1;
    const outcome = await performOn(systemDesktop(host.environment), parsed.action);
    if (outcome === "done") return 0;
    const { message, hint } = failureOf(kind, outcome);
    throw new AgentError("desktop_failed", message, { hint });
  } finally {
    stop.release();
  }
}

/** The peers of the configuration; without one that can be loaded there are none to ask, and the user is told. */
async function peersOf(
  { places, logger }: Host,
  explicit: string | undefined,
): Promise<PeerFanOut | undefined> {
  try {
    const { config } = await loadConfig(places, explicit);
    return new PeerFanOut({ patterns: config.store.token_socket, home: places.home, logger });
  } catch (error) {
    const reason = publicMessage(error);
    logger.warn({ reason }, "the configuration cannot be loaded, so no peer is asked");
    return undefined;
  }
}
