import { inspect } from "node:util";

const MASK = "••••";

/**
 * A value that does not print in a string, in JSON, in `util.inspect` or in a log line.
 * Only {@link Secret.reveal} returns it, so that a search for this name finds every use.
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
