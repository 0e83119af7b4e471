import assert from "node:assert/strict";
import { it } from "node:test";
import { readSources, readWorkspaces } from "./sources.ts";

/** Files that may write to the terminal by themselves, and why. */
const OWN_WAY: Readonly<Record<string, string>> = {
  "packages/base/src/terminal/output.ts": "it is the way",
  "packages/base/src/logger.ts": "escapes each field of a line",
  "apps/agent/src/commands/secrets.ts": "a value for a program is what it is",
  "apps/agent/src/commands/git-credential.ts":
    "git reads values as they are; one with a line break is refused",
  "apps/agent/src/commands/config/registry.ts": "a registry file, and YAML made of one, for another program",
  "apps/agent/src/commands/shell-hook.ts": "a script of the program's own",
  "apps/agent/src/commands/login-check.ts": "a line in colour, around text that is escaped",
  "packages/cli/src/prompt.ts": "a question of the program's own",
};

it("what the programs print goes through the terminal-safe printer [svc 10.14]", () => {
  const writes = readSources(readWorkspaces())
    .filter(({ isTest, path }) => !isTest && /^(?:apps|packages)\//.test(path))
    .filter(({ text }) => /process\.std(?:out|err)\.write|\bconsole\./.test(text))
    .map(({ path }) => path);
  assert.deepEqual(
    writes.filter((path) => !(path in OWN_WAY)),
    [],
  );
  assert.deepEqual(
    Object.keys(OWN_WAY).filter((path) => !writes.includes(path)),
    [],
    "an exception that nobody needs",
  );
});
