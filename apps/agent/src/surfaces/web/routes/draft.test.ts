import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { SecretStoreError, parseFields, printJson, type SecretStore } from "@devplat/secret-store";
import { startTestServer, testStore, type Answer, type TestServer } from "../server.test-kit.ts";

const PATH = "/ui/secrets/tools/s";
const SAVE = { action: "save", version: "1", field: '"a"', name: "a", text: "typed & kept" };

function post(
  server: TestServer,
  path: string,
  form: Record<string, string>,
  headers: Record<string, string> = { Origin: server.url },
): Promise<Answer> {
  return server.send(path, {
    method: "POST",
    headers: { "Content-Type": "application/x-www-form-urlencoded", ...headers },
    body: new URLSearchParams(form).toString(),
  });
}

function assertGivenBack({ status, body }: Answer, expected: number, reason: RegExp): void {
  assert.equal(status, expected);
  assert.match(body, reason);
  assert.match(body, /<textarea[^>]*>\ntyped &amp; kept<\/textarea>/);
  assert.match(body, /name="version" value="1"/);
  assert.match(body, />\s*Try again\s*</);
}

/** A store whose requests fail while it is told to, behind a secret with one field. */
async function stand(): Promise<{
  server: TestServer;
  faults: { read?: SecretStoreError; write?: SecretStoreError; afterWrite?: SecretStoreError };
  [Symbol.asyncDispose](): Promise<void>;
}> {
  const folder = await mkdtemp(join(tmpdir(), "agent-draft-"));
  const real = await testStore(folder);
  const faults: Awaited<ReturnType<typeof stand>>["faults"] = {};
  const fail = (fault: SecretStoreError | undefined): void => {
    if (fault !== undefined) throw fault;
  };
  const store: SecretStore = Object.assign(Object.create(real) as SecretStore, {
    driver: real.driver,
    list: async (path: string) => (fail(faults.read), await real.list(path)),
    read: async (...args: Parameters<SecretStore["read"]>) => (fail(faults.read), await real.read(...args)),
    write: async (...args: Parameters<SecretStore["write"]>) => {
      fail(faults.write);
      const written = await real.write(...args);
      fail(faults.afterWrite);
      return written;
    },
  });
  await real.write("tools/s", parseFields('{"a":"1","b":"2"}'), { ifVersion: 0 });
  const server = await startTestServer({ store, editablePaths: ["tools"], token: "s.token" });
  return {
    server,
    faults,
    [Symbol.asyncDispose]: async () => {
      await server.stop();
      await real.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const stored = async ({ store }: TestServer): Promise<string> =>
  printJson((await store.read("tools/s")).fields);

describe("a form of a secret whose action fails gives the typed text back", () => {
  for (const [code, status, reason] of [
    ["unavailable", 502, /cannot answer now/],
    ["sealed", 502, /cannot answer now/],
    ["denied", 403, /does not allow this/],
    ["unauthenticated", 401, /href="\/" target="_blank" rel="noopener">Sign in in a second tab</],
    ["too_large", 413, /larger than 1 MiB/],
    ["unsupported_number", 400, /cannot keep a number/],
    ["unsupported_text", 400, /cannot keep a text/],
    ["refused", 422, /answers that it does not take this/],
  ] as const) {
    for (const step of ["read", "write"] as const) {
      it(`${code} at the ${step}: ${status} [agent 35.7]`, async () => {
        await using stood = await stand();
        const { server, faults } = stood;
        faults[step] = new SecretStoreError(code, "words of the store");
        const refused = await post(server, PATH, SAVE);
        assertGivenBack(refused, status, reason);
        assert.doesNotMatch(refused.body, /words of the store/);
        delete faults[step];
        if (code === "unauthenticated") {
          assertGivenBack(await post(server, PATH, SAVE), 401, reason);
          server.view.set({ status: { authenticated: true } });
        }
        assert.equal((await post(server, PATH, { ...SAVE, again: "true" })).status, 303);
        assert.equal(await stored(server), '{"a":"typed & kept","b":"2"}');
      });
    }
  }

  it("a fault of our own: 500 [agent 35.7]", async () => {
    await using stood = await stand();
    stood.faults.read = new Error("ours") as SecretStoreError;
    assertGivenBack(await post(stood.server, PATH, SAVE), 500, /a fault of its own/);
  });

  it("a field name that is taken, unusable, or gone: 409 and 422", async () => {
    await using stood = await stand();
    const { server } = stood;
    assertGivenBack(await post(server, PATH, { ...SAVE, name: "b" }), 409, /Another field has this name/);
    assertGivenBack(await post(server, PATH, { ...SAVE, name: " a" }), 422, /field name cannot/);
    assertGivenBack(await post(server, PATH, { ...SAVE, field: '"z"' }), 422, /cannot be edited here/);
    assert.equal(await stored(server), '{"a":"1","b":"2"}');
  });

  it("a secret that has become read-only: 403", async () => {
    await using server = await startTestServer({ editablePaths: [] });
    assertGivenBack(await post(server, PATH, SAVE), 403, /only below the configured editable paths/);
  });

  it("a browser session that has ended: 401, and nothing of the site is shown [agent 35.8]", async () => {
    await using server = await startTestServer({ editablePaths: ["tools"], requireUnlock: true });
    const refused = await post(server, PATH, SAVE);
    assertGivenBack(refused, 401, /Run <code>agent open<\/code>/);
    assert.doesNotMatch(refused.body, /aria-label="Sections"|vault\.example/);
    const large = await post(server, PATH, { ...SAVE, text: "x".repeat(1024 * 1024) });
    assert.equal(large.status, 401);
    assert.ok(large.body.length < 10_000, "a large form of somebody who is not let in is not read");
  });

  it("the name of a new secret, also while the store is away [agent 35.9]", async () => {
    await using stood = await stand();
    const { server, faults } = stood;
    const begin = (name: string): Promise<Answer> =>
      post(server, "/ui/secrets/tools/", { action: "new", name });
    for (const [name, status] of [
      ["one/two", 422],
      ["s", 409],
    ] as const) {
      const refused = await begin(name);
      assert.equal(refused.status, status);
      assert.ok(refused.body.includes(`value="${name}"`), name);
    }
    faults.read = new SecretStoreError("unavailable", "down");
    const away = await begin("fresh");
    assert.equal(away.status, 502);
    assert.match(away.body, /value="fresh"/);
    assert.match(away.body, />\s*Try again\s*</);
  });

  it("Try again after a save whose response was lost finds it, and saves nothing twice [agent 35.11]", async () => {
    await using stood = await stand();
    const { server, faults } = stood;
    faults.afterWrite = new SecretStoreError("unavailable", "no answer in time");
    assertGivenBack(await post(server, PATH, SAVE), 502, /cannot answer now/);
    delete faults.afterWrite;
    assert.equal((await post(server, PATH, { ...SAVE, again: "true" })).status, 303);
    assert.equal((await server.store.read("tools/s")).version, 2);
    // Somebody else's change is one all the same.
    const other = { ...SAVE, text: "other", again: "true" };
    assert.equal((await post(server, PATH, other)).status, 409);
  });

  it("bytes that are not UTF-8: 400, and nothing is stored in their place [agent 35.24]", async () => {
    await using stood = await stand();
    const { server } = stood;
    for (const bytes of ["%ff", "%ed%a0%80", "%c3"]) {
      const body = `${new URLSearchParams(SAVE).toString()}${bytes}`;
      const refused = await server.send(PATH, { method: "POST", headers: { Origin: server.url }, body });
      assert.equal(refused.status, 400);
      assert.match(refused.body, /its encoding is broken/);
    }
    assert.equal(await stored(server), '{"a":"1","b":"2"}');
    assert.equal(
      (await post(server, PATH, { ...SAVE, text: "\uFFFD" })).status,
      303,
      "a character like any other",
    );
    assert.equal(await stored(server), '{"a":"\uFFFD","b":"2"}');
  });

  it("nothing is returned to a page of another user [agent 35.13]", async () => {
    await using stood = await stand();
    for (const origin of ["null", "https://evil.test"]) {
      const refused = await post(stood.server, PATH, SAVE, { Origin: origin });
      assert.equal(refused.status, 403);
      assert.doesNotMatch(refused.body, /typed/);
    }
  });

  it("nothing of it is in the log or the status [agent 35.13]", async () => {
    await using stood = await stand();
    const { server, faults } = stood;
    faults.write = new SecretStoreError("unavailable", "down");
    await post(server, PATH, SAVE);
    const kept = `${server.log.join("\n")}${JSON.stringify(server.view.status())}`;
    assert.doesNotMatch(kept, /typed/);
    assert.doesNotMatch((await server.send(PATH)).body, /typed/);
  });
});
