import type { Secret } from "@devplat/base";
import type { UserStore } from "../storage/store.ts";
import type { HostAccounts } from "./host-account.ts";

/** Accounts whose tokens are as they were stored: nothing renews them. */
export class StoredAccounts implements HostAccounts {
  readonly #users: Pick<UserStore, "credential">;

  constructor(users: Pick<UserStore, "credential">) {
    this.#users = users;
  }

  async accessToken(userId: string): Promise<Secret | undefined> {
    return (await this.#users.credential(userId))?.accessToken;
  }

  /** Another token, only if one was stored meanwhile. */
  async renewAfterRefusal(userId: string, refused: Secret): Promise<Secret | undefined> {
    const stored = await this.accessToken(userId);
    return stored?.reveal() === refused.reveal() ? undefined : stored;
  }
}
