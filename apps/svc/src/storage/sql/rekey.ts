import { sql, type Kysely } from "kysely";
import type { SecretBox } from "../secret-box.ts";
import { withDatabaseErrors } from "./database-errors.ts";
import { oneTimePlace } from "./one-time.ts";
import { credentialPlace, privateKeyPlace, webhookSecretPlace } from "../rows/records.ts";
import type { Tables } from "../rows/tables.ts";

/** Secrets between two reports of progress. */
const REPORT_EVERY = 100;

/** A sealed text in its row. */
interface SealedText {
  readonly table: keyof Tables;
  readonly column: string;
  /** Values of the row's primary key. */
  readonly key: Readonly<Record<string, string>>;
  readonly sealed: string;
  /** Record that it is sealed for. */
  readonly place: string;
}

/**
 * Encrypts every secret of the database under the current key. Those that already are stay as they are.
 *
 * @param options `onlyKnown`: secrets of other keys than those of the box stay as they are, too. Default: they are an error
 */
export async function rekeyDatabase(
  db: Kysely<Tables>,
  box: SecretBox,
  progress: (done: number, total: number) => void,
  options: { readonly onlyKnown?: boolean } = {},
): Promise<number> {
  return withDatabaseErrors(async () => {
    const isLeft = (sealed: string): boolean =>
      box.isCurrent(sealed) || (options.onlyKnown === true && box.unknownKey(sealed) !== undefined);
    const found = (await sealedTexts(db)).filter(({ sealed }) => !isLeft(sealed));
    for (const [index, text] of found.entries()) {
      await replace(db, text, box.seal(box.open(text.sealed, text.place), text.place));
      if ((index + 1) % REPORT_EVERY === 0) progress(index + 1, found.length);
    }
    progress(found.length, found.length);
    return found.length;
  });
}

/** The ids of the keys that the database's secrets need and the box lacks. */
export async function unknownKeys(db: Kysely<Tables>, box: SecretBox): Promise<readonly string[]> {
  const texts = await withDatabaseErrors(async () => sealedTexts(db));
  return [...new Set(texts.flatMap(({ sealed }) => box.unknownKey(sealed) ?? []))];
}

async function sealedTexts(db: Kysely<Tables>): Promise<SealedText[]> {
  const users = await db.selectFrom("users").select(["id", "credential"]).execute();
  const apps = await db.selectFrom("apps").select(["id", "private_key", "webhook_secret"]).execute();
  const entries = await db.selectFrom("one_time").select(["kind", "key", "value"]).execute();
  const found = [
    ...users.map(({ id, credential: sealed }) => ({
      table: "users" as const,
      column: "credential",
      key: { id },
      sealed,
      place: credentialPlace(id),
    })),
    ...apps.flatMap(({ id, private_key: privateKey, webhook_secret: webhookSecret }) => [
      {
        table: "apps" as const,
        column: "private_key",
        key: { id },
        sealed: privateKey,
        place: privateKeyPlace(id),
      },
      {
        table: "apps" as const,
        column: "webhook_secret",
        key: { id },
        sealed: webhookSecret,
        place: webhookSecretPlace(id),
      },
    ]),
    ...entries.map(({ kind, key, value: sealed }) => ({
      table: "one_time" as const,
      column: "value",
      key: { kind, key },
      sealed,
      place: oneTimePlace(kind, key),
    })),
  ];
  return found.flatMap(({ sealed, ...text }) => (sealed === null ? [] : { ...text, sealed }));
}

/** Writes the new text where the old one still is. A text that changed since then is under the current key. */
async function replace(
  db: Kysely<Tables>,
  { table, column, key, sealed }: SealedText,
  fresh: string,
): Promise<void> {
  const conditions = Object.entries({ ...key, [column]: sealed }).map(
    ([name, value]) => sql`${sql.ref(name)} = ${value}`,
  );
  await sql`UPDATE ${sql.table(table)} SET ${sql.ref(column)} = ${fresh} WHERE ${sql.join(conditions, sql` AND `)}`.execute(
    db,
  );
}
