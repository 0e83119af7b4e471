import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { CommandTable } from "./command.ts";
import { completionFile } from "./completion.ts";

const TABLE: CommandTable = {
  name: "prog",
  description: "Is for tests.",
  commands: [
    { name: "migrate status", summary: "Show the state." },
    { name: "version", summary: "Print the version." },
  ],
  globalOptions: {},
};

/** Types into an interactive zsh that loads completions from a folder, and prints the line after the key. */
const TYPE = `
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($1 \\$fpath); autoload -U compinit; compinit -u -d $1/dump; prog() { print -r -- \\"<\\$*>\\"; }; print LOA''DED"
zpty -r shell shown '*LOADED*'
zpty -w -n shell $'prog mig\\t\\n'
zpty -r shell shown '*<*>*'
print -r -- "$shown"
zpty -d shell
`;

describe("completionFile", () => {
  it("completes in zsh with the first key that is pressed", () => {
    const folder = mkdtempSync(join(tmpdir(), "completion-"));
    try {
      writeFileSync(join(folder, "_prog"), completionFile(TABLE, "zsh"));
      writeFileSync(join(folder, "type"), TYPE);
      const { stdout, stderr } = spawnSync("zsh", ["-f", join(folder, "type"), folder], {
        encoding: "utf8",
        timeout: 60_000,
        killSignal: "SIGKILL",
      });
      assert.match(stdout, /<migrate>/, stderr);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
