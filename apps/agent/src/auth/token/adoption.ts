import type { Logger, Secret } from "@devplat/base";
import { SecretStoreError, type TokenInfo, type VaultClient } from "@devplat/secret-store";
import { BRAND } from "../../brand.ts";
import { AgentError } from "../../errors.ts";
import { downscope, narrows, type TokenScope } from "./downscope.ts";
import type { IdentityPin } from "./identity-pin.ts";
import type { TokenFile } from "./token-file.ts";

/** Nobody waits longer than this for the end of a token at the end of a command, in milliseconds. */
const END_LIMIT_MS = 2000;

export interface AdoptionParts {
  readonly client: VaultClient;
  readonly pin: IdentityPin;
  /** Undefined keeps no token at rest. */
  readonly tokenFile: TokenFile | undefined;
  readonly scope: TokenScope;
  readonly logger: Logger;
}

export interface Adopted {
  readonly token: Secret;
  readonly info: TokenInfo;
  /** Signature of the token file that keeps it. */
  readonly kept?: string;
}

export interface AdoptOptions {
  readonly anyIdentity?: boolean;
  readonly pasted?: boolean;
  readonly signal: AbortSignal;
}

/** Takes the token of a login for the daemon's own: proven, of the pinned identity, narrowed, and kept in its file. */
export class Adoption {
  readonly #parts: AdoptionParts;
  /** Adopted and kept by nothing but this process. */
  readonly #unkept = new Set<Secret>();

  constructor(parts: AdoptionParts) {
    this.#parts = parts;
  }

  /**
   * @param options `anyIdentity`: another identity may sign in from now on; `pasted`: the user has pasted the
   *   token, so that it is not revoked here
   * @throws AgentError `identity_refused` | `login_failed` | `token_file_refused`; a token that was not pasted is then revoked
   */
  async adopt(login: Secret, options: AdoptOptions): Promise<Adopted> {
    const { pin, tokenFile } = this.#parts;
    try {
      const adopted = await this.#narrowed(login, options.signal);
      if (options.anyIdentity !== true) await pin.check(adopted.info);
      if (tokenFile === undefined) this.#unkept.add(adopted.token);
      const kept = await this.#keep(adopted, options.pasted !== true || adopted.token !== login);
      return { ...adopted, ...(kept !== undefined && { kept }) };
    } catch (error) {
      // Its children end with it.
      if (options.pasted !== true) await this.#revoke(login);
      throw error;
    }
  }

  /** Ends what no file keeps: each command would otherwise leave a token behind in the store. Never throws. */
  async endUnkept(): Promise<void> {
    const { client, logger } = this.#parts;
    for (const token of this.#unkept) {
      await client
        .revokeSelf({ token, signal: AbortSignal.timeout(END_LIMIT_MS) })
        .catch((error: unknown) => {
          logger.debug({ err: error }, "the token could not be ended; it ends by itself");
        });
    }
    this.#unkept.clear();
  }

  /**
   * Writes the pin, then the token file. A sign-in that notices the file adopts the token as one that was found, and must see then
   * that it comes from a login.
   *
   * @returns the signature of the file
   */
  async #keep({ token, info }: Adopted, ownLogin: boolean): Promise<string | undefined> {
    const { pin, tokenFile, logger } = this.#parts;
    const former = await pin.read();
    await pin.adopt(token, info, ownLogin);
    try {
      return await tokenFile?.write(token);
    } catch (error) {
      // The file has the former token, so its identity must stay.
      await pin.restore(former).catch((failure: unknown) => {
        const message = `the identity of the former token could not be kept; if it is refused, run '${BRAND.command} login --switch'`;
        logger.warn({ err: failure }, message);
      });
      throw error;
    }
  }

  async #revoke(token: Secret): Promise<void> {
    try {
      await this.#parts.client.revokeSelf({ token });
    } catch (error) {
      const message = "the token of the failed login could not be revoked; it ends by itself";
      this.#parts.logger.warn({ err: error }, message);
    }
  }

  async #narrowed(login: Secret, signal: AbortSignal): Promise<Adopted> {
    const { client, scope } = this.#parts;
    const info = await client.lookupSelf({ token: login, signal });
    if (!narrows(scope)) return { token: login, info };
    const token = await downscope(client, login, info, scope, signal);
    try {
      return { token, info: await client.lookupSelf({ token, signal }) };
    } catch (error) {
      if (!(error instanceof SecretStoreError && error.code === "unauthenticated")) throw error;
      throw new AgentError(
        "login_failed",
        "the token with the policies of store.policies cannot prove itself",
        {
          hint: "Its policies must allow to read auth/token/lookup-self; without the default policy nothing else does.",
        },
      );
    }
  }
}
