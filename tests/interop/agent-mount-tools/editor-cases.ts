import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "@devplat/testkit";
import { NEW, OLD, textOf, type EditingCase, type EditingPlace, type Keys } from "./editing-stand.ts";

const ENTER = "\r";
const ESCAPE = "\x1b";
const CTRL_C = "\x03";
const CTRL_O = "\x0f";
const CTRL_S = "\x13";
const CTRL_X = "\x18";

// The home of the test is below /tmp, where vim and emacs make no backups by default.

/** vim's first look at the file: its name and number of lines. */
const VIM_OPENED = /registry\.json" 4(L| lines)/;
const VIM_REPLACES: Keys = [VIM_OPENED, `:%s/${OLD}/${NEW}${ENTER}`];
const VIM_QUITS: Keys = [new RegExp(NEW), `:wq${ENTER}`];

/** Names in the folder that begin or end as those that editors make. */
async function temporaryNames({ folder }: EditingPlace): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name !== "registry.json").toSorted();
}

/** Edits by `vim -u NONE` with more settings, and quits. */
const vimCase = (does: string, settings: string, left: readonly string[]): EditingCase => ({
  row: { tool: "vim", does, result: "saved" },
  assertRow: async (place) => {
    const set = ["-u", "NONE", "-c", `set nocompatible backupskip= ${settings}`];
    await place.type("vim", [...set, "registry.json"], [VIM_REPLACES, VIM_QUITS]);
    assert.deepEqual(await temporaryNames(place), left);
    if (left.includes("registry.json~"))
      assert.equal(await readFile(join(place.folder, "registry.json~"), "utf8"), textOf(OLD));
  },
});

const NANO_REPLACES: readonly Keys[] = [
  [/Read 4 lines[^]*Help/, `${ESCAPE}r${OLD}${ENTER}${NEW}${ENTER}`],
  [/Replace this instance/, "a"],
  [/Replaced 1/, CTRL_O],
  [/to Write/, ENTER],
  [/Wrote 4 lines/, CTRL_X],
];

const emacsReplaces: Keys = [/"account"/, `${ESCAPE}xreplace-string${ENTER}${OLD}${ENTER}${NEW}${ENTER}`];
const EMACS_SAVES: readonly Keys[] = [
  [/Replaced 1/, `${CTRL_X}${CTRL_S}`],
  [/Wrote /, `${CTRL_X}${CTRL_C}`],
];
const EMACS = ["-nw", "-Q", "--eval", "(setq backup-enable-predicate (lambda (name) t))"];

