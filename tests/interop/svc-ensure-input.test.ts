import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { git, repositories } from "@devplat/testkit";
import { MAIN, assertProblem, ensure, parsed, post } from "./svc-ensure-stand.ts";
import { startStand, type Stand } from "./svc-git-stand.ts";

describe("bad input of POST svc/ensure", { timeout: 300_000 }, () => {
  let stand: Stand;
  const name = "r";
  before(async () => {
    stand = await startStand({ listed: [name] });
    await stand.codeHost.addRepository("org", name, { build: (dir) => repositories.linear(dir) });
  });
  beforeEach(() => stand.codeHost.resetCalls());
  after(() => stand.stop());

  const oid = "a".repeat(40);
  const body = (value: unknown): string => JSON.stringify(value);
  for (const [title, text, status, code, pointer] of [
    ["no JSON", "{", 400, "malformed_body"],
    ["not UTF-8", Buffer.from([0x22, 0xff, 0x22]), 400, "malformed_body"],
    ["no object", "[]", 400, "malformed_body"],
    ["an empty body", "", 400, "malformed_body"],
    [
      "a repeated ref",
      `{"refs":{"${MAIN}":"${oid}","${MAIN}":"${oid}"}}`,
      400,
      "repeated_field",
      `/refs/refs~1heads~1main`,
    ],
    ["an unknown field", body({ refs: { [MAIN]: oid }, wait: 1 }), 400, "unknown_fields", "/wait"],
    ["no refs", body({}), 422, "invalid_fields", "/refs"],
    ["empty refs", body({ refs: {} }), 422, "invalid_fields", "/refs"],
    ["refs in a list", body({ refs: [MAIN] }), 422, "invalid_fields", "/refs"],
    ["a short id", body({ refs: { [MAIN]: "abc123" } }), 422, "invalid_fields", "/refs/refs~1heads~1main"],
    [
      "an id in capitals",
      body({ refs: { [MAIN]: "A".repeat(40) } }),
      422,
      "invalid_fields",
      "/refs/refs~1heads~1main",
    ],
    [
      "an id that is no string",
      body({ refs: { [MAIN]: 1 } }),
      422,
      "invalid_fields",
      "/refs/refs~1heads~1main",
    ],
    [
      "ids of two lengths",
      body({ refs: { [MAIN]: oid, HEAD: "b".repeat(64) } }),
      422,
      "invalid_fields",
      "/refs",
    ],
    ["a short name", body({ refs: { main: oid } }), 422, "invalid_fields", "/refs/main"],
    [
      "a name that git forbids",
      body({ refs: { "refs/heads/a..b": oid } }),
      422,
      "invalid_fields",
      "/refs/refs~1heads~1a..b",
    ],
    [
      "a name with a line break",
      body({ refs: { "refs/heads/a\nref-prefix refs/": oid } }),
      422,
      "invalid_fields",
    ],
    [
      "a name that is too long",
      body({ refs: { [`refs/heads/${"a".repeat(1000)}`]: oid } }),
      422,
      "invalid_fields",
    ],
    ["a prototype's name", `{"refs":{"__proto__":"${oid}"}}`, 422, "invalid_fields", "/refs/__proto__"],
    [
      "too many refs",
      body({ refs: Object.fromEntries(Array.from({ length: 257 }, (_, at) => [`refs/heads/${at}`, oid])) }),
      422,
      "invalid_fields",
      "/refs",
    ],
    ["a timeout over 60", body({ refs: { [MAIN]: oid }, timeout: 61 }), 422, "invalid_fields", "/timeout"],
    ["a negative timeout", body({ refs: { [MAIN]: oid }, timeout: -1 }), 422, "invalid_fields", "/timeout"],
    ["a broken timeout", body({ refs: { [MAIN]: oid }, timeout: 1.5 }), 422, "invalid_fields", "/timeout"],
    ["more than 64 KiB", body({ refs: { [MAIN]: oid }, pad: "x".repeat(65_536) }), 413, "body_too_large"],
  ] as const) {
    it(`${title}: ${status}, and the code host is not asked`, async () => {
      const answer = await post(stand, `org/${name}`, text);
      assertProblem(answer, status, code);
      const errors = (parsed(answer)["errors"] ?? []) as readonly { pointer: string }[];
      if (pointer !== undefined)
        assert.ok(
          errors.some((each) => each.pointer === pointer),
          answer.text,
        );
      assert.equal(stand.codeHost.calls.length, 0);
    });
  }

  it("messages name the ref as the caller wrote it", async () => {
    const detailOf = async (refs: string): Promise<unknown> =>
      parsed(await post(stand, `org/${name}`, `{"refs":${refs}}`))["detail"];
    assert.equal(
      await detailOf(`{"${MAIN}":"abc123"}`),
      `refs["${MAIN}"]: the value must be an object id of 40 or 64 lower-case hexadecimal digits`,
    );
    assert.equal(
      await detailOf(`{"${MAIN}":"${oid}","__proto__":"${oid}"}`),
      "refs.__proto__: the name must be HEAD or a full ref name, such as refs/heads/main",
    );
    assert.equal(
      await detailOf(`{"${MAIN}":"${oid}","${MAIN}":"${oid}"}`),
      `Field "refs["${MAIN}"]": given more than once`,
    );
    assert.equal(await detailOf("[]"), "refs: must be an object");
  });

  it("a long name is cut in the problem document", async () => {
    const long = "x".repeat(60_000);
    for (const text of [
      body({ refs: { [`refs/heads/${long}`]: oid } }),
      body({ refs: { [MAIN]: oid }, [long]: 1 }),
      `{"${long}":1,"${long}":2}`,
    ]) {
      const answer = await post(stand, `org/${name}`, text);
      assert.ok(answer.status >= 400 && answer.status < 500, String(answer.status));
      assert.ok(answer.text.length < 2000, `${answer.text.length} characters`);
    }
  });

  it("many refs that moved are not all in the message", async () => {
    const refs = Object.fromEntries(
      Array.from({ length: 200 }, (_, at) => [`refs/heads/${"b".repeat(200)}${at}`, oid]),
    );
    const answer = await ensure(stand, `org/${name}`, refs);
    assertProblem(answer, 409, "ref_moved");
    assert.equal(Object.keys(parsed(answer)["refs"] as object).length, 200);
    const detail = String(parsed(answer)["detail"]);
    assert.match(detail, /, and 190 more$/);
    assert.ok(detail.length < 2000, `${detail.length} characters`);
  });

  it("an id of another object format: 409 with the id of the repository's own", async () => {
    const { path } = await stand.codeHost.addRepository("org", "formats", {
      build: (dir) => repositories.linear(dir),
    });
    const tip = await git(["-C", path, "rev-parse", MAIN]);
    stand.list("org", "formats");
    const answer = await ensure(stand, "org/formats", { [MAIN]: "12".repeat(32) });
    assertProblem(answer, 409, "ref_moved");
    assert.deepEqual(parsed(answer)["refs"], { [MAIN]: tip });
    assert.equal(stand.upstream("fetch"), 0);
  });

  it("an id of another object format, and a repository that is not listed: 404", async () => {
    await stand.codeHost.addRepository("org", "unlisted", { build: (dir) => repositories.linear(dir) });
    assertProblem(await ensure(stand, "org/unlisted", { [MAIN]: "12".repeat(32) }), 404, "not_found");
  });

  it("another media type: 415", async () => {
    const answer = await post(stand, `org/${name}`, "{}", { "Content-Type": "text/plain" });
    assertProblem(answer, 415, "not_json");
  });

  it("GET: 405", async () => {
    const answer = await stand.ask(`/org/${name}/svc/ensure`);
    assertProblem(answer, 405, "method_not_allowed");
    assert.equal(answer.headers["allow"], "POST");
  });

  it("the cache is off: 404", async () => {
    const off = await startStand({ cacheEnabled: false });
    try {
      assertProblem(await ensure(off, "org/r", { [MAIN]: oid }), 404, "no_such_path");
    } finally {
      await off.stop();
    }
  });
});
