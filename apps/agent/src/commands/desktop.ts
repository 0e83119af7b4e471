import { hostname } from "node:os";
import { textOf } from "@devplat/cli";
import type { Invocation, RunCommand } from "./common/command.ts";
import { MAX_CLIPBOARD_BYTES } from "../desktop/clipboard.ts";
import { AgentError, publicMessage } from "../errors.ts";
import { printLine } from "@devplat/base/terminal";
import type { Host } from "../host.ts";
import { loadConfig } from "../config/load.ts";
import { systemDesktop } from "../desktop/desktop.ts";
import type { ActionKind } from "../config/sections/action-kinds.ts";
import { parseAction } from "../surfaces/peer-actions/action.ts";
import { failureOf } from "../surfaces/peer-actions/failure.ts";
import { PeerFanOut } from "../surfaces/peer-actions/fan-out.ts";
import type { FormFields } from "../surfaces/peer-actions/form.ts";
import { performOn } from "../surfaces/peer-actions/local-actions.ts";
import { hostOf } from "./common/context.ts";
import { untilStopped } from "./common/signals.ts";
import { readStandardInput } from "./common/standard-input.ts";

/** Opens a web address in front of the user: on the peers, else here. */
export const browse: RunCommand = (invocation) =>
  preferPeers(invocation, "browse", new Map([["url", invocation.positionals[0] ?? ""]]));

/** Raises a notification in front of the user: on the peers, else here. */
export const notify: RunCommand = (invocation) => {
  const [level = "", title = "", body = ""] = invocation.positionals;
  const fields = new Map([
    ["level", level],
    ["title", title],
    ["body", body],
    ["action_url", textOf(invocation.options, "action-url") ?? ""],
  ]);
  return preferPeers(invocation, "notify", fields);
};

/** Puts a text on the clipboard in front of the user: on the peers', else on this host's. */
export const clipboard: RunCommand = async (invocation) => {
  const [argument = "-"] = invocation.positionals;
  const text =
    argument === "-" ? await readStandardInput(MAX_CLIPBOARD_BYTES, "the text") : fromArgument(argument);
  return await preferPeers(invocation, "clipboard", new Map([["text", text]]));
};

/** The system replaces bytes that are not UTF-8 by replacement characters. Such a text would arrive changed. */
function fromArgument(argument: string): string {
  if (!argument.includes("\uFFFD")) return argument;
  throw new AgentError("usage", "the text is not valid UTF-8, or holds a replacement character", {
    hint: "Standard input takes every valid text as it is.",
  });
}

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
    const asked = (await peers?.sockets())?.length ?? 0;
    const before = asked === 0 ? "" : `none of ${asked} forwarded sockets has accepted it, and `;
    throw new AgentError("desktop_failed", `On ${hostname()}: ${before}${message}`, { hint });
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