export const EDITOR_CASES: readonly EditingCase[] = [
  {
    row: {
      tool: "vim",
      does: "as installed: `:w`, another change, `:w`, `:wq`, with a swap file",
      result: "each `:w` is a version",
    },
    assertRow: async (place) => {
      const between = async (): Promise<string> => {
        assert.deepEqual(await place.stored("registry"), { account: "ada", password: "between" });
        assert.equal(await readFile(place.file, "utf8"), textOf("between"));
        return `:%s/between/${NEW}${ENTER}:w${ENTER}`;
      };
      await place.type(
        "vim",
        ["registry.json"],
        [
          [VIM_OPENED, `:%s/${OLD}/between${ENTER}`],
          [
            /between/,
            async () => {
              assert.deepEqual(await temporaryNames(place), [".registry.json.swp"]);
              return `:w${ENTER}`;
            },
          ],
          [/written/, between],
          [/written/, `:wq${ENTER}`],
        ],
      );
      assert.deepEqual(await temporaryNames(place), []);
    },
  },
  vimCase("`backupcopy=yes`: copies, then writes in place", "backup backupcopy=yes", ["registry.json~"]),
  vimCase("`backupcopy=no`: renames to `registry.json~`, writes a new file", "backup backupcopy=no", [
    "registry.json~",
  ]),
  vimCase("`nobackup nowritebackup`: writes in place", "nobackup nowritebackup", []),
  vimCase("`fsync` off, no swap file", "nofsync noswapfile", []),
  {
    row: {
      tool: "vim",
      does: "text that is not JSON, `:w`",
      result: "vim shows the error; the secret stays; the text is in `.registry.json.rejected`",
    },
    assertRow: async (place) => {
      const wrong = textOf(OLD).replace("}\n", "");
      await place.type(
        "vim",
        ["-u", "NONE", "-c", "set nocompatible backupskip=", "registry.json"],
        [
          [VIM_OPENED, `Gdd:w${ENTER}`],
          [/E\d+: |error/i, `${ENTER}:q!${ENTER}`],
        ],
      );
      assert.equal(await readFile(join(place.folder, ".registry.json.rejected"), "utf8"), wrong);
      assert.deepEqual(await place.stored("registry"), { account: "ada", password: OLD });
    },
    secrets: { registry: OLD },
  },
  {
    row: {
      tool: "vim",
      does: "`:w` after the secret has changed in the store",
      result: "vim asks first; the other version stays",
    },
    assertRow: async (place) => {
      const changeAndSave = async (): Promise<string> => {
        await place.change("registry", { account: "ada", password: "theirs" });
        await until(async () => (await readFile(place.file, "utf8")) === textOf("theirs"));
        return `:%s/${OLD}/${NEW}${ENTER}:w${ENTER}`;
      };
      await place.type(
        "vim",
        ["-u", "NONE", "-c", "set nocompatible", "registry.json"],
        [
          [VIM_OPENED, changeAndSave],
          [/really want to write/, "n"],
          [/Press ENTER/, `${ENTER}:q!${ENTER}`],
        ],
      );
    },
    secrets: { registry: "theirs" },
  },
  {
    row: { tool: "vim", does: "a new file", result: "a new secret" },
    assertRow: async (place) => {
      const typed = textOf(NEW).trim().replaceAll("\n", ENTER);
      await place.type(
        "vim",
        ["-u", "NONE", "-c", "set nocompatible backupskip=", "fresh.json"],
        [[/fresh\.json/, `i${typed}${ESCAPE}:wq${ENTER}`]],
      );
    },
    secrets: { registry: OLD, fresh: NEW },
  },
  {
    row: { tool: "nano", does: "writes in place", result: "saved" },
    assertRow: async (place) => {
      await place.type("nano", ["registry.json"], NANO_REPLACES);
      assert.deepEqual(await temporaryNames(place), []);
    },
  },
  {
    row: { tool: "nano", does: "`-B`: a copy as `registry.json~`, then in place", result: "saved" },
    assertRow: async (place) => {
      await place.type("nano", ["-B", "registry.json"], NANO_REPLACES);
      assert.deepEqual(await temporaryNames(place), ["registry.json~"]);
      assert.equal(await readFile(`${place.file}~`, "utf8"), textOf(OLD));
    },
  },
  {
    row: { tool: "nano", does: "`-G`: a lock file as vim's", result: "saved" },
    assertRow: async (place) => {
      const [first, [prompt, keys] = [/^$/, ""], ...others] = NANO_REPLACES;
      assert.ok(first);
      const locked = async (): Promise<string> => {
        assert.deepEqual(await temporaryNames(place), [".registry.json.swp"]);
        return String(keys);
      };
      await place.type("nano", ["-G", "registry.json"], [first, [prompt, locked], ...others]);
      assert.deepEqual(await temporaryNames(place), []);
    },
  },
  {
    row: {
      tool: "emacs",
      does: "renames to `registry.json~`, writes a new file; lock and auto-save files",
      result: "saved",
    },
    assertRow: async (place) => {
      await place.type(
        "emacs",
        [...EMACS, "registry.json"],
        [
          emacsReplaces,
          [/Replaced 1/, `${ESCAPE}xdo-auto-save${ENTER}`],
          [
            /Auto-saving/,
            async () => {
              await until(async () => (await temporaryNames(place)).includes("#registry.json#"));
              return `${CTRL_X}${CTRL_S}`;
            },
          ],
          [/Wrote /, `${CTRL_X}${CTRL_C}`],
        ],
      );
      assert.deepEqual(await temporaryNames(place), ["registry.json~"]);
      assert.equal(await readFile(`${place.file}~`, "utf8"), textOf(OLD));
    },
  },
  {
    row: { tool: "emacs", does: "`backup-by-copying`", result: "saved" },
    assertRow: async (place) => {
      const set = ["--eval", "(setq backup-by-copying t)"];
      await place.type("emacs", [...EMACS, ...set, "registry.json"], [emacsReplaces, ...EMACS_SAVES]);
      assert.deepEqual(await temporaryNames(place), ["registry.json~"]);
    },
  },
  {
    row: { tool: "emacs", does: "`file-precious-flag`: writes `tmp…`, renames it", result: "saved" },
    assertRow: async (place) => {
      const set = ["--eval", "(setq file-precious-flag t make-backup-files nil)"];
      await place.type("emacs", [...EMACS, ...set, "registry.json"], [emacsReplaces, ...EMACS_SAVES]);
      assert.deepEqual(await temporaryNames(place), []);
    },
  },
];
