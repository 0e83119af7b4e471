import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { run } from "@devplat/testkit";
import fc from "fast-check";
import { SHELL_KINDS, loginShellKind, setVariable } from "./shell-line.ts";

/** A value with every character that a shell could take for syntax. */
const HOSTILE = String.raw`/run/a b'c"d\e$(id)${"`id`"};f&g|h*i?j~k!l#m{n}[o]<p>q` + "%r\\'s";

describe("setVariable", () => {
  for (const shell of ["sh", "bash", "zsh", "fish"]) {
    it(`${shell} passes on exactly the value`, async () => {
      const script = (value: string): string =>
        `${setVariable(SHELL_KINDS[shell] ?? "sh", "SSH_AUTH_SOCK", value)}\nprintenv SSH_AUTH_SOCK`;
      const env = { PATH: process.env["PATH"] };
      const { stdout } = await run(shell, ["-c", script(HOSTILE)], { env });
      assert.equal(stdout, `${HOSTILE}\n`);
    });
  }

  it("fish, csh and PowerShell get their own quoting", () => {
    const value = String.raw`/a'b\c!`;
    assert.equal(setVariable("fish", "S", value), String.raw`set -gx S '/a\'b\\c!';`);
    assert.equal(setVariable("csh", "S", value), String.raw`setenv S '/a'\''b\c\!';`);
    assert.equal(setVariable("powershell", "S", value), String.raw`$env:S = '/a''b\c!'`);
  });

  it("a POSIX line has the value as one word", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), (value) => {
        const line = setVariable("sh", "S", value);
        assert.equal(
          line
            .slice(2, -"; export S;".length)
            .replaceAll(String.raw`'\''`, "")
            .split("'").length,
          3,
        );
      }),
    );
  });
});

describe("loginShellKind", () => {
  it("is that of SHELL, and sh for a shell that is not known", () => {
    assert.equal(loginShellKind({ SHELL: "/usr/bin/fish" }, "linux"), "fish");
    assert.equal(loginShellKind({ SHELL: "/bin/tcsh" }, "linux"), "csh");
    assert.equal(loginShellKind({ SHELL: "/usr/bin/zsh" }, "linux"), "sh");
    assert.equal(loginShellKind({ SHELL: "/opt/nu" }, "linux"), "sh");
    assert.equal(loginShellKind({}, "linux"), "sh");
    assert.equal(loginShellKind({}, "win32"), "powershell");
  });
});
