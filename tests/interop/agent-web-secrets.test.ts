import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseFields } from "@devplat/secret-store";
import type { Answer } from "../../apps/agent/src/surfaces/web/server.test-kit.ts";
import { OWNED, siteOf, STANDS } from "./agent-web/secrets-site.ts";

for (const stand of STANDS) {
  describe(`the pages of secrets, store ${stand.name}`, () => {
    const site = siteOf(stand);

    // Secret lifecycle

    /** A change over the JSON API, with its token. */
    async function change(method: string, path: string, json?: string): Promise<Answer> {
      const { token } = JSON.parse((await site.server.send("/api/v1/csrf")).body) as { token: string };
      return await site.server.send(`/api/v1/secrets/${path}`, {
        method,
        headers: { "X-CSRF-Token": token, "Content-Type": "application/json" },
        ...(json !== undefined && { body: `{"fields":${json}}` }),
      });
    }

    it("lifecycle: absent, POST inside an editable path: exists; 409 if it exists [agent 23.1]", async () => {
      assert.equal((await change("POST", "tools/posted", '{"a":1}')).status, 201);
      assert.equal((await change("POST", "tools/posted", '{"a":2}')).status, 409);
      assert.equal(await site.stored("tools/posted"), '{"a":1}');
    });

    it("lifecycle: exists, PUT inside an editable path: replaced; 404 if absent [agent 23.4]", async () => {
      const path = await site.put('{"a":1,"b":2}');
      assert.equal((await change("PUT", path, '{"c":"3"}')).status, 200);
      assert.equal(await site.stored(path), '{"c":"3"}');
      assert.equal((await change("PUT", "tools/never", '{"a":"1"}')).status, 404);
    });

    it("lifecycle: exists, DELETE over the API: absent, every version removed [agent 23.7]", async () => {
      const path = await site.put('{"a":1}');
      await change("PUT", path, '{"a":2}');
      assert.equal((await change("DELETE", path)).status, 200);
      await assert.rejects(site.server.store.read(path, { version: 1 }), { code: "not_found" });
      await assert.rejects(site.server.store.metadata(path), { code: "not_found" });
    });

    it("lifecycle: outside an editable path POST, PUT, DELETE are 403 without effect [agent 23.8]", async () => {
      await site.server.store.write("other/kept", parseFields('{"a":1}'));
      for (const method of ["POST", "PUT", "DELETE"]) {
        const json = method === "DELETE" ? undefined : "{}";
        assert.equal((await change(method, "other/kept", json)).status, 403, method);
      }
      assert.equal(await site.stored("other/kept"), '{"a":1}');
    });

    it("field names with line breaks or surrounding whitespace are carried by the API [agent 24.16]", async () => {
      // In the order in which Vault gives names back.
      const json = `{" c ":"2","a\\nb":"1"}`;
      assert.equal((await change("POST", "tools/odd-names", json)).status, 201);
      assert.equal(await site.stored("tools/odd-names"), json);
    });

    it("half of a surrogate pair is returned unchanged, or is 400 with the field name [agent 35.22]", async () => {
      const bodies = [
        ['{"a":"x\\ud800"}', "a"],
        ['{"b\\udc00":"x"}', "b\\udc00"],
        ['{"c":[{"d":["\\ud83d."]}]}', "c"],
        ['{"e":[{"\\ud800":1}]}', "e"],
      ] as const;
      for (const [at, [json, field]] of bodies.entries()) {
        const path = `tools/half${at}`;
        const answer = await change("POST", path, json);
        if (stand.name === "embedded") {
          assert.equal(answer.status, 201);
          assert.equal(await site.stored(path), json);
          continue;
        }
        assert.equal(answer.status, 400, answer.body);
        const problem = JSON.parse(answer.body) as { code: string; hint: string };
        assert.equal(problem.code, "unsupported_text");
        assert.ok(problem.hint.includes(`"${field}"`), problem.hint);
        await assert.rejects(site.server.store.read(path), { code: "not_found" });
      }
    });

    it("lifecycle: absent, UI first field added, nothing exists there: the secret exists [agent 23.2]", async () => {
      assert.match((await site.pages.get("tools/first")).body, /The first field creates the secret/);
      const created = await site.pages.post("tools/first", {
        action: "add",
        version: "0",
        name: "a",
        text: "1",
      });
      assert.equal(created.status, 303);
      assert.equal(created.headers.location, "/ui/secrets/tools/first?done=created");
      assert.equal(await site.stored("tools/first"), '{"a":"1"}');
    });

    it("lifecycle: two simultaneous creates cannot both succeed [agent 23.3]", async () => {
      const create = (text: string): Promise<Answer> =>
        site.pages.post("tools/race", { action: "add", version: "0", name: "a", text });
      const answers = await Promise.all([create("x"), create("y")]);
      assert.deepEqual(answers.map(({ status }) => String(status)).toSorted(), ["303", "409"]);
      assert.equal((await site.server.store.read("tools/race")).version, 1);
    });

    it("lifecycle: UI row save, version is current: new version, page reloads [agent 23.5]", async () => {
      const path = await site.put('{"a":"1","b":"2"}');
      const saved = await site.pages.save(path, 1, "a", "a", "new");
      assert.equal(saved.status, 303);
      assert.equal(saved.headers.location, `/ui/secrets/${path}`);
      assert.equal(await site.stored(path), '{"a":"new","b":"2"}');
      assert.equal((await site.server.store.read(path)).version, 2);
    });

    it("lifecycle: UI row save, version is stale: refused, current content shown [agent 23.6]", async () => {
      const path = await site.put('{"a":"1"}');
      await site.server.store.write(path, parseFields('{"a":"theirs","fresh":"x"}'), { ifVersion: 1 });
      const stale = await site.pages.save(path, 1, "a", "a", "typed-by-me");
      assert.equal(stale.status, 409);
      assert.match(stale.body, /has changed since/);
      assert.match(stale.body, /version 2/);
      assert.match(stale.body, /fresh/);
      assert.doesNotMatch(stale.body, /typed-by-me|theirs/);
      assert.equal(await site.stored(path), '{"a":"theirs","fresh":"x"}');
    });

    it("lifecycle: a row of a deleted secret is stale, and does not bring it back [agent 23.6]", async () => {
      const path = await site.put('{"a":"1"}');
      await site.server.store.delete(path);
      assert.equal((await site.pages.save(path, 1, "a", "a", "x")).status, 409);
      await assert.rejects(site.server.store.read(path), { code: "not_found" });
    });

    it("lifecycle: DELETE in the UI removes every version [agent 23.7]", async () => {
      const path = await site.put('{"a":"1"}');
      await site.server.store.write(path, parseFields('{"a":"2"}'), { ifVersion: 1 });
      const gone = await site.pages.post(path, { action: "delete", confirm: path.slice("tools/".length) });
      assert.equal(gone.status, 303);
      await assert.rejects(site.server.store.read(path, { version: 1 }), { code: "not_found" });
      await assert.rejects(site.server.store.metadata(path), { code: "not_found" });
    });

    // Secret browsing and editing rules

    it("rule 1: values are hidden by default, ?reveal=true reveals [agent 28.1]", async () => {
      const path = await site.put('{"password":"hunter2"}');
      const hidden = await site.pages.get(path);
      assert.match(hidden.body, /password/);
      assert.doesNotMatch(hidden.body, /hunter2/);
      const revealed = await site.pages.get(`${path}?reveal=true`);
      assert.match(revealed.body, /hunter2/);
      // Where scripting is off the page leaves by itself.
      assert.match(
        revealed.body,
        new RegExp(`<noscript><meta http-equiv="refresh" content="30; url=/ui/secrets/${path}"`),
      );
    });

    it("rule 1: copy sends the value to this host's clipboard, not to the browser [agent 28.4]", async () => {
      const path = await site.put('{"multi":"a\\r\\nb","n":1.10}');
      for (const [field, text] of [
        ["multi", "a\r\nb"],
        ["n", stand.name === "Vault" ? /^1\.10?$/ : "1.10"],
      ] as const) {
        const answer = await site.pages.post(path, { action: "copy", field: JSON.stringify(field) });
        assert.equal(answer.status, 303);
        assert.equal(answer.body, "");
        if (typeof text === "string") assert.equal(site.server.copied.at(-1), text);
        else assert.match(site.server.copied.at(-1) ?? "", text);
      }
    });

    it("rule 2: editable subtrees are listed in the sidebar although they do not exist [agent 28.5]", async () => {
      const { body } = await site.pages.get("");
      assert.match(body, /href="\/ui\/secrets\/team\/shared\/"/);
    });

    it("rule 2: a failed listing counts as empty in a configured subtree, else an error [agent 28.6]", async () => {
      const inside = await site.pages.get("team/shared/");
      assert.equal(inside.status, 200);
      assert.match(inside.body, /Nothing is stored here/);
      assert.equal((await site.pages.get("nowhere/")).status, 404);
    });

    it("rule 3: the pencil reveals that field's value only; the log has the path only [agent 28.8]", async () => {
      const path = await site.put('{"one":"value-one","two":"value-two"}');
      const row = await site.pages.get(`${path}?part=edit&field=%22one%22`, { "HX-Request": "true" });
      assert.equal(row.status, 200);
      assert.match(row.body, /<textarea[^>]*>\nvalue-one<\/textarea>/);
      assert.match(row.body, /name="version" value="1"/);
      assert.doesNotMatch(row.body, /value-two/);
      await site.pages.save(path, 1, "one", "renamed-one", "value-new");
      const log = site.server.log.join("\n");
      assert.match(log, new RegExp(`"path":"${path}"`));
      assert.doesNotMatch(log, /value-one|value-new|"one"|renamed-one/);
    });

    it("rule 5: a new secret's name is one segment; a nested one is refused [agent 28.12]", async () => {
      const begin = (name: string): Promise<Answer> => site.pages.post("tools/", { action: "new", name });
      assert.equal((await begin("fresh")).headers.location, "/ui/secrets/tools/fresh");
      for (const name of ["a/b", "/a", "a/", "", ".", "..", "a\\b", "%2f"]) {
        assert.equal((await begin(name)).status, 422, name);
      }
      const path = await site.put('{"a":"1"}');
      assert.equal((await begin(path.slice("tools/".length))).status, 409);
    });

    it("rule 6: the field can be renamed, and the old name is removed [agent 28.13]", async () => {
      const path = await site.put('{"a":"1","b":"2","c":"3"}');
      assert.equal((await site.pages.save(path, 1, "b", "renamed", "2")).status, 303);
      assert.equal(
        await site.stored(path),
        stand.name === "Vault" ? '{"a":"1","c":"3","renamed":"2"}' : '{"a":"1","renamed":"2","c":"3"}',
      );
    });

    it("rule 6: a field can be removed, the last one cannot [agent 28.14]", async () => {
      const path = await site.put('{"a":"1","b":"2"}');
      const remove = (version: string, field: string): Promise<Answer> =>
        site.pages.post(path, { action: "remove", version, field: JSON.stringify(field) });
      assert.equal((await remove("1", "a")).status, 303);
      const refused = await remove("2", "b");
      assert.equal(refused.status, 422);
      assert.match(refused.body, /last field/);
      assert.equal(await site.stored(path), '{"b":"2"}');
    });

    it("rule 6: a blank row adds a field; adding or renaming onto a name is refused [agent 28.16]", async () => {
      const path = await site.put('{"a":"1","b":"2"}');
      assert.equal((await site.pages.save(path, 1, "a", "b", "1")).status, 409);
      const add = (name: string): Promise<Answer> =>
        site.pages.post(path, { action: "add", version: "1", name, text: "typed" });
      assert.equal((await add("a")).status, 409);
      for (const name of ["", " x", "x "]) assert.equal((await add(name)).status, 422);
      assert.equal(await site.stored(path), '{"a":"1","b":"2"}');
      assert.equal((await add("c")).status, 303);
      assert.equal(await site.stored(path), '{"a":"1","b":"2","c":"typed"}');
    });

    it("rule 7: an unedited value is written back unchanged: number, structure, CRLF [agent 28.17]", async () => {
      const path = await site.put('{"crlf":"a\\r\\nb","list":[1,{"x":null}],"n":42,"t":true}');
      let version = 1;
      for (const [field, text] of [
        ["crlf", "a\nb"],
        ["list", '[1,{"x":null}]'],
        ["n", "42"],
        ["t", "true"],
      ] as const) {
        assert.equal((await site.pages.save(path, version++, field, field, text)).status, 303);
      }
      assert.equal(await site.stored(path), '{"crlf":"a\\r\\nb","list":[1,{"x":null}],"n":42,"t":true}');
      assert.equal((await site.server.store.read(path)).version, 5);
    });

    it("rule 7: an edited structure becomes a string, an edited multi-line value has LF [agent 28.18]", async () => {
      const path = await site.put('{"crlf":"a\\r\\nb","list":[1]}');
      await site.pages.save(path, 1, "list", "list", "[1,2]");
      await site.pages.save(path, 2, "crlf", "crlf", "a\nb\nc");
      assert.equal(await site.stored(path), '{"crlf":"a\\nb\\nc","list":"[1,2]"}');
    });

    it("rule 8: a name with a line break or outer whitespace has Delete but no pencil [agent 28.19]", async () => {
      const path = await site.put('{" lead":"1","br\\nk":"2","fine":"3"}');
      const { body } = await site.pages.get(path);
      assert.equal(body.match(/aria-label="Edit /g)?.length, 1);
      assert.equal(body.match(/Not editable here/g)?.length, 2);
      const refused = await site.pages.save(path, 1, " lead", "lead", "1");
      assert.equal(refused.status, 422);
      const confirm = path.slice("tools/".length);
      assert.equal((await site.pages.post(path, { action: "delete", confirm })).status, 303);
    });

    it("rule 9: a secret of an enrolment is read-only, before it has run and after [agent 28.20]", async () => {
      const form = { action: "add", version: "0", name: "a", text: "1" };
      const missing = await site.pages.get(OWNED[0] ?? "");
      assert.equal(missing.status, 404);
      assert.match(missing.body, /an enrolment writes this secret/);
      assert.equal((await site.pages.post(OWNED[0] ?? "", form)).status, 403);
      assert.equal((await site.pages.post("tools/", { action: "new", name: "enrolled" })).status, 403);
      await site.server.store.write(OWNED[0] ?? "", parseFields('{"a":"1"}'), { ifVersion: 0 });
      const { body } = await site.pages.get(OWNED[0] ?? "");
      assert.doesNotMatch(body, /aria-label="Edit |Delete this secret/);
      for (const action of ["save", "remove", "delete", "restore"]) {
        assert.equal(
          (await site.pages.post(OWNED[0] ?? "", { ...form, action, confirm: "enrolled" })).status,
          403,
          action,
        );
      }
    });

    it("rule 9: nothing outside configured subtrees is editable, nor is the root [agent 28.21]", async () => {
      for (const path of ["loose", "team/x", "toolsbox"]) {
        assert.equal(
          (await site.pages.post(path, { action: "add", version: "0", name: "a", text: "1" })).status,
          403,
        );
        await assert.rejects(site.server.store.read(path), { code: "not_found" });
        assert.equal((await site.pages.get(path)).status, 404);
      }
      await site.server.store.write("loose", parseFields('{"a":"1"}'), { ifVersion: 0 });
      const { body } = await site.pages.get("loose");
      assert.match(body, /outside <code>web\.editable_paths<\/code>/);
      assert.doesNotMatch(body, /aria-label="Edit |Add a field|Delete this secret/);
      assert.equal((await site.pages.get("loose?part=edit&field=%22a%22")).status, 403);
      assert.equal((await site.pages.post("", { action: "new", name: "x" })).status, 403);
      assert.doesNotMatch((await site.pages.get("")).body, /New secret/);
    });

    it("rule 10: Delete requires the typed name; a wrong one shows the page again [agent 28.22]", async () => {
      const path = await site.put('{"a":"1"}');
      for (const confirm of ["", "x", path, `${path.slice("tools/".length)} `]) {
        const refused = await site.pages.post(path, { action: "delete", confirm });
        assert.equal(refused.status, 409);
        assert.match(refused.body, /Not deleted/);
      }
      assert.equal(await site.stored(path), '{"a":"1"}');
    });

    it("a save without a version that can be read is 422 [agent 35.6]", async () => {
      const path = await site.put('{"a":"1"}');
      for (const version of ["", "x", "-1", "1.0", "99999999999"]) {
        const form = { action: "save", version, field: '"a"', name: "a", text: "2" };
        assert.equal((await site.pages.post(path, form)).status, 422, version);
      }
      assert.equal(await site.stored(path), '{"a":"1"}');
    });

    it("history lists versions, shows an old one hidden, restores by compare-and-set [agent 26.11]", async () => {
      const path = await site.put('{"a":"old-value"}');
      await site.server.store.write(path, parseFields('{"a":"new-value","b":"2"}'), { ifVersion: 1 });
      const history = await site.pages.get(`${path}?history=true`);
      assert.match(history.body, /Restore version 1/);
      const old = await site.pages.get(`${path}?version=1`);
      assert.match(old.body, /This is an old version/);
      assert.doesNotMatch(old.body, /old-value|aria-label="Edit /);
      assert.match((await site.pages.get(`${path}?version=1&reveal=true`)).body, /old-value/);
      assert.equal((await site.pages.post(path, { action: "restore", version: "1", from: "1" })).status, 409);
      assert.equal((await site.pages.post(path, { action: "restore", version: "2", from: "9" })).status, 409);
      assert.equal((await site.pages.post(path, { action: "restore", version: "2", from: "1" })).status, 303);
      assert.equal(await site.stored(path), '{"a":"old-value"}');
      assert.equal((await site.server.store.read(path)).version, 3);
    });

    it("search finds names in every folder, never values [agent 26.12]", async () => {
      await site.server.store.write("tools/deep/Needle-1", parseFields('{"a":"1"}'), { ifVersion: 0 });
      await site.put('{"hay":"needle"}');
      const { body } = await site.pages.get("?q=NEEDLE");
      assert.match(body, /1 secret\s+found/);
      assert.match(body, /href="\/ui\/secrets\/tools\/deep\/Needle-1"/);
    });

    it("a folder opens in place with its own entries only", async () => {
      await site.server.store.write("tools/fold/inner", parseFields('{"a":"1"}'), { ifVersion: 0 });
      const part = await site.pages.get("tools/fold/?part=tree", { "HX-Request": "true" });
      assert.match(part.body, /^<li><a href="\/ui\/secrets\/tools\/fold\/inner" ?>inner<\/a><\/li>\s*$/);
    });

    it("restoring a version without fields is refused [agent 28.15]", async () => {
      const path = await site.put("{}");
      await site.server.store.write(path, parseFields('{"a":"1"}'), { ifVersion: 1 });
      assert.equal((await site.pages.post(path, { action: "restore", version: "2", from: "1" })).status, 422);
      assert.equal(await site.stored(path), '{"a":"1"}');
    });
  });
}
