import type { TokenLimits } from "../required-permissions.ts";
import { foldCase } from "../../repository-name.ts";
import { isListed } from "../token-limits.ts";
import { bodyFields } from "../body-fields.ts";

/** Operations whose body has fields that reach other repositories. */
export const BODY_CHECKED = new Set(["POST /repos/{owner}/{repo}/pulls"].values());

/** The fault of the body of a request in {@link BODY_CHECKED}; undefined: none. */
export function restBodyFault(repository: string, body: unknown, limits: TokenLimits): string | undefined {
  const fields = bodyFields(body, ["head", "head_repo"]);
  if (typeof fields === "string") return fields;
  const { head, head_repo: headRepository } = fields;
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
