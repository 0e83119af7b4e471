import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseConfigDocument } from "@devplat/config/document";
import fc from "fast-check";
import { EVERY_SECTION } from "./every-section.test-kit.ts";
import { parseConfig } from "./load.ts";
import { configSchema } from "./schema.ts";
import { readRegistryFile, writeRegistryFile, type RegistryKey } from "./registry-file.ts";
import { REGISTRY_ROOT, fromRegistry, toRegistry } from "./registry-values.ts";

const parse = (text: string): Record<string, unknown> =>
  parseConfigDocument("c.yaml", text).value as Record<string, unknown>;
const roundTrip = (value: Record<string, unknown>): unknown =>
  fromRegistry(readRegistryFile(REGISTRY_ROOT, writeRegistryFile(REGISTRY_ROOT, toRegistry(value))));

describe("reg-export and reg-import", () => {
  it("every section comes back as it was [agent 3.31]", () => {
    parseConfig({ path: "c.yaml", text: EVERY_SECTION });
    const missing = Object.keys(configSchema.shape).filter((section) => !(section in parse(EVERY_SECTION)));
    assert.deepEqual(missing, [], "a section that this test does not have");
    assert.deepEqual(roundTrip(parse(EVERY_SECTION)), parse(EVERY_SECTION));
  });

  it("rules of any text come back as they were [agent 3.31]", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 60 }).filter((each) => !each.includes("\0"));
    fc.assert(
      fc.property(
        text,
        fc.array(
          text.filter((each) => each !== ""),
          { maxLength: 5 },
        ),
        (one, many) => {
          const value = { web: { login_text: one, editable_paths: many } };
          assert.deepEqual(roundTrip(value), value);
        },
      ),
    );
  });

  it("takes line and paragraph separators of Unicode as text", () => {
    for (const text of ["\u2028", "a\u2029b", "\\\u2028", "\u0085", "\u2028x\r\ny"]) {
      const value = { web: { login_text: text, editable_paths: [text] } };
      assert.deepEqual(roundTrip(value), value, JSON.stringify(text));
    }
  });

  it("is UTF-16LE with BOM and CRLF; lists are hex(7), texts with line breaks hex(1) [agent 3.32]", () => {
    const file = writeRegistryFile(
      REGISTRY_ROOT,
      toRegistry({ a: "x\ny", b: ["p", "q"], c: true, d: 'q"\\' }),
    );
    assert.deepEqual([...file.subarray(0, 2)], [0xff, 0xfe]);
    const text = file.subarray(2).toString("utf16le");
    assert.doesNotMatch(text, /[^\r]\n/);
    assert.match(text, /^Windows Registry Editor Version 5\.00\r\n/);
    assert.match(text, /"a"=hex\(1\):78,00,0a,00,79,00,00,00\r\n/);
    assert.match(text, /"b"=hex\(7\):70,00,00,00,71,00,00,00,00,00\r\n/);
    assert.match(text, /"c"=dword:00000001\r\n/);
    assert.match(text, /"d"="q\\"\\\\"\r\n/);
    assert.ok(Math.max(...text.split("\r\n").map((line) => line.length)) <= 80);
  });

  const head = `Windows Registry Editor Version 5.00\n\n[${REGISTRY_ROOT}\\web]\n"enabled"=dword:1\n"login_text"="x"\n`;
  const read = (more: string): RegistryKey => readRegistryFile(REGISTRY_ROOT, Buffer.from(head + more));

  it("deletions of a value and of a key apply in order [agent 3.32]", () => {
    const value = `[${REGISTRY_ROOT}\\web]\n"login_text"=-\n`;
    assert.deepEqual(fromRegistry(read(value)), { web: { enabled: true } });
    assert.deepEqual(fromRegistry(read(`[-${REGISTRY_ROOT}\\web]\n`)), {});
    assert.deepEqual(fromRegistry(read("[-HKLM\\SOFTWARE\\Policies]\n")), {});
    const again = `[-${REGISTRY_ROOT}\\web]\n[${REGISTRY_ROOT}\\web]\n"enabled"=dword:0\n`;
    assert.deepEqual(fromRegistry(read(again)), { web: { enabled: false } });
  });

  it("takes comments, continued lines, short roots, and passes over other keys", () => {
    const more = `; note\n[HKLM\\SOFTWARE\\Policies\\daemon\\sync]\n"allowed_targets"=hex(7):7e,00,\\\n  00,00,00,00\n[HKEY_CURRENT_USER\\x]\n"y"="z"\n`;
    assert.deepEqual(fromRegistry(read(more)), {
      web: { enabled: true, login_text: "x" },
      sync: { allowed_targets: ["~"] },
    });
  });

  const wrong: [string, string, RegExp][] = [
    ["a line that is neither", "hunter2\n", /^AgentError: line 6: expected a key in brackets or a value$/],
    ["an unknown type", '"x"=hex(b):00\n', /^AgentError: line 6: expected a text/],
    ["a text without its end", '"x"="hunter2\n', /^AgentError: line 6: expected a text/],
  ];
  for (const [name, more, message] of wrong) {
    it(`refuses ${name}, without quoting it [agent 3.33]`, () => assert.throws(() => read(more), message));
  }

  it("refuses another file", () => {
    assert.throws(
      () => readRegistryFile(REGISTRY_ROOT, Buffer.from("a: b\n")),
      /this is not a registry file/,
    );
  });
});
