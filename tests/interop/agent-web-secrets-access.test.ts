import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseFields, SecretStoreError, type SecretStore } from "@devplat/secret-store";
import { startTestServer } from "../../apps/agent/src/surfaces/web/server.test-kit.ts";
import { EDITABLE, Pages, siteOf, STANDS } from "./agent-web/secrets-site.ts";

for (const stand of STANDS) {
  describe(`access to the pages of secrets, store ${stand.name}`, () => {
    const site = siteOf(stand);

    it("a page that another site opens shows no value, and the own page does [agent 28.2]", async () => {
      const path = await site.put('{"a":"on-the-screen"}');
      for (const query of [
        "?reveal=true",
        "?version=1&reveal=true",
        '?part=value&field="a"',
        '?part=edit&field="a"',
      ]) {
        for (const from of ["cross-site", "same-site"]) {
          const { body } = await site.pages.get(`${path}${query}`, { "Sec-Fetch-Site": from });
          assert.doesNotMatch(body, /on-the-screen/, `${query} ${from}`);
        }
        for (const from of ["none", "same-origin"]) {
          const { body } = await site.pages.get(`${path}${query}`, { "Sec-Fetch-Site": from });
          assert.match(body, /on-the-screen/, `${query} ${from}`);
        }
      }
      const lines = site.server.log.length;
      const shown = await site.pages.get(`${path}?reveal=true`, { "Sec-Fetch-Site": "cross-site" });
      assert.equal(shown.status, 200);
      assert.match(shown.body, /another site/);
      assert.equal(site.server.log.length, lines, "no reveal is logged");
    });

    it("a form of another page is refused: no Origin, null, another port", async () => {
      const path = await site.put('{"a":"1"}');
      const form = { action: "delete", confirm: path.slice("tools/".length) };
      for (const origin of ["null", "http://127.0.0.1:1", "https://evil.test"]) {
        assert.equal((await site.pages.post(path, form, origin)).status, 403);
      }
      const bare = await site.server.send(`/ui/secrets/${path}`, {
        method: "POST",
        body: new URLSearchParams(form).toString(),
      });
      assert.equal(bare.status, 403);
      assert.equal(await site.stored(path), '{"a":"1"}');
    });

    for (const path of ["a/../b", "a/%2e%2e/b", "a//b", "a%2fb", "a%5cb", "a%00", "a%0a", "%ff", "a%252fb"]) {
      it(`paths are never normalised: ${path} is 400`, async () => {
        assert.equal((await site.pages.get(path)).status, 400);
        assert.equal(
          (await site.pages.post(path, { action: "add", version: "0", name: "a", text: "1" })).status,
          400,
        );
      });
    }

    it("names and values that are markup are shown as text", async () => {
      const name = `<img src=x onerror=alert(1)>"'&`;
      const path = `tools/${name}`;
      await site.server.store.write(
        path,
        parseFields(JSON.stringify({ [name]: `</textarea><script>${name}` })),
        {
          ifVersion: 0,
        },
      );
      const url = encodeURIComponent(name);
      const field = encodeURIComponent(JSON.stringify(name));
      for (const target of [
        "tools/",
        `tools/${url}?reveal=true`,
        `tools/${url}?part=edit&field=${field}`,
        `tools/${url}?history=true`,
        `?q=${url}`,
        "tools/?part=tree",
      ]) {
        const { body, status } = await site.pages.get(target);
        assert.equal(status, 200, target);
        assert.match(body, /&lt;img/);
        assert.doesNotMatch(body, /<img src=x|<\/textarea><script>/);
      }
    });
  });
}

