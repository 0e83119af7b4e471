import type { FieldValue } from "../contract.ts";
import { JsonError, SecretStoreError } from "../errors.ts";
import { isList, isMap, isNumber, parseJson } from "../json.ts";

/**
 * A part of a Vault response. It is read with the expected type. Any other type is `invalid_response`, which names the
 * place, not the value.
 */
export class ResponsePart {
  readonly value: FieldValue | undefined;
  readonly #place: string;

  constructor(value: FieldValue | undefined, place: string) {
    this.value = value;
    this.#place = place;
  }

  /** @throws SecretStoreError `invalid_response` */
  static parse(text: string, place: string): ResponsePart {
    try {
      return new ResponsePart(parseJson(text), place);
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      throw new SecretStoreError("invalid_response", `${place}: the text is not JSON (line ${error.line})`);
    }
  }

  /** Member of an object. It is absent if the object is absent. */
  get(name: string): ResponsePart {
    const value = this.value === undefined || this.value === null ? undefined : this.map().get(name);
    return new ResponsePart(value, `${this.#place}, ${name}`);
  }

  map(): ReadonlyMap<string, FieldValue> {
    return isMap(this.value) ? this.value : this.#fail("an object");
  }

  string(): string {
    return typeof this.value === "string" ? this.value : this.#fail("a string");
  }

  boolean(): boolean {
    return typeof this.value === "boolean" ? this.value : this.#fail("true or false");
  }

  /** Integer in the safe range of JavaScript. */
  integer(): number {
    const number = isNumber(this.value) ? Number(this.value.number) : NaN;
    return Number.isSafeInteger(number) ? number : this.#fail("a whole number");
  }

  /** Time in RFC 3339 form, as milliseconds since the epoch. */
  time(): number {
    const time = Date.parse(this.string());
    return Number.isNaN(time) ? this.#fail("a time") : time;
  }

  /** Items of a list. */
  list(): readonly ResponsePart[] {
    const items = isList(this.value) ? this.value : this.#fail("a list");
    return items.map((item, index) => new ResponsePart(item, `${this.#place}, item ${index + 1}`));
  }

  strings(): readonly string[] {
    return isList(this.value)
      ? this.value.map((item) => (typeof item === "string" ? item : this.#fail("a list of strings")))
      : this.#fail("a list of strings");
  }

  /** Result of `read` for this part, or the fallback if the part is absent or null. */
  or<T>(fallback: T, read: (part: ResponsePart) => T): T {
    return this.value === undefined || this.value === null ? fallback : read(this);
  }

  #fail(wanted: string): never {
    throw new SecretStoreError("invalid_response", `${this.#place}: expected ${wanted}`);
  }
}
