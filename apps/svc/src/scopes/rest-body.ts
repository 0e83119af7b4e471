import { foldCase } from "../repository-name.ts";
import type { TokenLimits } from "../tokens/admission.ts";
import { isListed } from "../tokens/permit.ts";

/** A body that has a say: the fields of it that reach other repositories. */
export const BODY_JUDGED = new Set(["POST /repos/{owner}/{repo}/pulls"].values());

/** What stands against the body of a request in {@link BODY_JUDGED}; undefined: nothing. */
export function restBodyFault(repository: string, body: unknown, limits: TokenLimits): string | undefined {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    return "The body must be a JSON object";
  // Servers that read field names in any case would take another than the one judged here.
  if (Object.keys(body).some((name) => /^head(?:_repo)?$/i.test(name) && name !== name.toLowerCase()))
    return "The fields head and head_repo are written in lower case";
  const { head, head_repo: headRepository } = body as { head?: unknown; head_repo?: unknown };
  const [owner = ""] = repository.split("/");
  if (
    typeof head === "string" &&
    head.includes(":") &&
    foldCase(head.split(":")[0] ?? "") !== foldCase(owner)
  ) {
    return "The token is for single repositories, and head names a branch of another one";
  }
  if (headRepository === undefined || headRepository === null) return undefined;
  const named = typeof headRepository === "string" ? headRepository : "";
  const full = named.includes("/") ? named : `${owner}/${named}`;
  return isListed(limits, full) ? undefined : `The token is not for the repository that head_repo names`;
}
