/** Longest owner or name: GitHub's limit for a repository name; its owners are shorter. */
export const MAX_NAME_LENGTH = 100;

/** What code hosts allow in owners and names; with no slash, no control character, nothing that a path could mean. */
export const NAME_FORM = /^[A-Za-z0-9._-]+$/;
export const NAME_FORM_FAULT = "may hold only letters, digits, dot, hyphen and underscore";
/**
 * Lower-cases ASCII letters and nothing else: as code hosts compare names. Unicode's rules would make the Kelvin sign a
 * `k`, and one repository of two.
 */
export function foldCase(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** Folders of the cache's own beside the owners' folders. */
const RESERVED_OWNERS: readonly string[] = ["_responses"];

/** What is wrong with an owner, or undefined. */
export function ownerFault(owner: string): string | undefined {
  const fault = nameFault(owner);
  if (fault !== undefined) return fault;
  if (owner.startsWith(".")) return "must not start with a dot";
  if (RESERVED_OWNERS.includes(owner.toLowerCase())) return "is reserved";
  return undefined;
}

/** What is wrong with a repository's name, or undefined. */
export function repositoryNameFault(name: string): string | undefined {
  if (name.toLowerCase().endsWith(".git")) return "give the name without .git";
  return nameFault(name);
}

function nameFault(name: string): string | undefined {
  if (name === "") return "must not be empty";
  if (name.length > MAX_NAME_LENGTH) return `must have at most ${MAX_NAME_LENGTH} characters`;
  if (name === "." || name === "..") return "is not a name";
  if (!NAME_FORM.test(name)) return NAME_FORM_FAULT;
  return undefined;
}

/** Splits `owner/name`; gives what is wrong with it as text otherwise. */
export function splitRepository(text: string): { owner: string; name: string } | string {
  const parts = text.split("/");
  const [owner, name] = parts;
  if (parts.length !== 2 || owner === undefined || name === undefined) return "expected <owner>/<repo>";
  const fault = ownerFault(owner) ?? repositoryNameFault(name);
  return fault === undefined ? { owner, name } : `expected <owner>/<repo>: ${fault}`;
}
