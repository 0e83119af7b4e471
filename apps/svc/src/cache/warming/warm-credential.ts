import type { Secret } from "@devplat/base";
import type { InstallationCredentials } from "../../identity/apps/installation-credentials.ts";

/** Source of code-host tokens for warming, which are independent of client requests. */
export interface WarmCredential {
  /**
   * A token that may read the repository, as far as is known; undefined: there is none for it.
   *
   * @throws the errors of the source of the credential
   */
  forRepository(owner: string, name: string): Promise<Secret | undefined>;
}

/** `cache.service_token`: one token for every repository. */
export class ServiceToken implements WarmCredential {
  readonly #token: Secret | undefined;

  constructor(token: Secret | undefined) {
    this.#token = token;
  }

  forRepository(): Promise<Secret | undefined> {
    return Promise.resolve(this.#token);
  }
}

/** The installation of the default app, where it covers the repository. */
export class AppCredential implements WarmCredential {
  readonly #installations: InstallationCredentials;

  constructor(installations: InstallationCredentials) {
    this.#installations = installations;
  }

  async forRepository(owner: string, name: string): Promise<Secret | undefined> {
    return this.#installations.forRepository(owner, name, "read");
  }
}

/** The first that has a token: an app's installation before `cache.service_token` (spec/svc.md section 2.4). */
export class FirstCredential implements WarmCredential {
  readonly #credentials: readonly WarmCredential[];

  constructor(credentials: readonly WarmCredential[]) {
    this.#credentials = credentials;
  }

  async forRepository(owner: string, name: string): Promise<Secret | undefined> {
    for (const credential of this.#credentials) {
      const token = await credential.forRepository(owner, name);
      if (token !== undefined) return token;
    }
    return undefined;
  }
}
