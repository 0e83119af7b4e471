import { inspect } from "node:util";

const MASK = "••••";

/**
 * A value that does not print: not in a string, not in JSON, not in `util.inspect`, not in a log line.
 * Only {@link Secret.reveal} gives it, so that every use can be found by its name.
 */
export class Secret<T = string> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  reveal(): T {
    return this.#value;
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [inspect.custom](): string {
    return MASK;
  }
}

/** A URL without user name, password, query and fragment, for logs and messages. Not a URL: `<unreadable URL>`. */
export function redactUrl(url: string | URL): string {
  const parsed = URL.parse(String(url));
  if (parsed === null) return "<unreadable URL>";
  return `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
}
