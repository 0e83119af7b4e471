import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  SecretStoreError,
  parseFields,
  printJson,
  type Fields,
  type SecretStore,
} from "@devplat/secret-store";
import fc from "fast-check";
import { addField, changeField, removeField, type EditOutcome } from "./edit-fields.ts";
import { carriedText, isFormName, textOf, valueFromForm } from "./form-text.ts";
import { MAX_HITS, MAX_SEARCHED_FOLDERS, searchNames } from "./search-names.ts";
import { folderOf, lastName, storePath, urlPath } from "./url-path.ts";
import { WritePolicy } from "./write-policy.ts";

const FIELDS = parseFields(
  '{"user":"ada","port":5432,"big":1e400,"on":true,"none":null,"list":[1,2],"multi":"a\\r\\nb"}',
);

function printed(outcome: EditOutcome): string {
  assert.ok("fields" in outcome, JSON.stringify(outcome));
  return printJson(outcome.fields);
}

describe("WritePolicy", () => {
  it("an editable path covers its subtree and nothing else", () => {
    const policy = new WritePolicy(["tools", "team/shared/"], () => []);
    for (const path of ["tools/x", "tools/deep/x", "team/shared/x"])
      assert.equal(policy.refusal(path), undefined);
    for (const path of ["tools", "toolsbox", "x", "team", "team/shared", "team/other"])
      assert.equal(policy.refusal(path), "outside");
  });

  it("a secret of an enrolment is read-only inside an editable subtree", () => {
    const policy = new WritePolicy(["tools"], () => ["tools/gh"]);
    assert.equal(policy.refusal("tools/gh"), "enrolment");
    assert.equal(policy.refusal("tools/gh2"), undefined);
  });

  it("an enrolment that is configured later owns its secret from then on", () => {
    const keys: string[] = [];
    const policy = new WritePolicy(["tools"], () => keys);
    assert.equal(policy.refusal("tools/gh"), undefined);
    keys.push("tools/gh");
    assert.equal(policy.refusal("tools/gh"), "enrolment");
  });

  it("the root is never editable, and cannot be named", () => {
    assert.equal(new WritePolicy(["tools"], () => []).coversFolder(""), false);
    for (const path of ["", "/", "../x", "a//b"]) {
      assert.throws(() => new WritePolicy([path], () => []), { code: "bad_path" });
    }
  });

  it("gives the editable subtrees as folders, whether they exist or not", () => {
    const policy = new WritePolicy(["tools", "tools/", "a/b"], () => []);
    assert.deepEqual(policy.folders, ["a/b/", "tools/"]);
    assert.ok(policy.coversFolder("tools/"));
    assert.ok(policy.coversFolder("tools/deep/"));
    assert.ok(!policy.coversFolder("a/"));
  });
});

describe("changeField", () => {
  const change = (original: string, name: string, text: string): EditOutcome =>
    changeField(FIELDS, { original, name, text });

  it("changes a value and leaves every other as it was, in its place", () => {
    assert.equal(
      printed(change("user", "user", "bob")),
      '{"user":"bob","port":5432,"big":1e400,"on":true,"none":null,"list":[1,2],"multi":"a\\r\\nb"}',
    );
  });

  it("an unedited value keeps its type and line endings, also if its field is renamed", () => {
    for (const [name, value] of FIELDS) {
      const submitted = textOf(value).replaceAll(/\r?\n/g, "\r\n");
      const outcome = change(name, `${name}2`, submitted);
      assert.ok("fields" in outcome);
      assert.deepEqual(outcome.fields.get(`${name}2`), value);
      assert.equal([...outcome.fields.keys()].indexOf(`${name}2`), [...FIELDS.keys()].indexOf(name));
    }
  });

  it("an edited structured value becomes a string", () => {
    const outcome = change("list", "list", "[1,2,3]");
    assert.ok("fields" in outcome);
    assert.equal(outcome.fields.get("list"), "[1,2,3]");
  });

  it("an edited number or boolean keeps its type if the text fits, else it is a string", () => {
    const edited = (name: string, text: string): unknown => {
      const outcome = change(name, name, text);
      assert.ok("fields" in outcome);
      return outcome.fields.get(name);
    };
    assert.deepEqual(edited("port", "1.10"), { number: "1.10" });
    assert.equal(edited("port", "0x1"), "0x1");
    assert.equal(edited("on", "false"), false);
    assert.equal(edited("on", "False"), "False");
    assert.equal(edited("none", "x"), "x");
    assert.equal(edited("user", "42"), "42");
  });

  it("an edited value of several lines is stored with LF endings", () => {
    const outcome = change("multi", "multi", "a\r\nb\r\nc");
    assert.ok("fields" in outcome);
    assert.equal(outcome.fields.get("multi"), "a\nb\nc");
  });

  it("renaming onto an existing name is refused", () => {
    assert.deepEqual(change("user", "port", "x"), { refusal: "name_taken" });
  });

  it("a name that a form cannot carry is refused, old and new", () => {
    for (const name of ["", " x", "x ", "a\nb", "a\rb", "\u00a0x", "a\0"])
      assert.deepEqual(change("user", name, "x"), { refusal: "name_unusable" }, JSON.stringify(name));
    const odd = new Map([[" x", "1"]]) as Fields;
    assert.deepEqual(changeField(odd, { original: " x", name: "x", text: "1" }), {
      refusal: "field_missing",
    });
    assert.deepEqual(change("gone", "gone", "x"), { refusal: "field_missing" });
  });
});

