import assert from "node:assert/strict";
import { mkdir, readdir, readFile, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { tempFolder, type TempFolder } from "@devplat/testkit";
import { generateX25519Identity, identityToRecipient } from "age-encryption";
import { MIGRATION_NAMES } from "../storage/sql/migrations.ts";
import { CONFIGURATION, forged, KEY, streamOf } from "./backup.test-kit.ts";
import { configurationPart } from "./configuration-part.ts";
import type { Unlocking } from "./encryption.ts";
import { writeConfiguration } from "./restored-configuration.ts";
import { StagedBackup } from "./staged-backup.ts";

let recipient: string;
let unlocking: Unlocking;
let folder: TempFolder;
before(async () => {
  const identity = await generateX25519Identity();
  recipient = await identityToRecipient(identity);
  unlocking = { kind: "identities", identities: [new Secret(identity)] };
  folder = await tempFolder("hostile-backup");
});
after(async () => folder?.remove());

const HEADER = {
  format: "svc-backup",
  version: 1,
  program: "0.1.0",
  created_at: "2026-11-24T12:00:00.000Z",
  content: "sql",
  driver: "sqlite",
  migrations: MIGRATION_NAMES,
  host_url: "https://github.com",
  key_id: null,
};
const USER = { id: "u1", login: "a", login_key: "a", created_at: 1 };
const TOKEN = {
  id: "t1",
  type: "proxy",
  token_hash: "h",
  token_start: "s",
  user_id: "u1",
  repositories: "[]",
  scopes: "{}",
  ip_allow: "[]",
  created_at: 1,
  use_count: 0,
};
const table = (name: string, ...rows: object[]): object => ({ table: name, rows });
const lines = (...parts: (object | string)[]): string =>
  parts.map((part) => `${typeof part === "string" ? part : JSON.stringify(part)}\n`).join("");
const end = (rows: object = {}): object => ({ end: { rows } });
const header = (change: object = {}): object => ({ backup: { ...HEADER, ...change } });

async function read(content: string | Uint8Array): Promise<StagedBackup> {
  return StagedBackup.read(streamOf(await forged(recipient, content)), unlocking, () => undefined);
}

async function check(content: string | Uint8Array): Promise<unknown> {
  return StagedBackup.check(streamOf(await forged(recipient, content)), unlocking, () => undefined);
}

/** Faults that one row alone does not show. */
const BETWEEN_ROWS: readonly string[] = ["a key twice", "a token without its user"];
const REFUSED: readonly (readonly [string, () => string | Uint8Array, RegExp])[] = [
  ["nothing", () => "", /no end/],
  ["text", () => "hello\n", /not a backup/],
  ["other JSON", () => lines({ a: 1 }), /not a backup/],
  ["null as a line", () => lines("null"), /not a backup/],
  ["a header alone", () => lines(header()), /no end/],
  ["no header", () => lines(end()), /not a backup/],
  ["an end without a line break", () => lines(header()) + JSON.stringify(end()), /no end/],
  ["lines after the end", () => lines(header(), end(), end()), /after its end/],
  ["two headers", () => lines(header(), header(), end()), /wrong place/],
  ["a newer format", () => lines(header({ version: 2 }), end()), /format 2 is newer/],
  ["a format of text", () => lines(header({ version: "1" }), end()), /form of a backup/],
  ["more in the header", () => lines(header({ more: 1 }), end()), /form of a backup/],
  ["no migrations", () => lines(header({ migrations: [] }), end()), /form of a backup/],
  ["migrations with gaps", () => lines(header({ migrations: MIGRATION_NAMES.slice(1) }), end()), /gaps/],
  ["documents of Vault", () => lines(header({ content: "vault" }), end()), /line 1 does not have the form/],
  [
    "an unknown table",
    () => lines(header(), table("kysely_migration", { name: "x" }), end()),
    /which its version/,
  ],
  ["a table left out on purpose", () => lines(header(), table("leases"), end()), /which its version/],
  [
    "a table with a hostile name",
    () => lines(header(), table("users; DROP TABLE users", USER), end()),
    /form of/,
  ],
  ["a hostile column", () => lines(header(), table("users", { ...USER, 'x" --': 1 }), end()), /wrong value/],
  [
    "a prototype as a column",
    () => lines(header(), '{"table":"users","rows":[{"__proto__":"x"}]}', end()),
    /backup/,
  ],
  [
    "a number for text",
    () => lines(header(), table("users", { ...USER, login: 7 }), end()),
    /wrong value of login/,
  ],
  [
    "text for a number",
    () => lines(header(), table("users", { ...USER, created_at: "1" }), end()),
    /created_at/,
  ],
  ["a fraction", () => lines(header(), table("users", { ...USER, created_at: 1.5 }), end()), /created_at/],
  [
    "a number beyond 2^53",
    () => lines(header(), table("users", { ...USER, created_at: 1e300 }), end()),
    /created_at/,
  ],
  [
    "null where there must be a value",
    () => lines(header(), table("users", { ...USER, login: null }), end()),
    /login/,
  ],
  ["a missing column", () => lines(header(), table("users", { id: "u" }), end()), /without/],
  ["a character 0", () => lines(header(), table("users", { ...USER, login: "a\0" }), end()), /login/],
  [
    "an object as a value",
    () => lines(header(), table("users", { ...USER, login: {} }), end()),
    /form of a backup/,
  ],
  ["a key twice", () => lines(header(), table("users", USER, USER), end({ users: 2 })), /contradict/],
  [
    "a token without its user",
    () => lines(header(), table("tokens", TOKEN), end({ tokens: 1 })),
    /users that it does not have/,
  ],
  [
    "scopes that are not JSON",
    () =>
      lines(
        header(),
        table("users", USER),
        table("tokens", { ...TOKEN, scopes: "{" }),
        end({ users: 1, tokens: 1 }),
      ),
    /wrong value of scopes/,
  ],
  [
    "fewer rows than its end says",
    () => lines(header(), table("users", USER), end({ users: 2 })),
    /rows of table users/,
  ],
  ["a table that its end lacks", () => lines(header(), table("users", USER), end()), /rows of table users/],
  [
    "a table in two places",
    () => lines(header(), table("users", USER), table("apps"), table("users"), end({ users: 1, apps: 0 })),
    /twice/,
  ],
  [
    "a key after rows",
    () => lines(header(), table("users"), { key: { current: KEY, previous: null } }),
    /wrong place/,
  ],
  [
    "a key that is not one",
    () => lines(header(), { key: { current: "x", previous: null } }, end()),
    /form of a/,
  ],
  [
    "a variable that is not a setting",
    () => lines(header(), { configuration: { ...CONFIGURATION, environment: { LD_PRELOAD: "x" } } }, end()),
    /form of a backup/,
  ],
  [
    "too many rows in a line",
    () => lines(header(), table("users", ...Array.from({ length: 10_001 }, () => USER))),
    /form of a backup/,
  ],
  ["a line without an end", () => Buffer.alloc(17 * 2 ** 20, 32), /too long/],
  [
    "zeros that unpack to a thousand times their size",
    () => Buffer.alloc(64 * 2 ** 20, 10),
    /not a backup|times larger/,
  ],
];

describe("a file that somebody made who knows the recipient", () => {
  for (const [name, content, message] of REFUSED) {
    it(`with ${name} is refused`, async () => {
      const refusal = { code: "backup_refused", message };
      await assert.rejects(read(content()), refusal);
      // --check does not compare rows with each other.
      if (!BETWEEN_ROWS.includes(name)) await assert.rejects(check(content()), refusal);
    });
  }

  it("whose passphrase needs too much memory is refused before it is asked for", async () => {
    const salt = Buffer.alloc(16).toString("base64").replace(/=+$/, "");
    const stanza = `-> scrypt ${salt} 30\n${Buffer.alloc(32).toString("base64").replace(/=+$/, "")}\n`;
    const file = Buffer.from(`age-encryption.org/v1\n${stanza}--- ${"A".repeat(43)}\n`);
    const passphrase = async (): Promise<Secret> => assert.fail("it was asked for");
    await assert.rejects(
      StagedBackup.read(streamOf(file), { kind: "passphrase", passphrase }, () => undefined),
      { code: "backup_refused", message: /needs 2\^30 rounds, and the limit is 2\^20/ },
    );
  });

  it("of a newer version is refused with the names of its migrations", async () => {
    const content = lines(header({ program: "9.0.0", migrations: [...MIGRATION_NAMES, "0999_x"] }), end());
    await assert.rejects(read(content), { code: "database_ahead", message: /9\.0\.0.*0999_x/ });
  });

  it("that grows without an end is refused before it has filled the disk", async () => {
    const growing = lines(header()) + `{"table":"audit","rows":[]}\n`.repeat(2_000_000);
    await assert.rejects(read(growing), { code: "backup_refused", message: /times larger/ });
  });

  it("with a small valid content is read, so that the table above can fail", async () => {
    const staged = await read(
      lines(header(), table("users", USER), table("tokens", TOKEN), end({ users: 1, tokens: 1 })),
    );
    assert.deepEqual(staged.backup.rows, { users: 1, tokens: 1 });
    await staged.close();
  });

  it("writes its configuration only under two fixed names, and never over a file", async () => {
    const hostile = { ...CONFIGURATION, file: "/tmp/../etc/passwd" };
    const staged = await read(
      lines(header(), { configuration: hostile }, { key: { current: KEY, previous: null } }, end()),
    );
    const target = join(folder.path, "written");
    await writeConfiguration(staged.backup, target, false);
    assert.deepEqual((await readdir(target)).toSorted(), ["config.yaml", "secrets.env"]);
    for (const name of await readdir(target)) {
      assert.equal((await stat(join(target, name))).mode & 0o777, 0o600);
    }
    assert.equal(await readFile(join(target, "config.yaml"), "utf8"), CONFIGURATION.text);
    assert.match(
      await readFile(join(target, "secrets.env"), "utf8"),
      new RegExp(`^SVC_ENCRYPTION_KEY=${KEY}$`, "m"),
    );
    await assert.rejects(writeConfiguration(staged.backup, target, false), { code: "backup_failed" });
    // A link to nothing is there, too.
    const linked = join(folder.path, "linked");
    await mkdir(linked);
    await symlink("nothing", join(linked, "secrets.env"));
    await assert.rejects(writeConfiguration(staged.backup, linked, false), { code: "backup_failed" });
    assert.deepEqual(await readdir(linked), ["secrets.env"]);
    await staged.close();
  });
});

describe("the configuration of a backup", () => {
  const part = async (text: string, environment: Record<string, string>, withoutKey: boolean) => {
    const { writeFile } = await import("node:fs/promises");
    const path = join(folder.path, "svc.yaml");
    await writeFile(path, text);
    return configurationPart(path, environment, { withoutKey, keys: { current: KEY, previous: null } });
  };

  it("is the file, and the variables that are settings", async () => {
    const { text, environment } = await part(
      "a: 1 # b\n",
      { SVC_DATA_DIR: "/d", SVC_TOKEN: "x", HOME: "/" },
      false,
    );
    assert.deepEqual({ text, environment }, { text: "a: 1 # b\n", environment: { SVC_DATA_DIR: "/d" } });
  });

  it("without the key has it neither in the file nor in the variables", async () => {
    const text = `# kept\nencryption:\n  key: "${KEY}"\nhost: { url: https://x }\n`;
    const found = await part(text, { SVC_ENCRYPTION_KEY: KEY, SVC_DATA_DIR: "/d" }, true);
    assert.equal(JSON.stringify(found).includes(KEY), false);
    assert.match(found.text, /# kept[^]*url: https:\/\/x/);
    assert.deepEqual(found.environment, { SVC_DATA_DIR: "/d" });
  });

  it("without the key is refused if the key is in a comment, or in capitals", async () => {
    await assert.rejects(part(`# ${KEY.toUpperCase()}\n`, {}, true), {
      code: "backup_failed",
      message: /leave the key out/,
    });
  });

  it("values of variables are read back by a shell, and by systemd", async () => {
    const { run } = await import("@devplat/testkit");
    const value = 'it\'s $HOME `x` "y" \\ \\n\n-----BEGIN KEY-----';
    const target = join(folder.path, "shell");
    await writeConfiguration(
      {
        header: {} as never,
        key: undefined,
        rows: {},
        configuration: { ...CONFIGURATION, environment: { SVC_HOST_PRIVATE_KEY: value } },
      },
      target,
      false,
    );
    const script = '. "$1" && printf %s "$SVC_HOST_PRIVATE_KEY"';
    const { stdout } = await run("sh", ["-c", script, "sh", join(target, "secrets.env")]);
    assert.equal(stdout, value);
    const line = (await readFile(join(target, "secrets.env"), "utf8")).trimEnd();
    assert.equal(readBySystemd(line), value);
  });
});

/** The value of a line in double quotes, by the rules of load_env_file of systemd 252. No manager of systemd runs in these tests. */
function readBySystemd(line: string): string {
  const quoted = /="((?:[^"\\]|\\[^])*)"$/.exec(line)?.[1] ?? assert.fail(line);
  return quoted.replaceAll(/\\(["\\`$\n])/g, (_, escaped: string) => (escaped === "\n" ? "" : escaped));
}