describe("the pages of secrets, when the store refuses or does not answer", () => {
  for (const [fault, status, line] of [
    ["denied", 403, "Could not be listed: the store does not allow it."],
    ["unavailable", 502, "Could not be listed: the store does not answer."],
    ["sealed", 502, "Could not be listed: the store is sealed."],
  ] as const) {
    it(`rule 2: ${fault} counts as empty in a configured subtree, elsewhere ${status} [agent 26.17 28.7]`, async () => {
      const failing = (): Promise<never> => Promise.reject(new SecretStoreError(fault, "words of the store"));
      const store = { list: failing, read: failing } as unknown as SecretStore;
      await using server = await startTestServer({ store, editablePaths: EDITABLE });
      const pages = new Pages(server);
      const inside = await pages.get("tools/");
      assert.equal(inside.status, 200);
      assert.ok(inside.body.includes(line), "it says that it may not be empty");
      assert.doesNotMatch(inside.body, /Nothing is stored here/);
      assert.match(inside.body, /New secret/);
      assert.match(inside.body, /The secrets cannot be listed/);
      const tree = await pages.get("tools/?part=tree", { "HX-Request": "true" });
      assert.match(tree.body, new RegExp(line));
      for (const path of ["", "elsewhere/", "tools/x"]) {
        const refused = await pages.get(path);
        assert.equal(refused.status, status, path);
        assert.doesNotMatch(refused.body, /words of the store/);
        assert.match(refused.body, /aria-label="Sections"/, "one is still in the site");
        assert.equal(refused.body.includes("Try again"), fault !== "denied", path);
        // The result of the page's own request is in its header, and in the status.
        assert.equal(refused.body.includes("Store unreachable"), fault !== "denied", path);
      }
      assert.equal(server.view.status().store.reachable, fault === "denied");
    });
  }
});

describe("the pages of secrets, signed out", () => {
  it("a page leads to the start, a part and a form are 401 [agent 26.14]", async () => {
    await using server = await startTestServer({ editablePaths: EDITABLE });
    server.view.set({ status: { authenticated: false } });
    const pages = new Pages(server);
    for (const path of ["", "tools/x", "tools/x?reveal=true"]) {
      const away = await pages.get(path);
      assert.equal(away.status, 303);
      assert.equal(away.headers.location, "/");
    }
    assert.equal((await pages.get("tools/x?part=value&field=%22a%22", { "HX-Request": "true" })).status, 401);
    assert.equal(
      (await pages.post("tools/x", { action: "add", version: "0", name: "a", text: "1" })).status,
      401,
    );
  });
});

describe("copying the store token", () => {
  it("puts it on the clipboard of this host, and the browser never gets it [agent 26.4]", async () => {
    await using server = await startTestServer({ token: "s.token" });
    assert.match((await server.send("/ui/")).body, /Copy token/);
    const copied = await server.send("/ui/copy-token", { method: "POST", headers: { Origin: server.url } });
    assert.equal(copied.headers.location, "/ui/?done=token_copied");
    assert.deepEqual(server.copied, ["s.token"]);
    const page = await server.send("/ui/?done=token_copied");
    assert.match(page.body, /on the clipboard of this host/);
    assert.doesNotMatch(page.body, /s\.token/);
    assert.doesNotMatch((await server.send("/ui/?done=__proto__")).body, /Object/);
    assert.doesNotMatch(server.log.join("\n"), /s\.token/);
  });

  it("says so where there is no clipboard", async () => {
    await using server = await startTestServer({
      token: "s.token",
      clipboard: { copy: async () => "no_program" },
    });
    const refused = await server.send("/ui/copy-token", { method: "POST", headers: { Origin: server.url } });
    assert.equal(refused.status, 502);
    assert.match(refused.body, /finds no clipboard here/);
  });

  it("is not offered with the embedded store, which has none", async () => {
    await using server = await startTestServer();
    const { auth } = server.view.status();
    server.view.set({ status: { auth: { ...auth, source: "embedded" } } });
    assert.doesNotMatch((await server.send("/ui/")).body, /Copy token/);
  });
});

describe("/ui/config/", () => {
  it("shows the configuration in force with its defaults and where it is from [agent 26.9]", async () => {
    await using server = await startTestServer({
      configuration: "store: { driver: embedded }\nsync: { interval: 90s }",
    });
    const { body } = await server.send("/ui/config/");
    assert.match(body, /interval: 1m30s/);
    assert.match(body, /\/home\/ada\/\.config\/daemon\/config\.yaml/);
    assert.match(body, /listen: 127\.0\.0\.1:8200/);
  });
});
