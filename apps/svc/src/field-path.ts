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
    if (!PLAIN.test(name)) path += `[${JSON.stringify(name)}]`;
    else path += path === "" ? name : `.${name}`;
  }
  return path;
}
