import { SvcError } from "../../errors.ts";
import type { Identity } from "../../identity/principal.ts";
import type { SessionStore } from "../../storage/store.ts";

/**
 * Requires that the session that just made a token still runs. The end of a session revokes the tokens made with it, and
 * would miss one that was inserted at that moment.
 *
 * @param undo revokes the token
 * @throws SvcError `forbidden`
 */
export async function requireRunningSession(
  sessions: Pick<SessionStore, "get">,
  { sessionId }: Identity,
  undo: () => Promise<unknown>,
): Promise<void> {
  if ((await sessions.get(sessionId)) !== undefined) return;
  await undo();
  throw new SvcError("forbidden", "The session has ended");
}
