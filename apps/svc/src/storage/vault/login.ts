import { readFile } from "node:fs/promises";
import { Secret, systemCode, type Clock } from "@devplat/base";
import type { VaultClient } from "@devplat/secret-store";
import { SvcError } from "../../errors.ts";
import { unavailable } from "./kv.ts";

/** How the service proves to Vault who it is. */
export type VaultAuth =
  | { readonly method: "token"; readonly token: Secret | undefined }
  | { readonly method: "approle"; readonly mount: string; readonly roleId: string; readonly secretId: Secret }
  /** The service account's token, read again for each login, because Kubernetes replaces it. */
  | {
      readonly method: "kubernetes";
      readonly mount: string;
      readonly role: string;
      readonly jwtFile: string;
    };

/** Part of a token's life after which it is renewed: what is left covers an outage of Vault. */
const RENEW_AFTER = 0.5;
/** Milliseconds between two tries while Vault does not answer. */
const RETRY_MS = 5000;
/** Milliseconds between two looks at a token that does not end. */
const LOOK_MS = 10 * 60 * 1000;

/** The service's token at Vault, kept alive: renewed in time, and by a new login when that is over. */
export class VaultLogin {
  readonly #auth: VaultAuth;
  readonly #clock: Clock;
  #token: Secret | undefined;

  constructor(auth: VaultAuth, clock: Clock) {
    this.#auth = auth;
    this.#clock = clock;
    this.#token = auth.method === "token" ? auth.token : undefined;
  }

  get token(): Secret | undefined {
    return this.#token;
  }

  /** The first login. @throws SvcError `database_unavailable`, `config_refused` */
  async begin(client: VaultClient): Promise<void> {
    if (this.#auth.method === "token") return;
    await this.#logIn(client);
  }

  /** Keeps the token alive until the signal fires. */
  async run(client: VaultClient, signal: AbortSignal): Promise<void> {
    let waitMs = 0;
    while (!signal.aborted) {
      await this.#clock.sleep(waitMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      waitMs = await this.#keep(client).catch(() => RETRY_MS);
    }
  }

  /** @returns milliseconds until it is to be asked for again */
  async #keep(client: VaultClient): Promise<number> {
    try {
      const { ttlSeconds, renewable } = await client.lookupSelf();
      if (ttlSeconds === undefined) return LOOK_MS;
      if (renewable) {
        const renewed = await client.renewSelf();
        // A token at the end of its longest life is renewed by less and less.
        if (renewed.ttlSeconds >= ttlSeconds || this.#auth.method === "token") {
          return Math.max(RETRY_MS, renewed.ttlSeconds * 1000 * RENEW_AFTER);
        }
      }
      if (this.#auth.method === "token") return Math.max(RETRY_MS, ttlSeconds * 1000 * RENEW_AFTER);
    } catch (error) {
      if (!isEnded(error) || this.#auth.method === "token") throw error;
    }
    const seconds = await this.#logIn(client);
    return seconds === 0 ? LOOK_MS : Math.max(RETRY_MS, seconds * 1000 * RENEW_AFTER);
  }

  /** @returns the new token's life in seconds; 0: it does not end */
  async #logIn(client: VaultClient): Promise<number> {
    const auth = this.#auth;
    if (auth.method === "token") return 0;
    const fields =
      auth.method === "approle"
        ? { role_id: auth.roleId, secret_id: auth.secretId.reveal() }
        : { role: auth.role, jwt: await serviceAccountToken(auth.jwtFile) };
    try {
      const answer = await client.request({
        method: "POST",
        path: `auth/${auth.mount}/login`,
        body: JSON.stringify(fields),
        token: null,
        repeatable: true,
      });
      const granted = answer.get("auth");
      this.#token = new Secret(granted.get("client_token").string());
      return granted.get("lease_duration").integer();
    } catch (error) {
      throw unavailable(error);
    }
  }
}

function isEnded(error: unknown): boolean {
  const code = systemCode(error);
  return code === "unauthenticated" || code === "denied";
}

async function serviceAccountToken(path: string): Promise<string> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch (error) {
    throw new SvcError(
      "config_refused",
      `vault.jwt_file: "${path}" cannot be read (${systemCode(error) ?? "unknown fault"})`,
    );
  }
}