describe("a character that a page cannot carry", () => {
  const damaged = new Map([
    ["nul", "x\0y"],
    ["half", "a\ud800"],
    ["fine", "\uFFFD"],
  ]);
  const change = (original: string, text: string): EditOutcome =>
    changeField(damaged, { original, name: original, text });

  it("is refused in typed text", () => {
    assert.deepEqual(change("fine", "a\0b"), { refusal: "text_unusable" });
    assert.deepEqual(addField(damaged, "new", "a\0b"), { refusal: "text_unusable" });
  });

  it("an edit of a text with a stored replacement character is refused", () => {
    assert.deepEqual(change("nul", "x\uFFFDy and more"), { refusal: "text_unusable" });
    assert.deepEqual(change("half", "b\uFFFD"), { refusal: "text_unusable" });
    for (const [name, text] of [
      ["nul", "all new"],
      ["fine", "\uFFFD!"],
    ] as const) {
      const outcome = change(name, text);
      assert.ok("fields" in outcome);
      assert.equal(outcome.fields.get(name), text);
    }
  });

  it("a value that is not edited stays as it is", () => {
    for (const [name, value] of damaged) {
      const outcome = change(name, value.replaceAll("\0", "\uFFFD").toWellFormed());
      assert.ok("fields" in outcome);
      assert.equal(outcome.fields.get(name), value);
    }
  });
});

describe("addField and removeField", () => {
  it("a blank row adds a field at the end, as a string with LF endings", () => {
    assert.equal(printed(addField(new Map([["a", "1"]]), "b", "2\r\n3")), '{"a":"1","b":"2\\n3"}');
  });

  it("adding onto an existing name is refused", () => {
    assert.deepEqual(addField(FIELDS, "user", "x"), { refusal: "name_taken" });
  });

  it("a field can be removed, but not the last one", () => {
    assert.equal(
      printed(
        removeField(
          new Map([
            ["a", "1"],
            ["b", "2"],
          ]),
          "a",
        ),
      ),
      '{"b":"2"}',
    );
    assert.deepEqual(removeField(new Map([["a", "1"]]), "a"), { refusal: "last_field" });
    assert.deepEqual(removeField(FIELDS, "gone"), { refusal: "field_missing" });
  });
});

describe("valueFromForm", () => {
  it("a text that a form returns unedited stays as it was, for every stored text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.constantFrom("\r\n", "\n"), (stored, ending) => {
        const submitted = carriedText(stored).replaceAll("\n", ending);
        assert.equal(valueFromForm(stored, submitted), stored);
      }),
    );
  });

  it("a name is one for a form exactly when trimming and line breaks do not change it", () => {
    for (const name of ["a", "a b", "", "ü", "<b>"]) assert.ok(isFormName(name));
    for (const name of [" a", "a\t", "a\nb", "\ud800", "a\u2028"]) assert.ok(!isFormName(name));
  });
});

describe("storePath and urlPath", () => {
  it("a path survives the way into a URL and back", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (path) => {
        assert.equal(storePath(`/p/${urlPath(path)}`, "/p/"), path);
      }),
    );
  });

  it("an encoding that is not UTF-8 is refused as a path", () => {
    assert.equal(storePath("/p/%ff", "/p/"), undefined);
  });

  it("folderOf and lastName part a path, of a folder too", () => {
    assert.deepEqual([folderOf("a/b/c"), lastName("a/b/c")], ["a/b/", "c"]);
    assert.deepEqual([folderOf("a/b/"), lastName("a/b/")], ["a/", "b/"]);
    assert.deepEqual([folderOf("a"), lastName("a")], ["", "a"]);
    assert.deepEqual([folderOf("a/"), lastName("a/")], ["", "a/"]);
  });
});

describe("searchNames", () => {
  const tree = (folders: Record<string, string[]>): SecretStore =>
    ({
      list: async (folder: string) => {
        const names = folders[folder];
        if (names === undefined) throw new SecretStoreError("denied", "no");
        return names;
      },
    }) as unknown as SecretStore;

  it("finds secrets whose path holds every word, in any case, in every folder", async () => {
    const store = tree({
      "": ["GitHub", "tools/"],
      "tools/": ["github-cli", "npm", "deep/"],
      "tools/deep/": ["git-hub"],
    });
    assert.deepEqual(await searchNames(store, "git HUB"), {
      paths: ["GitHub", "tools/deep/git-hub", "tools/github-cli"],
      incomplete: false,
    });
    assert.deepEqual(await searchNames(store, "  "), { paths: [], incomplete: false });
  });

  it("skips a folder that cannot be listed, and reports it", async () => {
    assert.deepEqual(await searchNames(tree({ "": ["a", "b/"] }), "a"), { paths: ["a"], incomplete: true });
  });

  it("ends at its limits of hits and folders, and reports it", async () => {
    const many = tree({ "": Array.from({ length: MAX_HITS + 5 }, (_, at) => `x${at}`) });
    const hits = await searchNames(many, "x");
    assert.deepEqual([hits.paths.length, hits.incomplete], [MAX_HITS, true]);
    let listed = 0;
    const endless = { list: async () => (listed++, ["f/"]) } as unknown as SecretStore;
    assert.equal((await searchNames(endless, "x")).incomplete, true);
    assert.equal(listed, MAX_SEARCHED_FOLDERS);
  });
});
