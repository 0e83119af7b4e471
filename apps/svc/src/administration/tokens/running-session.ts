import { SvcError } from "../../errors.ts";
import type { Identity } from "../../identity/principal.ts";
import type { SessionStore } from "../../storage/store.ts";

/**
 * Requires that the session that made a token is still valid. The end of a session revokes its tokens, but could miss one
 * that is inserted at the same moment.
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
