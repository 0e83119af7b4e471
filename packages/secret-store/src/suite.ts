import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleepFor } from "node:timers/promises";
import { MAX_DOCUMENT_BYTES, type FieldValue, type Fields, type SecretStore } from "./contract.ts";
import { SecretStoreError, type SecretStoreErrorCode } from "./errors.ts";
import { MAX_JSON_DEPTH, parseFields, printJson } from "./json.ts";

/** Back end of a driver for the suite. All its stores use the same back end. */
export interface SuiteBackend {
  /** Opens a store with its own connection on the root of this user. Each root is empty at first. */
  open(username: string): Promise<SecretStore>;
  stop(): Promise<void>;
  /** With `float64`, the back end reads numbers as 64-bit floats. The driver must refuse numbers that this would change. */
  readonly numbers: "text" | "float64";
  /** With false, the back end replaces half of a surrogate pair by U+FFFD. The driver must refuse it. Default true. */
  readonly halfSurrogates?: boolean;
  /** Whether the back end reports changes. Default true. */
  readonly events?: boolean;
}

/** Asserts that the action rejects with a SecretStoreError of this code. */
export async function assertRejectsWith(code: SecretStoreErrorCode, action: Promise<unknown>): Promise<void> {
  await assert.rejects(action, (error: unknown) => {
    assert.ok(error instanceof SecretStoreError, `not a SecretStoreError: ${String(error)}`);
    assert.equal(error.code, code, error.message);
    return true;
  });
}

export function fieldsOf(entries: Readonly<Record<string, FieldValue>>): Fields {
  return new Map(Object.entries(entries));
}

