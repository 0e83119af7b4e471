import { urlPath } from "../../../../secrets/url-path.ts";

/** Begin of the address of a page, before the path. */
export const SECRETS_PREFIX = "/ui/secrets/";

/** The page of a secret or folder. */
export function secretUrl(path: string): string {
  return SECRETS_PREFIX + urlPath(path);
}

/**
 * A field's name as a form or an address can carry it: JSON escapes line breaks, NUL and unpaired
 * surrogates, which forms would change.
 */
export function fieldKey(name: string): string {
  return JSON.stringify(name);
}

/** The name behind a {@link fieldKey}; undefined if it is none. */
export function fieldName(key: string | null | undefined): string | undefined {
  try {
    const name: unknown = JSON.parse(key ?? "");
    return typeof name === "string" ? name : undefined;
  } catch {
    return undefined;
  }
}

/** The address of a part of a secret's page, relative to the page. */
export function partUrl(part: "value" | "edit" | "row", name: string): string {
  return `?part=${part}&field=${encodeURIComponent(fieldKey(name))}`;
}
