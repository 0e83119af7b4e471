import type { Fields } from "@devplat/secret-store";
import { parseFields } from "@devplat/secret-store/json";
import { documentBytes, fieldBytes } from "../../../secrets/secret-bytes.ts";
import type { StoredSecret } from "../channel/messages.ts";

/** One version of a secret, as the bytes of its files. */
export class SecretContent {
  readonly version: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** The document: a JSON object with an indent of two spaces and a newline at the end. */
  readonly document: Buffer;
  readonly fields: Fields;

  constructor({ version, createdAt, fields }: StoredSecret) {
    this.version = version;
    this.createdAt = createdAt;
    this.fields = parseFields(fields);
    this.document = documentBytes(this.fields);
  }

  /** Distinguishes versions, also those of a secret that was removed and made again. */
  get key(): string {
    return `${this.version}/${this.createdAt}`;
  }

  /** Bytes of one field: a string as it is, another value as JSON. Undefined without such a field. */
  field(name: string): Buffer | undefined {
    const value = this.fields.get(name);
    return value === undefined ? undefined : fieldBytes(value);
  }
}
