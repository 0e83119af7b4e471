import assert from "node:assert/strict";
import { chmod, link, mkdir, readFile, readdir, stat, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { SecretStoreError, type SecretStore } from "@devplat/secret-store";
import { EXISTING, workspace, yaml, type Workspace } from "./workspace.test-kit.ts";
import { RETRY_ALL, RETRY_NONE } from "./retry-scope.ts";

let w: Workspace;
beforeEach(async () => {
  w = await workspace();
});
afterEach(() => w.remove());

const never = new AbortController().signal;

/** A store that counts, and that can be told to fail. */
function watched(
  store: SecretStore,
  calls: string[],
  fault?: (path: string) => Error | undefined,
): SecretStore {
  const attempt = async <T>(kind: string, path: string, action: () => Promise<T>): Promise<T> => {
    calls.push(`${kind} ${path}`);
    const error = fault?.(path);
    if (error !== undefined) throw error;
    return action();
  };
  return {
    ...store,
    driver: store.driver,
    list: (folder) => store.list(folder),
    write: (path, fields, options) => store.write(path, fields, options),
    delete: (path) => store.delete(path),
    ping: () => store.ping(),
    close: () => store.close(),
    metadata: (path, options) => attempt("metadata", path, () => store.metadata(path, options)),
    read: (path, options) => attempt("read", path, () => store.read(path, options)),
  };
}

describe("a cycle", () => {
  it("changes only the managed bytes of an existing file, and keeps its mode [agent 13.4]", async () => {
    await w.put("k", { token: "new" });
    await w.file("f.yaml", EXISTING, 0o640);
    assert.deepEqual((await w.cycle([yaml("a", "k")])).changed, ["a"]);
    assert.equal(await w.read("f.yaml"), EXISTING.replace("old", "new"));
    assert.equal((await stat(join(w.home, "f.yaml"))).mode & 0o777, 0o640);
  });

  it("makes a file with 0600 in folders with 0700 with every umask [agent 13.3]", async () => {
    await w.put("k", { token: "t" });
    const before = process.umask(0o277);
    try {
      await w.cycle([yaml("a", "k", "~/x/y/f.yaml")]);
    } finally {
      process.umask(before);
    }
    assert.equal((await stat(join(w.home, "x/y/f.yaml"))).mode & 0o777, 0o600);
    assert.equal((await stat(join(w.home, "x"))).mode & 0o777, 0o700);
    assert.equal(await w.read("x/y/f.yaml"), "token: t\n");
  });

  it("makes a folder once for all the files that go there", async () => {
    await w.put("k", { token: "t" });
    const rules = ["x/a", "x/b", "x/y/c"].map((path, i) => yaml(`r${i}`, "k", `~/${path}`));
    assert.deepEqual((await w.cycle(rules)).changed, ["r0", "r1", "r2"]);
  });

  it("of many files writes each whole, reports in order of the rules, saves state last", async () => {
    await w.put("k", { token: "t" });
    const rules = Array.from({ length: 120 }, (_, i) =>
      yaml(`r${i}`, "k", `~/many/${i % 7}/f${i}.yaml`, {}, { run: { command: ["true", `${i % 3}`] } }),
    );
    assert.deepEqual(
      (await w.cycle(rules)).changed,
      rules.map((_, i) => `r${i}`),
    );
    for (let i = 0; i < rules.length; i++)
      assert.equal(await w.read(`many/${i % 7}/f${i}.yaml`), "token: t\n");
    const { state } = await w.engine([]);
    assert.equal(Object.keys(state.document.files).length, rules.length);
    const pending = Object.values(state.document.rules).filter((record) => record.run_pending);
    assert.deepEqual(pending, []);
    assert.deepEqual(
      (await w.cycle(rules)).unchanged,
      rules.map((_, i) => `r${i}`),
    );
  });

  it("writes two names of one hard-linked file in turn, with the keys of both rules", async () => {
    await w.put("k", { token: "t" });
    await w.file("f.yaml", "# kept\n");
    await link(join(w.home, "f.yaml"), join(w.home, "g.yaml"));
    const other = { template: "second: {{ .token }}\n" };
    const result = await w.cycle([yaml("a", "k"), yaml("b", "k", "~/g.yaml", other)]);
    assert.deepEqual(result.changed, ["a", "b"]);
    assert.equal(await w.read("f.yaml"), "# kept\ntoken: t\nsecond: t\n");
  });

  it("reads no value and touches no file when nothing has changed [agent 11.8 13.1]", async () => {
    await w.put("k", { token: "t" });
    await w.cycle([yaml("a", "k")]);
    const before = await stat(join(w.home, "f.yaml"), { bigint: true });
    const calls: string[] = [];
    const result = await w.cycle([yaml("a", "k"), yaml("b", "k", "~/g.yaml", {}, { paused: true })], {
      store: watched(w.store, calls),
    });
    assert.deepEqual(result.unchanged, ["a"]);
    assert.deepEqual(calls, ["metadata k"]);
    const after = await stat(join(w.home, "f.yaml"), { bigint: true });
    assert.deepEqual([after.ino, after.mtimeNs], [before.ino, before.mtimeNs]);
  });

  it("asks for one version of a secret that many rules use", async () => {
    await w.put("k", { token: "t" });
    const rules = Array.from({ length: 20 }, (_, i) => yaml(`r${i}`, "k", `~/f${i}.yaml`));
    const calls: string[] = [];
    await w.cycle(rules, { store: watched(w.store, calls) });
    assert.deepEqual(calls, ["metadata k", "read k"]);
  });

  it("writes again when another program has changed a managed key in the file", async () => {
    await w.put("k", { token: "t" });
    await w.cycle([yaml("a", "k")]);
    await w.file("f.yaml", "other: 1\ntoken: edited\n");
    assert.deepEqual((await w.cycle([yaml("a", "k")])).changed, ["a"]);
    assert.equal(await w.read("f.yaml"), "other: 1\ntoken: t\n");
  });

  it("writes again when the file has gone", async () => {
    await w.put("k", { token: "t" });
    await w.cycle([yaml("a", "k")]);
    await unlink(join(w.home, "f.yaml"));
    assert.deepEqual((await w.cycle([yaml("a", "k")])).changed, ["a"]);
  });

  it("takes up a new version and a changed rule", async () => {
    await w.put("k", { token: "t" });
    await w.cycle([yaml("a", "k")]);
    await w.put("k", { token: "u" });
    await w.cycle([yaml("a", "k")]);
    assert.equal(await w.read("f.yaml"), "token: u\n");
    await w.put("l", { token: "v" });
    await w.cycle([yaml("a", "l")]);
    assert.equal(await w.read("f.yaml"), "token: v\n");
  });

  it("keeps numbers as they are stored [agent 2.4]", async () => {
    await w.put("k", { big: { number: "9223372036854775808" }, one: { number: "1.10" } });
    await w.cycle([yaml("a", "k")]);
    assert.equal(await w.read("f.yaml"), "big: 9223372036854775808\none: 1.10\n");
  });

  it("puts several secrets under their names [agent 15.3]", async () => {
    await w.put("k", { token: "t" });
    await w.put("l", { token: "u" });
    await w.cycle([
      { name: "a", keys: { first: "k", second: "l" }, target: { path: "~/f.yaml", format: "yaml" } },
    ]);
    assert.equal(await w.read("f.yaml"), "first:\n  token: t\nsecond:\n  token: u\n");
  });
});

describe("rules are isolated", () => {
  it("a failing rule leaves the others alone, and says why", async () => {
    await w.put("k", { token: "t" });
    await mkdir(join(w.home, "folder"));
    await w.file("broken.yaml", "a: [\n");
    const result = await w.cycle([
      yaml("bad", "k", "~/folder"),
      yaml("worse", "k", "~/broken.yaml"),
      yaml("good", "k"),
    ]);
    assert.deepEqual(result.changed, ["good"]);
    assert.deepEqual(result.failed, ["bad", "worse"]);
    assert.equal(await w.errorOf("bad"), "cannot write ~/folder: it is a folder");
    assert.equal(await w.read("broken.yaml"), "a: [\n");
  });

  it("a secret that the store denies fails its rule only", async () => {
    await w.put("k", { token: "t" });
    await w.put("l", { token: "t" });
    const denied = new SecretStoreError("denied", "the store refused");
    const store = watched(w.store, [], (path) => (path === "k" ? denied : undefined));
    const result = await w.cycle([yaml("a", "k"), yaml("b", "l", "~/g.yaml")], { store });
    assert.deepEqual([result.changed, result.failed], [["b"], ["a"]]);
  });

  it("keeps its back-off while other secrets change; its own are tried immediately [agent 15.11]", async () => {
    await w.put("k", { token: "t" });
    await w.put("l", { token: "t" });
    await w.put("m", { token: "t" });
    for (const name of ["f.yaml", "g.yaml", "h"]) await mkdir(join(w.home, name));
    const now = 1_000_000_000_000;
    const clock = { now: () => now, monotonic: () => now, sleep: () => Promise.resolve() };
    const template = '{{ (secret "m").token }}';
    const text = { name: "c", key: "l", target: { path: "~/h", format: "text", template } };
    const { engine, state } = await w.engine([yaml("a", "k"), yaml("b", "l", "~/g.yaml"), text], { clock });
    const failures = (): (number | undefined)[] =>
      ["a", "b", "c"].map((name) => state.document.rules[name]?.consecutive_failures);
    await engine.cycle(never, { retry: RETRY_NONE });
    assert.deepEqual(failures(), [1, 1, 1]);
    await engine.cycle(never, { retry: RETRY_NONE });
    assert.deepEqual(failures(), [1, 1, 1], "no secret has changed");
    await engine.cycle(never, { retry: { kind: "secrets", paths: new Set(["k"]) } });
    assert.deepEqual(failures(), [2, 1, 2], "the template may read any");
    await engine.cycle(never, { retry: { kind: "secrets", paths: new Set(["x"]) } });
    assert.deepEqual(failures(), [2, 1, 3]);
  });

  it("each waits longer after each failure, and is tried immediately on request [agent 15.11]", async () => {
    await w.put("k", { token: "t" });
    await mkdir(join(w.home, "f.yaml"));
    let now = 1_000_000_000_000;
    const clock = { now: () => now, monotonic: () => now, sleep: () => Promise.resolve() };
    const { engine, state } = await w.engine([yaml("a", "k")], { clock });
    const waits: number[] = [];
    for (let i = 0; i < 12; i++) {
      await engine.cycle(never, { retry: RETRY_NONE });
      const record = state.document.rules["a"];
      const next = Date.parse(record?.next_attempt ?? "");
      waits.push(next - now);
      assert.equal(record?.consecutive_failures, i + 1);
      await engine.cycle(never, { retry: RETRY_NONE });
      assert.equal(record?.consecutive_failures, i + 1, "too early");
      now = next;
    }
    assert.ok((waits[0] ?? 0) >= 4000 && (waits[0] ?? 0) <= 6000, String(waits));
    assert.ok(Math.max(...waits) <= 15 * 60_000 && (waits.at(-1) ?? 0) > 10 * 60_000, String(waits));
    await engine.cycle(never, { retry: RETRY_ALL });
    assert.equal(state.document.rules["a"]?.consecutive_failures, 13);
    await engine.cycle(never, { retry: { kind: "rule", name: "another rule" } });
    assert.equal(state.document.rules["a"]?.consecutive_failures, 13, "it was not the one asked for");
    await engine.cycle(never, { retry: { kind: "rule", name: "a" } });
    assert.equal(state.document.rules["a"]?.consecutive_failures, 14);
  });

  it("waits no longer than ever where the clock has gone back by years", async () => {
    await w.put("k", { token: "t" });
    await mkdir(join(w.home, "f.yaml"));
    let now = Date.UTC(2040, 0, 1);
    const clock = { now: () => now, monotonic: () => 0, sleep: () => Promise.resolve() };
    const { engine, state } = await w.engine([yaml("a", "k")], { clock });
    await engine.cycle(never, { retry: RETRY_NONE });
    now = Date.UTC(2026, 0, 1);
    await engine.cycle(never, { retry: RETRY_NONE });
    assert.equal(state.document.rules["a"]?.consecutive_failures, 2);
  });

  it("a failure never holds a value", async () => {
    await w.put("k", { token: "hunter2\0" });
    await w.file("f.yaml", "hunter2: [hunter2\n");
    await w.cycle([
      yaml("a", "k"),
      yaml("b", "k", "~/x", { format: "netrc", template: "machine h login l password hunter2\nx hunter2\n" }),
    ]);
    assert.doesNotMatch(JSON.stringify([await w.errorOf("a"), await w.errorOf("b")]), /hunter2/);
  });
});

describe("the store is away", () => {
  it("files and states stay, and the state says since when", async () => {
    await w.put("k", { token: "t" });
    await w.cycle([yaml("a", "k")]);
    const down = watched(w.store, [], () => new SecretStoreError("unavailable", "down", { remedy: "retry" }));
    await assert.rejects(w.cycle([yaml("a", "k")], { store: down }), /down/);
    const { state } = await w.engine([]);
    const since = state.document.stale_since;
    assert.ok(since !== null);
    assert.equal(state.document.rules["a"]?.state, "ok");
    assert.equal(state.document.last_error, "down");
    await assert.rejects(w.cycle([yaml("a", "k")], { store: down }), /down/);
    assert.equal((await w.engine([])).state.document.stale_since, since);
    await w.cycle([yaml("a", "k")]);
    assert.equal((await w.engine([])).state.document.stale_since, null);
  });
});

describe("a secret that is missing", () => {
  it("on_missing keep: the file stays and the state says missing, without failing [agent 14.29]", async () => {
    await w.put("k", { token: "t" });
    await w.cycle([yaml("a", "k")]);
    await w.store.delete("k");
    const result = await w.cycle([yaml("a", "k")]);
    assert.deepEqual(result.failed, []);
    assert.equal(await w.read("f.yaml"), "token: t\n");
    assert.equal((await w.engine([])).state.document.rules["a"]?.state, "missing");
    await w.put("k", { token: "back" });
    await w.cycle([yaml("a", "k")]);
    assert.equal(await w.read("f.yaml"), "token: back\n");
  });

  it("on_missing remove: takes away what the rule set, and only that [agent 14.29]", async () => {
    await w.put("k", { token: "t" });
    await w.file("f.yaml", "mine: 1\n");
    await w.cycle([yaml("a", "k", "~/f.yaml", { on_missing: "remove" })]);
    await w.store.delete("k");
    await w.cycle([yaml("a", "k", "~/f.yaml", { on_missing: "remove" })]);
    assert.equal(await w.read("f.yaml"), "mine: 1\n");
  });

  it("on_missing error: the rule fails [agent 14.29]", async () => {
    const result = await w.cycle([yaml("a", "k", "~/f.yaml", { on_missing: "error" })]);
    assert.deepEqual(result.failed, ["a"]);
    assert.equal(await w.errorOf("a"), "nothing is stored under k");
  });
});

describe("a file that others can read", () => {
  const modeOf = async (name: string): Promise<number> => (await stat(join(w.home, name))).mode & 0o777;

  it("tighten: removes permissions for other users, also when the content stays [agent 14.27]", async () => {
    await w.put("k", { TOKEN: "t" });
    await w.file(".env", "A=1\n");
    await chmod(join(w.home, ".env"), 0o644);
    const rule = { name: "a", key: "k", target: { path: "~/.env", format: "dotenv" } };
    await w.cycle([rule]);
    assert.equal(await modeOf(".env"), 0o600);
    await chmod(join(w.home, ".env"), 0o664);
    assert.deepEqual((await w.cycle([rule])).unchanged, ["a"]);
    assert.equal(await modeOf(".env"), 0o600);
    assert.deepEqual(await (await w.engine([rule])).engine.exposedFiles(), []);
  });

  it("without tighten an exposed file keeps its mode and is named [agent 14.27]", async () => {
    await w.put("k", { token: "t" });
    await w.file("f.yaml", "mine: 1\n");
    await chmod(join(w.home, "f.yaml"), 0o644);
    await w.cycle([yaml("a", "k", "~/f.yaml")]);
    assert.equal(await modeOf("f.yaml"), 0o644);
    const [exposed] = await (await w.engine([yaml("a", "k", "~/f.yaml")])).engine.exposedFiles();
    assert.match(
      exposed?.warning ?? "",
      /^others can read ~\/f\.yaml \(mode 0644\), into which rule a writes/,
    );
    await w.cycle([yaml("a", "k", "~/f.yaml", { tighten: true })]);
    assert.equal(await modeOf("f.yaml"), 0o600);
  });
});

describe("backups", () => {
  it("one copy is kept before a rule first touches an existing file, 0600 [agent 13.9]", async () => {
    await w.put("k", { token: "t" });
    await w.file("f.yaml", EXISTING, 0o644);
    await w.cycle([yaml("a", "k")]);
    await w.put("k", { token: "u" });
    await w.cycle([yaml("a", "k")]);
    const folder = join(w.places.state, "backups/a");
    const copies = (await readdir(folder)).filter((name) => !name.endsWith(".json"));
    assert.equal(copies.length, 1);
    const copy = join(folder, copies[0] ?? "");
    assert.equal(await readFile(copy, "utf8"), EXISTING);
    assert.equal((await stat(copy)).mode & 0o777, 0o600);
  });

  it("none of a file that the rule has made itself", async () => {
    await w.put("k", { token: "t" });
    await w.cycle([yaml("a", "k")]);
    await w.put("k", { token: "u" });
    await w.cycle([yaml("a", "k")]);
    await assert.rejects(readdir(join(w.places.state, "backups/a")), { code: "ENOENT" });
  });
});

describe("a rule's command", () => {
  const withRun = (name: string, path: string, command: string[], more: object = {}): unknown =>
    yaml(name, "k", path, {}, { run: { command, ...more } });

  it("runs once for all rules that name it, and only when a file has changed [agent 16.9]", async () => {
    await w.put("k", { token: "t" });
    const command = ["/bin/sh", "-c", `echo ran >> ${join(w.home, "log")}; echo output`];
    const rules = [withRun("a", "~/f.yaml", command), withRun("b", "~/g.yaml", command)];
    await w.cycle(rules);
    await w.cycle(rules);
    assert.equal(await w.read("log"), "ran\n");
    const run = (await w.engine([])).state.document.rules["a"]?.last_run;
    assert.deepEqual([run?.exit_code, run?.stdout_bytes, run?.stderr_bytes], [0, 7, 0]);
  });

  it("is not run while another thing fails its rule [agent 16.10]", async () => {
    await w.put("k", { token: "t" });
    const flag = join(w.home, "flag");
    const rules = [withRun("a", "~/f.yaml", ["/bin/sh", "-c", `echo ran >> ${flag}; exit 1`])];
    await w.cycle(rules);
    await w.file("f.yaml", "a: [\n");
    await w.cycle(rules);
    assert.equal(await w.read("flag"), "ran\n", "a broken file is nothing to reload");
  });

  it("that fails fails the rule, and is run again although the file is right [agent 16.10]", async () => {
    await w.put("k", { token: "t" });
    const flag = join(w.home, "flag");
    const rules = [withRun("a", "~/f.yaml", ["/bin/sh", "-c", `test -e ${flag}`])];
    assert.deepEqual((await w.cycle(rules)).failed, ["a"]);
    assert.equal(await w.errorOf("a"), "the command ended with exit code 1");
    await writeFile(flag, "");
    assert.deepEqual((await w.cycle(rules)).failed, []);
  });

  it("does not see the token, ends with its time-out, and its output is stored nowhere [agent 5.32 16.11]", async () => {
    await w.put("k", { token: "t" });
    process.env["AGENT_TOKEN"] = "hunter2";
    try {
      // Without the time-out it would go on for longer than the test may take.
      const script = `env > ${join(w.home, "env")}; echo hunter3; sleep 600`;
      const result = await w.cycle([withRun("a", "~/f.yaml", ["/bin/sh", "-c", script], { timeout: "1s" })]);
      assert.deepEqual(result.failed, ["a"]);
    } finally {
      delete process.env["AGENT_TOKEN"];
    }
    assert.equal(await w.errorOf("a"), "the command did not end within its time-out");
    assert.doesNotMatch(await w.read("env"), /hunter2/);
    assert.doesNotMatch(await readFile(join(w.places.state, "state.json"), "utf8"), /hunter/);
  });
});

describe("a cycle that is stopped", () => {
  it("leaves a large file alone, and its rule without a failure [agent 13.7]", async () => {
    const text = EXISTING + "# more\n".repeat(10_000);
    await w.put("k", { token: "new" });
    await w.file("f.yaml", text);
    const { engine, state } = await w.engine([yaml("a", "k")]);
    const stop = new AbortController();
    const reason = new Error("stopped");
    const onProgress = (): void => stop.abort(reason);
    await assert.rejects(engine.cycle(stop.signal, { retry: RETRY_NONE, onProgress }), reason);
    assert.equal(await w.read("f.yaml"), text);
    assert.equal(state.document.rules["a"]?.state, "pending");
    assert.deepEqual((await engine.cycle(never, { retry: RETRY_NONE })).changed, ["a"]);
    assert.equal(await w.read("f.yaml"), text.replace("old", "new"));
  });
});

describe("a preview", () => {
  it("writes nothing at all [agent 6.4]", async () => {
    await w.put("k", { token: "new" });
    await w.file("f.yaml", EXISTING);
    const { engine } = await w.engine([yaml("a", "k"), yaml("b", "k", "~/x/y.yaml")]);
    const before = await tree(w.home);
    const preview = await engine.preview(never);
    assert.deepEqual(
      preview.files.map(({ path }) => path),
      ["~/f.yaml", "~/x/y.yaml"],
    );
    assert.equal(String(preview.files[0]?.next), EXISTING.replace("old", "new"));
    assert.deepEqual(await tree(w.home), before);
  });
});

async function tree(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true });
  const rows = names.map(async (name) => {
    const found = await stat(join(folder, name), { bigint: true });
    return `${name} ${found.ino} ${found.mtimeNs} ${found.mode}`;
  });
  return (await Promise.all(rows)).filter((row) => !row.includes("embedded.db-")).toSorted();
}