/** Tests that every {@link SecretStore} must pass. */
export function secretStoreSuite(driver: string, start: () => Promise<SuiteBackend>): void {
  describe(`SecretStore: ${driver}`, () => {
    let backend: SuiteBackend;
    let store: SecretStore;
    let users = 0;
    before(async () => {
      backend = await start();
      store = await backend.open("ada");
    });
    after(async () => {
      await store.close();
      await backend.stop();
    });
    /** Opens a store on its own root. */
    async function fresh(): Promise<SecretStore> {
      users++;
      return backend.open(`user${users}`);
    }

    it("read gives the written document, with version 1 and the time of writing", async () => {
      const from = Date.now() - 2_000;
      assert.deepEqual(await store.write("first", fieldsOf({ user: "u", password: "p\r\n\t\u{1f511}" })), {
        version: 1,
      });
      const document = await store.read("first");
      assert.deepEqual(document.fields, fieldsOf({ password: "p\r\n\t\u{1f511}", user: "u" }));
      assert.equal(document.version, 1);
      assert.ok(
        document.createdAt >= from && document.createdAt <= Date.now() + 2_000,
        String(document.createdAt),
      );
    });

    for (const number of [
      "9223372036854775808",
      "1e400",
      "1.10",
      "-0",
      "0",
      "9007199254740991",
      "-12.5e-3",
    ]) {
      it(`the number ${number} keeps its text, or its write is refused`, async () => {
        const text = `{"deep":{"list":[${number}]},"map":{"number":"7"},"n":${number}}`;
        const path = `number/${number}`;
        const back = async (): Promise<string> =>
          printJson((await store.read(path)).fields, { sortKeys: true });
        if (backend.numbers === "text") {
          await store.write(path, parseFields(text));
          assert.equal(await back(), text);
        } else if (number === "9223372036854775808" || number === "1e400") {
          await assertRejectsWith("unsupported_number", store.write(path, parseFields(text)));
          await assertRejectsWith("not_found", store.read(path));
        } else {
          await store.write(path, parseFields(text));
          // The same number, in the form of Go's encoding/json.
          const form = number === "-0" ? "-0" : String(Number(number));
          assert.equal(await back(), text.replaceAll(number, form));
        }
      });
    }

    for (const [place, text] of [
      ["a value", String.raw`{"a":"x\ud800"}`],
      ["a field's name", String.raw`{"a\udc00":"x"}`],
      ["a nested value", String.raw`{"a":[{"b":["\ud83d."]}]}`],
      ["a nested key", String.raw`{"a":[{"\ud800":1}]}`],
    ] as const) {
      it(`half of a surrogate pair in ${place} is kept, or its write is refused`, async () => {
        const path = `half/${place}`;
        if (backend.halfSurrogates === false) {
          await assert.rejects(store.write(path, parseFields(text)), (error: unknown) => {
            assert.ok(error instanceof SecretStoreError);
            assert.equal(error.code, "unsupported_text");
            assert.match(error.hint ?? "", /^The field "a/);
            assert.doesNotMatch(error.message, /"a["\\]/, "the message goes into logs");
            return true;
          });
          await assertRejectsWith("not_found", store.read(path));
        } else {
          await store.write(path, parseFields(text));
          assert.equal(printJson((await store.read(path)).fields), text);
        }
      });
    }

    it("a deeply nested document is kept, and one over the limit is refused", async () => {
      const nested = (depth: number): Fields =>
        parseFields(`{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`);
      await store.write("deep", nested(100));
      assert.deepEqual((await store.read("deep")).fields, nested(100));
      let value: FieldValue = [];
      for (let depth = 0; depth < MAX_JSON_DEPTH; depth++) value = [value];
      await assertRejectsWith("too_large", store.write("deep", fieldsOf({ value })));
    });

    it("every type of value and any field name is kept", async () => {
      const text =
        '{"":"empty name"," edge ":"spaces","__proto__":{"constructor":1},"a\\nb":null,"f":false,"l":[],"o":{},"t":true}';
      await store.write("types", parseFields(text));
      assert.equal(printJson((await store.read("types")).fields, { sortKeys: true }), text);
    });

    it("a document without fields can be written", async () => {
      await store.write("hollow", new Map());
      assert.equal((await store.read("hollow")).fields.size, 0);
    });

    it("write replaces the complete document and counts versions", async () => {
      await store.write("replaced", fieldsOf({ a: "1", b: "2" }));
      assert.deepEqual(await store.write("replaced", fieldsOf({ b: "3" })), { version: 2 });
      assert.deepEqual((await store.read("replaced")).fields, fieldsOf({ b: "3" }));
      assert.deepEqual((await store.read("replaced", { version: 1 })).fields, fieldsOf({ a: "1", b: "2" }));
      await assertRejectsWith("not_found", store.read("replaced", { version: 9 }));
    });

    it("metadata gives the readable versions, oldest first, and no values", async () => {
      for (const value of ["x", "y", "z"]) await store.write("history", fieldsOf({ value }));
      const metadata = await store.metadata("history");
      assert.equal(metadata.version, 3);
      assert.deepEqual(
        metadata.versions.map(({ version }) => version),
        [1, 2, 3],
      );
      assert.equal(metadata.versions.at(-1)?.createdAt, metadata.createdAt);
      assert.deepEqual((await store.read("history")).createdAt, metadata.createdAt);
    });

    it("ten versions are kept, older ones are not found", async () => {
      for (let count = 1; count <= 12; count++) await store.write("long", fieldsOf({ count: String(count) }));
      const { versions } = await store.metadata("long");
      assert.deepEqual([versions[0]?.version, versions.at(-1)?.version], [3, 12]);
      await assertRejectsWith("not_found", store.read("long", { version: 2 }));
    });

    it("a write with ifVersion is a version conflict unless it is the newest version", async () => {
      await store.write("cas", fieldsOf({ v: "1" }), { ifVersion: 0 });
      assert.deepEqual(await store.write("cas", fieldsOf({ v: "2" }), { ifVersion: 1 }), { version: 2 });
      await assertRejectsWith("version_conflict", store.write("cas", fieldsOf({ v: "3" }), { ifVersion: 1 }));
      await assertRejectsWith("version_conflict", store.write("cas", fieldsOf({ v: "3" }), { ifVersion: 7 }));
      await assertRejectsWith("version_conflict", store.write("cas", fieldsOf({ v: "3" }), { ifVersion: 0 }));
      assert.deepEqual((await store.read("cas")).fields, fieldsOf({ v: "2" }));
      await assertRejectsWith("version_conflict", store.write("absent", fieldsOf({}), { ifVersion: 1 }));
    });

    it("two simultaneous creates: one succeeds, the other is a version conflict", async () => {
      const other = await backend.open("ada");
      for (let round = 0; round < 5; round++) {
        const path = `race/${round}`;
        const results = await Promise.allSettled(
          [store, other].map((each, index) =>
            each.write(path, fieldsOf({ by: String(index) }), { ifVersion: 0 }),
          ),
        );
        const won = results.findIndex(({ status }) => status === "fulfilled");
        const lost = results.flatMap((result) =>
          result.status === "rejected" ? [result.reason as unknown] : [],
        );
        assert.equal(lost.length, 1);
        assert.ok(lost[0] instanceof SecretStoreError);
        assert.equal(lost[0].code, "version_conflict");
        assert.deepEqual((await store.read(path)).fields, fieldsOf({ by: String(won) }));
      }
      await other.close();
    });

    it("delete removes every version, and a new secret starts at version 1", async () => {
      await store.write("gone", fieldsOf({ a: "1" }));
      await store.write("gone", fieldsOf({ a: "2" }));
      await store.delete("gone");
      await assertRejectsWith("not_found", store.read("gone"));
      await assertRejectsWith("not_found", store.read("gone", { version: 1 }));
      await assertRejectsWith("not_found", store.metadata("gone"));
      await assertRejectsWith("not_found", store.delete("gone"));
      assert.ok(!(await store.list("")).includes("gone"));
      assert.deepEqual(await store.write("gone", fieldsOf({ a: "3" }), { ifVersion: 0 }), { version: 1 });
    });

    it("an absent secret is not found", async () => {
      await assertRejectsWith("not_found", store.read("nothing"));
      await assertRejectsWith("not_found", store.read("nothing", { version: 1 }));
      await assertRejectsWith("not_found", store.metadata("nothing"));
      await assertRejectsWith("not_found", store.delete("nothing"));
      await assertRejectsWith("not_found", store.list("nothing/"));
    });

    it("list gives the sorted names directly below a folder, folders with a slash", async () => {
      const own = await fresh();
      assert.deepEqual(await own.list(""), []);
      for (const path of ["b", "a/x", "a/y/z", "a", "Z", "ä", "\u{1f511}", "\u{ff5e}", "a-", "a0"]) {
        await own.write(path, fieldsOf({ path }));
      }
      assert.deepEqual(await own.list(""), ["Z", "a", "a-", "a/", "a0", "b", "ä", "\u{1f511}", "\u{ff5e}"]);
      assert.deepEqual(await own.list("a/"), ["x", "y/"]);
      assert.deepEqual(await own.list("a/y/"), ["z"]);
      await assertRejectsWith("not_found", own.list("b/"));
      await own.close();
    });

    it("a secret and a folder may have the same name", async () => {
      const own = await fresh();
      await own.write("twin", fieldsOf({ is: "secret" }));
      await own.write("twin/inner", fieldsOf({ is: "inside" }));
      await own.delete("twin");
      assert.deepEqual(await own.list(""), ["twin/"]);
      assert.deepEqual((await own.read("twin/inner")).fields, fieldsOf({ is: "inside" }));
      await assertRejectsWith("not_found", own.read("twin"));
      await own.close();
    });

    it("names may have any printable character, and are not normalised", async () => {
      const own = await fresh();
      const names = [
        "%2e%2e",
        "%41",
        "..a",
        "a b",
        "a#b",
        "a%b",
        "a&b=c",
        "a+b",
        "a:b@c",
        "a;b",
        "a?b",
        "e\u0301",
        "é",
      ];
      for (const name of names) await own.write(`odd/${name}`, fieldsOf({ name }));
      assert.deepEqual(await own.list("odd/"), names.toSorted());
      for (const name of names) assert.deepEqual((await own.read(`odd/${name}`)).fields, fieldsOf({ name }));
      await own.close();
    });

    it("every method refuses an invalid path", async () => {
      for (const path of [
        "",
        "/a",
        "a//b",
        "a/../b",
        "..",
        "./a",
        "a\0b",
        "a\\b",
        "a%2fb",
        "a%5Cb",
        "a\nb",
        "folder/",
      ]) {
        await assertRejectsWith("bad_path", store.read(path));
        await assertRejectsWith("bad_path", store.metadata(path));
        await assertRejectsWith("bad_path", store.write(path, fieldsOf({})));
        await assertRejectsWith("bad_path", store.delete(path));
      }
      for (const folder of ["/", "a", "../", "a//", "a/./", "a\\/"])
        await assertRejectsWith("bad_path", store.list(folder));
    });

    it("users do not see each other's secrets", async () => {
      const eve = await fresh();
      await store.write("mine", fieldsOf({ a: "1" }));
      await assertRejectsWith("not_found", eve.read("mine"));
      assert.deepEqual(await eve.list(""), []);
      await eve.close();
    });

    it("a large value is kept, and a document over the limit is refused", async () => {
      const value = "ü".repeat(250_000);
      await store.write("large", fieldsOf({ value }));
      assert.equal((await store.read("large")).fields.get("value"), value);
      const over = fieldsOf({ value: "x".repeat(MAX_DOCUMENT_BYTES) });
      await assertRejectsWith("too_large", store.write("large", over));
      assert.equal((await store.metadata("large")).version, 1);
    });

    it("a fired signal ends the call with aborted", async () => {
      const signal = AbortSignal.abort();
      await assertRejectsWith("aborted", store.read("first", { signal }));
      await assertRejectsWith("aborted", store.list("", { signal }));
      await assertRejectsWith("aborted", store.write("first", fieldsOf({}), { signal }));
      await assertRejectsWith("aborted", store.metadata("first", { signal }));
      await assertRejectsWith("aborted", store.delete("first", { signal }));
    });

    it("ping succeeds", async () => {
      await store.ping();
    });

    it("watch, if supported, reports changes of other connections below the root only", async () => {
      const watching = await fresh();
      const writing = await backend.open(`user${users}`);
      const stop = new AbortController();
      if (backend.events === false)
        await assertRejectsWith("unsupported", collect(watching.watch(stop.signal), 1));
      else {
        const changes = watching.watch(stop.signal);
        await store.write("outside", fieldsOf({}));
        const seen = collect(changes, 3);
        await writing.write("w", fieldsOf({ a: "1" }));
        await sleepFor(20);
        await writing.write("w", fieldsOf({ a: "2" }));
        await writing.delete("w");
        assert.deepEqual(await seen, [
          { path: "w", kind: "written" },
          { path: "w", kind: "written" },
          { path: "w", kind: "deleted" },
        ]);
      }
      stop.abort();
      await watching.close();
      await writing.close();
    });
  });
}

/** Reads the first `count` items. */
export async function collect<T>(source: AsyncIterable<T>, count: number): Promise<T[]> {
  const items: T[] = [];
  for await (const item of source) {
    items.push(item);
    if (items.length === count) break;
  }
  return items;
}
