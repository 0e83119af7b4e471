import type { Sessions } from "../../identity/login/sessions.ts";
import type { Actor } from "../../identity/principal.ts";
import type { UserRecord, UserStore } from "../../storage/store.ts";
import { requireAdmin } from "../permission.ts";

export interface UserState extends UserRecord {
  readonly isAdmin: boolean;
}

/** Everybody who ever signed in. */
export class Users {
  readonly #store: Pick<UserStore, "list">;
  readonly #sessions: Pick<Sessions, "isAdmin">;

  constructor(store: Pick<UserStore, "list">, sessions: Pick<Sessions, "isAdmin">) {
    this.#store = store;
    this.#sessions = sessions;
  }

  /** @throws SvcError `forbidden` */
  async list(actor: Actor): Promise<readonly UserState[]> {
    requireAdmin(actor);
    const users = await this.#store.list();
    return users.map((user) => ({ ...user, isAdmin: this.#sessions.isAdmin(user.login) }));
  }
}
