import type { Kysely } from "kysely";
import type { SecretBox } from "../secret-box.ts";
import { privateKeyPlace, webhookSecretPlace } from "./apps.ts";
import { asked } from "./asked.ts";
import { oneTimePlace } from "./one-time.ts";
import type { Tables } from "./tables.ts";
import { credentialPlace } from "./users.ts";

/** Secrets between two reports of progress. */
const REPORT_EVERY = 100;

/** A sealed text in its row. */
interface SealedText {
  readonly sealed: string;
  /** What it is sealed for. */
  readonly place: string;
  /** Writes the new text where the old one still stands: who changed it meanwhile did so under the current key. */
  readonly replace: (sealed: string) => Promise<unknown>;
}

/** Encrypts every secret of the database under the current key; those that are so already are left as they are. */
export async function rekeyDatabase(
  db: Kysely<Tables>,
  box: SecretBox,
  progress: (done: number, total: number) => void,
): Promise<number> {
  return asked(async () => {
    const found = (await sealedTexts(db)).filter(({ sealed }) => !box.isCurrent(sealed));
    for (const [index, { sealed, place, replace }] of found.entries()) {
      await replace(box.seal(box.open(sealed, place), place));
      if ((index + 1) % REPORT_EVERY === 0) progress(index + 1, found.length);
    }
    progress(found.length, found.length);
    return found.length;
  });
}

/** The ids of the keys that the database's secrets need and the box lacks. */
export async function unknownKeys(db: Kysely<Tables>, box: SecretBox): Promise<readonly string[]> {
  const texts = await asked(async () => sealedTexts(db));
  return [...new Set(texts.flatMap(({ sealed }) => box.unknownKey(sealed) ?? []))];
}

async function sealedTexts(db: Kysely<Tables>): Promise<SealedText[]> {
  const users = await db
    .selectFrom("users")
    .select(["id", "credential"])
    .where("credential", "is not", null)
    .execute();
  const apps = await db.selectFrom("apps").select(["id", "private_key", "webhook_secret"]).execute();
  const entries = await db.selectFrom("one_time").select(["kind", "key", "value"]).execute();
  return [
    ...users.map(({ id, credential }) => ({
      sealed: credential ?? "",
      place: credentialPlace(id),
      replace: async (fresh: string) =>
        db
          .updateTable("users")
          .set({ credential: fresh })
          .where("id", "=", id)
          .where("credential", "=", credential)
          .execute(),
    })),
    ...apps.map(({ id, private_key }) => ({
      sealed: private_key,
      place: privateKeyPlace(id),
      replace: async (fresh: string) =>
        db
          .updateTable("apps")
          .set({ private_key: fresh })
          .where("id", "=", id)
          .where("private_key", "=", private_key)
          .execute(),
    })),
    ...apps.flatMap(({ id, webhook_secret: secret }) =>
      secret === null
        ? []
        : {
            sealed: secret,
            place: webhookSecretPlace(id),
            replace: async (fresh: string) =>
              db
                .updateTable("apps")
                .set({ webhook_secret: fresh })
                .where("id", "=", id)
                .where("webhook_secret", "=", secret)
                .execute(),
          },
    ),
    ...entries.map(({ kind, key, value }) => ({
      sealed: value,
      place: oneTimePlace(kind, key),
      replace: async (fresh: string) =>
        db
          .updateTable("one_time")
          .set({ value: fresh })
          .where("kind", "=", kind)
          .where("key", "=", key)
          .where("value", "=", value)
          .execute(),
    })),
  ];
}
