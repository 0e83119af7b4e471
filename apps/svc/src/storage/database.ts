import type { Secret } from "@devplat/base";
import type { DatabaseContent, NewContent, Replaced } from "./database-content.ts";
import type { MigrationState } from "./migration-state.ts";
import type { Store } from "./store.ts";

/** Keys that encrypt stored secrets, in databases that do not encrypt by themselves. */
export interface EncryptionKeys {
  readonly current: Secret;
  /** Still decrypts. */
  readonly previous: Secret | undefined;
}

/** A database before it is served from: its form can be looked at and brought up to date. */
export interface Database {
  state(): Promise<MigrationState>;
  /**
   * Applies what is pending, all or nothing. Several processes may run it concurrently: one does it, the others wait.
   *
   * @returns the names of the migrations that were applied now
   * @throws SvcError `database_ahead`, or `database_unavailable` naming the migration that failed
   */
  migrate(): Promise<readonly string[]>;
  /**
   * The store in it; the database must be current. {@link Store.close} closes both.
   *
   * @param keys asked only where secrets are encrypted by us
   * @throws SvcError `encryption_key`: there is none, or stored secrets are under another
   */
  store(keys: () => Promise<EncryptionKeys>): Promise<Store>;
  /** Whether it encrypts secrets by itself. Otherwise the service encrypts them with its own keys. */
  readonly encryptsSecrets: boolean;
  /**
   * Reads everything that a backup has, as of one moment.
   *
   * @param keys encrypt secrets of a database that encrypts by itself
   * @throws SvcError `database_ahead`, or `database_unavailable`
   */
  readContent<T>(use: (content: DatabaseContent) => Promise<T>, keys: EncryptionKeys): Promise<T>;
  /**
   * Refuses what {@link replaceContent} would refuse, and changes nothing. The database may lack migrations.
   *
   * @param replace whether content that it has may be deleted
   * @throws SvcError `database_not_empty`, `database_in_use`, `database_ahead`, or `database_unavailable`
   */
  refuseReplacement(replace: boolean): Promise<void>;
  /**
   * Puts other content in place of what the database has. The content of an SQL database, once that is current, changes all or
   * nothing. Vault is not usable until the restore has ended, and a restore that did not end is repeated.
   *
   * @param keys open the secrets of the content
   * @throws SvcError `database_not_empty`, `database_in_use`, `database_ahead`, or `database_unavailable`
   */
  replaceContent(content: NewContent, keys: EncryptionKeys): Promise<Replaced>;
  close(): Promise<void>;
}
