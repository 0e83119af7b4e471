import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { MAX_CLIPBOARD_BYTES } from "../../desktop/clipboard.ts";
import { ACTION_KINDS, type ActionKind } from "../../config/sections/action-kinds.ts";
import { actionFields, actionForm, parseAction, type PeerAction } from "./action.ts";
import { parseForm } from "./form.ts";

const NOTICE = { level: "info", title: "t" };

function parse(kind: ActionKind, fields: Record<string, string>) {
  return parseAction(kind, new Map(Object.entries(fields)));
}
function accepted(kind: ActionKind, fields: Record<string, string>): PeerAction {
  const parsed = parse(kind, fields);
  assert.ok("action" in parsed, JSON.stringify(parsed));
  return parsed.action;
}

describe("parseAction", () => {
  const faults: [string, ActionKind, Record<string, string>, RegExp][] = [
    ["browse: no url", "browse", {}, /the URL is missing/],
    ["browse: other schemes are rejected", "browse", { url: "file:///hunter2" }, /not an http or https/],
    ["browse: no host", "browse", { url: "https://" }, /no host/],
    ["browse: embedded user:password", "browse", { url: "http://a:hunter2@b/" }, /user name or password/],
    [
      "notify: level must be one of the four",
      "notify",
      { ...NOTICE, level: "hunter2" },
      /level must be one of: info, warning, error, attention/,
    ],
    ["notify: level is case-sensitive", "notify", { ...NOTICE, level: "Info" }, /level/],
    ["notify: no level", "notify", { title: "t" }, /level/],
    ["notify: title is required", "notify", { level: "info" }, /title must not be empty/],
    [
      "notify: title of control characters alone",
      "notify",
      { ...NOTICE, title: "\u0007\n" },
      /title must not be empty/,
    ],
    ["notify: title over its limit", "notify", { ...NOTICE, title: "x".repeat(1025) }, /1 KiB/],
    ["notify: body over its limit", "notify", { ...NOTICE, body: "x".repeat(8193) }, /8 KiB/],
    [
      "notify: action_url has browse's allowlist (scheme)",
      "notify",
      { ...NOTICE, action_url: "file:///hunter2" },
      /action URL is not/,
    ],
    [
      "notify: action_url has browse's allowlist (credentials)",
      "notify",
      { ...NOTICE, action_url: "http://a:hunter2@b/" },
      /action URL holds/,
    ],
    ["clipboard: empty", "clipboard", { text: "" }, /empty/],
    ["clipboard: no text", "clipboard", {}, /empty/],
    ["clipboard: over 64 KiB", "clipboard", { text: "x".repeat(MAX_CLIPBOARD_BYTES + 1) }, /64 KiB/],
    [
      "clipboard: over 64 KiB in bytes",
      "clipboard",
      { text: "ü".repeat(MAX_CLIPBOARD_BYTES / 2 + 1) },
      /64 KiB/,
    ],
    ["clipboard: an interior NUL", "clipboard", { text: "hunter2\0b" }, /NUL/],
    ["clipboard: not Unicode", "clipboard", { text: "\ud800" }, /UTF-8/],
  ];
  for (const [name, kind, fields, fault] of faults) {
    it(`${name}: refused without quoting it [agent 29.10]`, () => {
      const parsed = parse(kind, fields);
      assert.ok("fault" in parsed);
      assert.match(parsed.fault, fault);
      assert.doesNotMatch(parsed.fault, /hunter2/);
    });
  }

  it("a field that is not UTF-8 is refused, an unknown field is ignored", () => {
    assert.ok("fault" in parseAction("clipboard", new Map([["text", undefined]])));
    assert.ok("action" in parse("clipboard", { text: "a", color: "blue" }));
    assert.ok(
      "action" in
        parseAction(
          "clipboard",
          new Map([
            ["text", "a"],
            ["color", undefined],
          ]),
        ),
    );
  });

  it("takes the four levels, and a body and an action_url or none [agent 29.7]", () => {
    for (const level of ["info", "warning", "error", "attention"])
      assert.deepEqual(accepted("notify", { level, title: "t" }), {
        kind: "notify",
        notification: { level, title: "t" },
      });
    assert.deepEqual(accepted("notify", { ...NOTICE, body: "b", action_url: "http://h/" }), {
      kind: "notify",
      notification: { level: "info", title: "t", body: "b", actionUrl: "http://h/" },
    });
  });

  it("a clipboard text of exactly 64 KiB is taken [agent 19.1 29.10]", () => {
    const text = "x".repeat(MAX_CLIPBOARD_BYTES);
    const action = accepted("clipboard", { text });
    assert.ok(action.kind === "clipboard" && action.text.reveal() === text);
  });
});

describe("actionForm", () => {
  const actions: [ActionKind, Record<string, string>][] = [
    ["browse", { url: "https://example.com/?a=1&b=+%20" }],
    ["notify", { level: "warning", title: " a\n<b>", body: "c & d=e+", action_url: "https://h/?x=1&y" }],
    ["notify", { level: "info", title: "t" }],
    ["clipboard", { text: "a\r\nb\t&=+%ü\uFEFF\n" }],
  ];
  for (const [kind, fields] of actions) {
    it(`a peer reads the ${kind} that was sent, every byte of it`, () => {
      const action = accepted(kind, fields);
      const form = parseForm(Buffer.from(actionForm(action))) ?? new Map<string, string>();
      assert.deepEqual(Object.fromEntries(form), fields);
      const again = parseAction(kind, form);
      assert.ok("action" in again);
      assert.equal(actionForm(again.action), actionForm(action));
    });
  }
});

describe("parseAction with random bytes", () => {
  it("gives a fault, or an action that a peer reads in the same way", () => {
    const name = fc.constantFrom(
      "url=",
      "level=",
      "title=",
      "body=",
      "action_url=",
      "text=",
      "&",
      "info",
      "http://h/",
    );
    const bytes = fc.oneof(
      name.map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 4 }).map((array) => Buffer.from(array)),
    );
    fc.assert(
      fc.property(fc.constantFrom(...ACTION_KINDS), fc.array(bytes), (kind, pieces) => {
        const fields = parseForm(Buffer.concat(pieces));
        if (fields === undefined) return;
        const parsed = parseAction(kind, fields);
        if ("fault" in parsed) return;
        const form = actionForm(parsed.action);
        const again = parseAction(kind, parseForm(Buffer.from(form)) ?? new Map<string, string>());
        assert.ok("action" in again);
        assert.equal(actionForm(again.action), form);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("actionFields", () => {
  it("log lines hold level and lengths, never the words", () => {
    const notice = accepted("notify", {
      ...NOTICE,
      title: "hunter2",
      body: "ü",
      action_url: "http://h/hunter2",
    });
    assert.deepEqual(actionFields(notice), {
      action: "notify",
      level: "info",
      lengths: { title: 7, body: 2, action_url: 16 },
    });
    assert.deepEqual(actionFields(accepted("clipboard", { text: "hunter2" })), {
      action: "clipboard",
      length: 7,
    });
    const browse = accepted("browse", { url: "https://example.com/?code=hunter2" });
    assert.deepEqual(actionFields(browse), { action: "browse", host: "example.com" });
  });
});
