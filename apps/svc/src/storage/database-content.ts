/** Rows of a table, by column. */
export interface TableRows {
  readonly table: string;
  readonly rows: readonly ContentRow[];
}

export type ContentRow = Readonly<Record<string, unknown>>;

/** Content of a database for a backup, as rows of an SQL database. It lacks data that is worth nothing after a restore, such as leases and pending sign-ins. */
export interface DatabaseContent {
  /** Applied migrations, in their order. They say what the rows look like. */
  readonly migrations: readonly string[];
  /** Tables after each other, a few rows at a time. It can be read once. */
  readonly tables: AsyncIterable<TableRows>;
}

/** Content that replaces that of a database. Its rows have the form of the newest migration. */
export interface NewContent {
  readonly tables: AsyncIterable<TableRows>;
  /** Epochs of repositories, by key. They are stored with a number that is higher than all that the database had. */
  readonly epochs: ReadonlyMap<string, number>;
  /** Whether all epochs become higher than those of any data that was stored before now. */
  readonly raiseEpochs: boolean;
  /** Whether content that the database has is deleted. Otherwise such a database is refused. */
  readonly replace: boolean;
  /** Time at which tokens are valid or have expired. */
  readonly now: number;
}

/** Former content of a database that was replaced. */
export interface Replaced {
  /** Deleted rows, by table. */
  readonly deleted: Readonly<Record<string, number>>;
  /**
   * Tokens that were revoked in the former content, and would be valid in the new one. They are revoked there, too. They include
   * administration tokens.
   */
  readonly revocations: number;
  /** Tokens of the new content that are valid, administration tokens included. */
  readonly validTokens: number;
}
