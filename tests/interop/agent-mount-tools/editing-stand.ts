import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { run, runAtTerminal, tempFolder, until, type Finished } from "@devplat/testkit";
import type { MountStand, VaultStandStore } from "../agent-mount-stand.ts";
import type { Row } from "./table.ts";

/** Value that a case finds in the secret. */
export const OLD = "first";
/** Value that a case saves. */
export const NEW = "second-4c1f";

/** Text of the document of the secret that every case edits, in the order in which Vault gives fields. */
export const textOf = (password: string): string =>
  `{\n  "account": "ada",\n  "password": "${password}"\n}\n`;

/** Keys to type when this text shows up. */
export type Keys = readonly [RegExp, string | (() => string | Promise<string>)];

/** Where a case runs: a folder on the mount with one secret, `registry`. */
export interface EditingPlace {
  /** The folder on the mount. */
  readonly folder: string;
  /** The file of the secret on the mount. */
  readonly file: string;
  /** An empty folder on a disk, the home of the tool. */
  readonly disk: string;
  /** Runs a command in the folder on the mount. */
  readonly run: (command: string, ...args: readonly string[]) => Promise<Finished>;
  /** Runs a command in the folder on the mount and insists on success. @returns standard output */
  readonly ok: (command: string, ...args: readonly string[]) => Promise<string>;
  /** Runs an editor at a terminal, in the folder on the mount, and insists on success. @returns the screen */
  readonly type: (command: string, args: readonly string[], keys: readonly Keys[]) => Promise<string>;
  /** Fields of a secret of the folder in the store, by an independent client. */
  readonly stored: (name: string) => Promise<unknown>;
  /** Changes the secret in the store, past the daemon. */
  readonly change: (name: string, fields: Readonly<Record<string, string>>) => Promise<void>;
}

export interface EditingCase {
  readonly row: Row;
  readonly assertRow: (place: EditingPlace) => Promise<void>;
  /** The tool deletes the secret and makes it again, so that its older versions are gone. */
  readonly isMadeAgain?: boolean;
  /** Secrets that are in the folder afterwards. Default: `registry` with the new value. */
  readonly secrets?: Readonly<Record<string, string>>;
}

/** Stores the secret of a case. */
export async function prepareEditing(stand: MountStand, name: string): Promise<void> {
  await stand.store(`${name}/registry`, JSON.stringify({ account: "ada", password: OLD }));
}

/** Runs a case in a folder of the mount, and compares mount and store with what the case should have saved. */
export async function assertEditing(
  stand: MountStand,
  store: VaultStandStore,
  name: string,
  given: EditingCase,
): Promise<void> {
  const folder = stand.at(name);
  const file = join(folder, "registry.json");
  await until(async () => (await readFile(file, "utf8")) === textOf(OLD));
  const disk = await tempFolder("agent-mount-editor");
  // Emacs would ask a terminal of the type xterm about itself, and wait 2 s for the answer.
  const env = {
    TERM: "linux",
    PATH: process.env["PATH"],
    HOME: disk.path,
    LC_ALL: "C.UTF-8",
    EMAIL: "ada@example.com",
  };
  const start = (command: string, ...args: readonly string[]): Promise<Finished> =>
    run(command, args, { cwd: folder, env, timeoutMs: 30_000 });
  try {
    await given.assertRow({
      folder,
      file,
      disk: disk.path,
      run: start,
      ok: async (command, ...args) => {
        const { code, stdout, stderr } = await start(command, ...args);
        assert.equal(code, 0, `${command} ${args.join(" ")}: ${stderr}`);
        return stdout;
      },
      type: async (command, args, keys) => {
        const shell = ["-c", 'stty rows 40 columns 120; cd "$0" && exec "$@"', folder, command, ...args];
        const { code, shown } = await runAtTerminal("sh", shell, { env, answers: keys, enter: "" });
        assert.equal(code, 0, shown);
        return shown;
      },
      stored: async (secret) => (await store.read(`${name}/${secret}`))?.fields,
      change: (secret, fields) => stand.store(`${name}/${secret}`, JSON.stringify(fields)),
    });
    const secrets = Object.entries(given.secrets ?? { registry: NEW });
    for (const [secret, password] of secrets) {
      assert.equal(await readFile(join(folder, `${secret}.json`), "utf8"), textOf(password), secret);
      // A new file may take 2 s from its last write.
      let fields: unknown;
      await until(
        async () => {
          fields = (await store.read(`${name}/${secret}`))?.fields;
          return isDeepStrictEqual(fields, { account: "ada", password });
        },
        () => `${secret} is ${JSON.stringify(fields)}`,
      );
    }
    const version = (await store.read(`${name}/registry`))?.version ?? 0;
    const isFirst = given.isMadeAgain === true || given.secrets?.["registry"] === OLD;
    assert.equal(version === 1, isFirst, `version ${version}`);
    // No temporary name became a secret, not even later.
    const names = secrets.map(([secret]) => secret).toSorted();
    assert.deepEqual(await store.list(name), names);
    const files = (await readdir(folder)).filter((each) => /^[^.#].*\.json$/.test(each));
    assert.deepEqual(
      files.toSorted(),
      names.map((each) => `${each}.json`),
    );
  } finally {
    await disk.remove();
  }
}
