import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { RETRY_ALL } from "../retry-scope.ts";
import { workspace, type Workspace } from "../workspace.test-kit.ts";

const signal = new AbortController().signal;
const mounted = (target: object, more: object = {}): unknown => ({
  name: "m",
  key: "k",
  target: { mount: "app/f", format: "yaml", ...target },
  ...more,
});

describe("rules for files on the mount", () => {
  let place: Workspace;
  before(async () => {
    place = await workspace();
    await place.put("k", { token: "s3cret-value" });
  });
  after(() => place.remove());
  const content = async (rules: readonly unknown[]): Promise<string | undefined> =>
    (await (await place.engine(rules)).engine.mounted.render("app/f", signal))?.content;

  it("are rendered as files on disk are", async () => {
    assert.equal(await content([mounted({})]), "token: s3cret-value\n");
    assert.equal(await content([mounted({ mount: "other" })]), undefined);
    assert.equal(await content([mounted({}, { paused: true })]), undefined);
    assert.equal(await content([mounted({}, { enabled: false })]), undefined);
    assert.equal(await content([mounted({}, { key: "absent" })]), undefined);
  });

  it("have a state, and leave no value and no name of a key in it", async () => {
    const template = "{{ .token | raw }}: {{ env `HINT` }}\n";
    const options = { environment: { HINT: "hint-value" } };
    const { changed } = await place.cycle([mounted({ template })], options);
    assert.equal(await place.errorOf("m"), null);
    assert.deepEqual(changed, ["m"]);
    assert.deepEqual((await place.cycle([mounted({ template })], options)).unchanged, ["m"]);
    const text = await readFile(join(place.places.state, "state.json"), "utf8");
    assert.doesNotMatch(text, /s3cret|hint|HINT/);
    const { state } = await place.engine([]);
    const record = state.document.rules["m"];
    assert.deepEqual([record?.state, record?.managed, record?.environment], ["ok", [], []]);
    // No hash from which a value of the environment could be guessed.
    const other = await place.cycle([mounted({ template })], { environment: { HINT: "another" } });
    assert.deepEqual(other.unchanged, ["m"]);
  });

  it("run their command after a change, and not after a restart", async () => {
    const out = join(place.home, "ran");
    const rule = mounted({}, { run: { command: ["sh", "-c", `echo x >> '${out}'`] } });
    await place.cycle([rule]);
    await place.cycle([rule]);
    assert.equal(await place.read("ran"), "x\n");
    await place.put("k", { token: "s3cret-two" });
    await place.cycle([rule]);
    assert.equal(await place.read("ran"), "x\nx\n");
  });

  it("fail without a mount, and with a name that a secret or folder has", async () => {
    assert.deepEqual((await place.cycle([mounted({})], { mounted: false })).failed, ["m"]);
    assert.match((await place.errorOf("m")) ?? "", /there is no mount for this file: turn it on/);
    await place.put("app/f/deep", { a: "1" });
    await place.cycle([mounted({})]);
    assert.match((await place.errorOf("m")) ?? "", /the folder app\/f\/ of the store has the name/);
    await place.store.delete("app/f/deep");
    await place.put("app/f", { a: "1" });
    assert.deepEqual((await place.cycle([mounted({})])).failed, []);
    await place.cycle([mounted({ mount: "app/f.json" })]);
    assert.match((await place.errorOf("m")) ?? "", /the secret app\/f has the name of the file app\/f\.json/);
    await place.store.delete("app/f");
  });

  it("fail when the base file is gone or cannot take the content", async () => {
    const rule = mounted({ base: "~/base.yaml" });
    await place.cycle([rule]);
    assert.match(
      (await place.errorOf("m")) ?? "",
      /cannot read the base file ~\/base\.yaml: it does not exist/,
    );
    await assert.rejects(content([rule]), /it does not exist/);
    const file = await place.file("base.yaml", "a: [1\n");
    await place.cycle([rule]);
    assert.notEqual(await place.errorOf("m"), null);
    await place.file("base.yaml", "a: 1 # mine\n");
    assert.deepEqual((await place.cycle([rule])).changed, ["m"]);
    assert.match((await content([rule])) ?? "", /^a: 1 # mine\ntoken: /);
    assert.equal(await readFile(file, "utf8"), "a: 1 # mine\n");
  });

  it("notice a changed base file, and follow it", async () => {
    const { engine } = await place.engine([mounted({ base: "~/base.yaml" })]);
    const cycle = async (): Promise<readonly string[]> =>
      (await engine.cycle(signal, { retry: RETRY_ALL })).changed;
    let told = 0;
    engine.mounted.onChange(() => told++, signal);
    await cycle();
    const [file = ""] = engine.targetFiles();
    assert.equal(file, join(place.home, "base.yaml"));
    assert.equal(await engine.isTouched(file), false);
    await place.file("base.yaml", "a: 2\nmore: true\n");
    assert.equal(await engine.isTouched(file), true);
    told = 0;
    assert.deepEqual(await cycle(), ["m"]);
    assert.equal(told, 1);
    assert.equal(await engine.isTouched(file), false);
  });

  it("clean up the file on disk that the rule had before, if it says so", async () => {
    const onDisk = {
      name: "m",
      key: "k",
      target: { path: "~/disk.yaml", format: "yaml", on_remove: "clean" },
    };
    await place.file("disk.yaml", "mine: 1\n");
    await place.cycle([onDisk]);
    assert.match(await place.read("disk.yaml"), /token: /);
    await place.cycle([mounted({})]);
    await place.cycle([mounted({})]);
    assert.equal(await place.read("disk.yaml"), "mine: 1\n");
  });

  it("are shown by a preview until a cycle has had them", async () => {
    await place.put("k", { token: "s3cret-three" });
    const { engine } = await place.engine([mounted({})]);
    const [file] = (await engine.preview(signal)).files;
    assert.deepEqual([file?.path, String(file?.next)], ["app/f (on the mount)", "token: s3cret-three\n"]);
    await place.cycle([mounted({})]);
    assert.deepEqual((await (await place.engine([mounted({})])).engine.preview(signal)).files, []);
  });
});
