/** Longest owner or name: GitHub's limit for a repository name; its owners are shorter. */
export const MAX_NAME_LENGTH = 100;

/** Characters that code hosts allow in owners and names. A slash or a control character is not among them. */
export const NAME_FORM = /^[A-Za-z0-9._-]+$/;
export const NAME_FORM_FAULT = "may hold only letters, digits, dot, hyphen and underscore";
const UPPER_CASE = /[A-Z]/;

/**
 * Lower-cases ASCII letters only, as code hosts compare names. Unicode's rules would turn the Kelvin sign into a `k`,
 * and two repositories into one.
 */
export function foldCase(text: string): string {
  if (!UPPER_CASE.test(text)) return text;
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** Folders of the cache that are not folders of owners. */
const RESERVED_OWNERS: readonly string[] = ["_responses"];

/** Description of the fault of an owner, or undefined. */
export function ownerFault(owner: string): string | undefined {
  const fault = nameFault(owner);
  if (fault !== undefined) return fault;
  if (owner.startsWith(".")) return "must not start with a dot";
  if (RESERVED_OWNERS.includes(owner.toLowerCase())) return "is reserved";
  return undefined;
}

/** Description of the fault of a repository's name, or undefined. */
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

/** Splits `owner/name`, or returns the description of its fault. */
export function splitRepository(text: string): { owner: string; name: string } | string {
  const parts = text.split("/");
  const [owner, name] = parts;
  if (parts.length !== 2 || owner === undefined || name === undefined) return "expected <owner>/<repo>";
  const fault = ownerFault(owner) ?? repositoryNameFault(name);
  return fault === undefined ? { owner, name } : `expected <owner>/<repo>: ${fault}`;
}
