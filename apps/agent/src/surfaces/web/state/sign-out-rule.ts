import type { AgentStatus } from "../../../status.ts";

/** Whether the token is one that can be taken away here: from the token file, and not made again by a certificate. */
export function canSignOut({ auth }: Pick<AgentStatus, "auth">): boolean {
  return auth.source === "file" && !auth.method.startsWith("mtls");
}
