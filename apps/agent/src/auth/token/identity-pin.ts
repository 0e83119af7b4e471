import { writeAtomically, type Secret } from "@devplat/base";
import type { TokenInfo } from "@devplat/secret-store";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { BRAND } from "../../brand.ts";
import { ensureFolder } from "../../agent-files/places.ts";
import { AgentError } from "../../errors.ts";
import { withoutChildPrefix } from "./display-name.ts";
import { tokenDigest } from "./denied-tokens.ts";

const pinSchema = z.object({
  entity_id: z.string().nullable(),
  display_name: z.string(),
  /** SHA-256 of the token that was adopted last, base64url. */
  token: z.string(),
  /** When that token ends, milliseconds since the epoch; null if it does not. */
  expires_at: z.number().nullable(),
  /** It came from a login of this program, which may therefore revoke it. */
  own_login: z.boolean(),
});
export type Pin = z.infer<typeof pinSchema>;

/**
 * The identity of the token that was adopted last, in `<state>/identity.json` (0600). Another identity's token is not
 * taken, from any source: it would put another user's secrets into this user's files.
 */
export class IdentityPin {
  readonly #folder: string;
  readonly #writable: boolean;

  /** @param writable false for a look that must leave nothing behind */
  constructor(stateFolder: string, writable: boolean) {
    this.#folder = stateFolder;
    this.#writable = writable;
  }

  /** The pinned identity; undefined before the first login, and after the file was lost. */
  async read(): Promise<Pin | undefined> {
    try {
      return pinSchema.safeParse(JSON.parse(await readFile(this.#path(), "utf8"))).data;
    } catch {
      return undefined;
    }
  }

  /** @throws AgentError `identity_refused` if the token belongs to another identity than the last one */
  async check(info: TokenInfo): Promise<void> {
    const pin = await this.read();
    if (pin === undefined || isSame(pin, info)) return;
    throw new AgentError("identity_refused", "the token belongs to another identity than the last one", {
      hint: `If that is meant, run '${BRAND.command} login --switch'.`,
    });
  }

  /** Remembers an adopted token; writes only what changed. */
  async adopt(token: Secret, info: TokenInfo, ownLogin: boolean): Promise<void> {
    if (!this.#writable) return;
    const before = await this.read();
    const digest = tokenDigest(token);
    const pin: Pin = {
      entity_id: info.entityId ?? null,
      display_name: info.displayName,
      token: digest,
      expires_at: info.expiresAt ?? null,
      own_login: ownLogin || (before?.token === digest && before.own_login),
    };
    if (JSON.stringify(pin) === JSON.stringify(before)) return;
    await this.#write(pin);
  }

  /** Puts back what {@link read} gave before an adoption that failed. */
  async restore(former: Pin | undefined): Promise<void> {
    if (!this.#writable) return;
    if (former === undefined) await rm(this.#path(), { force: true });
    else await this.#write(former);
  }

  async #write(pin: Pin): Promise<void> {
    await ensureFolder(this.#folder);
    await writeAtomically(this.#path(), `${JSON.stringify(pin)}\n`);
  }

  #path(): string {
    return join(this.#folder, "identity.json");
  }
}

/**
 * Compares entities where the pinned token had one, else display names: root tokens and their children have no entity. A
 * borrowed token is a child of the pinned one.
 */
function isSame(pin: Pin, info: TokenInfo): boolean {
  if (pin.entity_id !== null) return pin.entity_id === info.entityId;
  return withoutChildPrefix(pin.display_name) === withoutChildPrefix(info.displayName);
}
