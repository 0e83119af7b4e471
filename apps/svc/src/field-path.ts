/** Characters of a name in a message. Longer ones are cut, because callers choose them. */
const MAX_SHOWN = 100;
/** Names that need no quotes in a path. */
const PLAIN = /^[\w-]+$/;

/**
 * A JSON Pointer (RFC 6901) as people read it: `stats.bucket`, `refs["refs/heads/main"]`.
 *
 * @param pointer `/refs/refs~1heads~1main`; empty: the whole body
 */
export function fieldPath(pointer: string): string {
  let path = "";
  for (const step of pointer.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (!PLAIN.test(name)) path += `[${JSON.stringify(shownName(name))}]`;
    else path += `${path === "" ? "" : "."}${shownName(name)}`;
  }
  return path;
}

/** A name of a caller, as messages have it. */
export function shownName(name: string): string {
  return name.length > MAX_SHOWN ? `${name.slice(0, MAX_SHOWN)}…` : name;
}
