import { claimedKind } from "../../credentials/token-format.ts";
import type { Actor } from "../../identity/principal.ts";
import type { SessionUseCases } from "./sessions.ts";
import { tokenValueSchema } from "../tokens/token-input.ts";
import type { Tokens } from "../tokens/tokens.ts";
import { validateBody } from "../../http/request/validation.ts";

/** Revokes a leaked token of any kind by its value. @throws SvcError `not_found`, `invalid_fields`; ProblemError */
export async function revokeByValue(
  { tokens, sessions }: { readonly tokens: Tokens; readonly sessions: SessionUseCases },
  actor: Actor,
  input: unknown,
): Promise<void> {
  const { token } = validateBody(tokenValueSchema, input);
  if (claimedKind(token) === "session") await sessions.endByValue(actor, token);
  else await tokens.revokeByValue(actor, token);
}
