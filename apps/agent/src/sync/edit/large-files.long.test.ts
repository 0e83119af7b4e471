import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { documentFormat, DocumentEditError, type DocumentFormat } from "@devplat/document-edit";
import { until } from "@devplat/testkit";
import { AgentError } from "../../errors.ts";
import { EditThread, type EditThreadOptions } from "./edit-thread.ts";
import { mergePieces, type MergeContext, type MergedFile, type Piece } from "./file-bytes.ts";
import { diffOf, mergeFile } from "./large-files.ts";
import { packError, unpackError } from "./packed-error.ts";
import { previewText } from "./preview-text.ts";

const threads: EditThread[] = [];
afterEach(async () => {
  for (const thread of threads.splice(0)) await thread.worker?.terminate();
});
function newThread(options: EditThreadOptions = {}): EditThread {
  const thread = new EditThread(options);
  threads.push(thread);
  return thread;
}

const yaml = documentFormat("yaml");
const contextOf = (format: DocumentFormat, more: Partial<MergeContext> = {}): MergeContext => ({
  format,
  wholeFile: false,
  others: new Map(),
  isOurs: () => false,
  ...more,
});
const pieceOf = (format: DocumentFormat, content: string, more: Partial<Piece> = {}): Piece => ({
  rule: "r",
  content: format.parse(content),
  options: {},
  managedBefore: [],
  foundBefore: [],
  clean: true,
  overwrite: true,
  ...more,
});
/** So many entries, each with its number. */
const repeat = (entry: string, count: number): string =>
  Array.from({ length: count }, (_, index) => entry.replaceAll("%", String(index))).join("");
const LARGE_YAML = Buffer.from(repeat("key%: value # note\nmap%: {a: [x, y]}\n", 3000));
const SMALL_YAML = Buffer.from("key1: value # note\n");

/** Fields of an error that callers use. */
const factsOf = (error: unknown): unknown => {
  if (error instanceof DocumentEditError) {
    const { code, message, hint, remedy, line, column } = error;
    return { class: DocumentEditError, code, message, hint, remedy, line, column };
  }
  assert.ok(error instanceof AgentError, String(error));
  const { code, message, hint, remedy } = error;
  return { class: AgentError, code, message, hint, remedy };
};
const plain = ({ content, outcomes }: MergedFile): unknown => ({
  content: content?.toString(),
  outcomes: [...outcomes].map(([rule, outcome]) => [
    rule,
    outcome.kind === "failed" ? factsOf(outcome.error) : outcome,
  ]),
});
const failureOf = ({ outcomes }: MergedFile): unknown => {
  const outcome = outcomes.get("r");
  assert.equal(outcome?.kind, "failed");
  return factsOf(outcome.error);
};

describe("a large file", () => {
  it("is edited while the timers of the main thread run on", async () => {
    let ticks = 0;
    const timer = setInterval(() => ticks++, 5);
    try {
      await mergeFile(LARGE_YAML, [pieceOf(yaml, "key7: new")], contextOf(yaml), undefined, newThread());
    } finally {
      clearInterval(timer);
    }
    assert.ok(ticks >= 10, `${ticks} ticks`);
  });

  it("gets the same bytes and outcomes as inline, in every format [agent 13.7]", async () => {
    const thread = newThread();
    const cases: readonly [format: DocumentFormat, entry: string, content: string, options?: object][] = [
      [yaml, "key%: value # note\n", "key7: new\nother: {a: 1}\n"],
      [yaml, "key%: value\n", "l: [{n: a, v: 1}]", { lists: { l: "n" } }],
      [documentFormat("netrc"), "machine m% login l password p # c\n", "machine m7 login l password new"],
      [documentFormat("ini"), "[s%]\nkey = value\n; c\n", "[s7]\nkey = new\n"],
      [documentFormat("ini", { dialect: "npmrc" }), "k%[]=a\nk%[]=b\n", "k7[]=c\nk7[]=d\n"],
      [documentFormat("ini", { dialect: "gitconfig" }), '[r "%"]\n\tu = x ; c\n', '[r "7"]\nu = "a;b"\n'],
      [documentFormat("toml"), '[t%]\nk = "v" # c\n', '[t7]\nk = "new"\n'],
      [documentFormat("ssh_config"), "Host h%\n    User me # c\n", "Host h7\n    User new\n"],
      [documentFormat("dotenv"), "K%='v' # c\n", "K7=new\n"],
      [documentFormat("properties"), "k%=v\n", "k7=new\n"],
      [documentFormat("text"), "line %\n", "all of it\n"],
    ];
    for (const [format, entry, content, options = {}] of cases) {
      const existing = Buffer.from(repeat(entry, Math.ceil(70_000 / entry.length)));
      const pieces = [pieceOf(format, content, { options })];
      const inline = mergePieces(existing, pieces, contextOf(format));
      assert.equal(inline.outcomes.get("r")?.kind, "applied", format.name);
      const threaded = await mergeFile(existing, pieces, contextOf(format), undefined, thread);
      assert.deepEqual(plain(threaded), plain(inline), format.name);
    }
    const json = documentFormat("json");
    const existing = Buffer.from(`{\n${repeat('  "k%": 1, // c\n', 5000)}}\n`);
    const pieces = [pieceOf(json, '{"k7": {"new": 12345678901234567890}}')];
    const threaded = await mergeFile(existing, pieces, contextOf(json), undefined, thread);
    assert.deepEqual(plain(threaded), plain(mergePieces(existing, pieces, contextOf(json))));
    assert.notEqual(thread.worker, undefined);
  });

  it("runs in the thread for large content, and not for small content or a text", async () => {
    const thread = newThread();
    const text = documentFormat("text");
    await mergeFile(SMALL_YAML, [pieceOf(yaml, "key1: new")], contextOf(yaml), undefined, thread);
    await mergeFile(LARGE_YAML, [pieceOf(text, "new")], contextOf(text), undefined, thread);
    assert.equal(thread.worker, undefined);
    const pieces = [pieceOf(yaml, LARGE_YAML.toString())];
    const made = await mergeFile(undefined, pieces, contextOf(yaml), undefined, thread);
    assert.notEqual(thread.worker, undefined);
    assert.deepEqual(plain(made), plain(mergePieces(undefined, pieces, contextOf(yaml))));
  });

  it("that a rule owns goes with it only while it is as the rule wrote it", async () => {
    const json = documentFormat("json");
    const existing = Buffer.from(JSON.stringify({ k: LARGE_YAML.toString() }));
    for (const isOurs of [true, false]) {
      const context = contextOf(json, { wholeFile: true, isOurs: () => isOurs });
      const piece = { ...pieceOf(json, "{}"), content: undefined };
      const merged = await mergeFile(existing, [piece], context, undefined, newThread());
      assert.equal(merged.content, isOurs ? "remove" : undefined);
    }
  });

  it("fails with the same errors as inline: class, code, hint and place [agent 13.7]", async () => {
    const thread = newThread();
    const overlap = contextOf(yaml, { others: new Map([["other", [["key7"]]]]) });
    const wrong: readonly [Buffer, MergeContext, code: string][] = [
      [Buffer.concat([LARGE_YAML, Buffer.from("z: [hunter2")]), contextOf(yaml), "unparsable_existing"],
      [Buffer.concat([LARGE_YAML, Buffer.from("key7: hunter2\n")]), contextOf(yaml), "unsupported"],
      [Buffer.concat([LARGE_YAML, Buffer.of(0xff)]), contextOf(yaml), "target_refused"],
      [LARGE_YAML, overlap, "overlap"],
    ];
    const pieces = [pieceOf(yaml, "key7: new")];
    for (const [existing, context, code] of wrong) {
      const inline = mergePieces(existing, pieces, context);
      assert.equal((failureOf(inline) as { code: string }).code, code);
      assert.deepEqual(
        plain(await mergeFile(existing, pieces, context, undefined, thread)),
        plain(inline),
        code,
      );
    }
    const fault = unpackError(packError(new TypeError("hunter2")));
    assert.deepEqual([fault.name, fault.message.includes("hunter2")], ["TypeError", false]);
  });

  it("is compared in the thread, with every value masked", async () => {
    const thread = newThread();
    const next = Buffer.from(LARGE_YAML.toString().replace("key7: value", "key7: hunter2"));
    const file = { path: "~/f.yaml", format: yaml, existing: LARGE_YAML, next };
    const diff = await diffOf(file, false, undefined, thread);
    assert.notEqual(thread.worker, undefined);
    assert.equal(diff, previewText(file, false));
    assert.match(diff, /^\+key7: ••••/m);
    assert.doesNotMatch(diff, /hunter2/);
    const broken = { ...file, existing: Buffer.concat([LARGE_YAML, Buffer.from("z: [")]) };
    await assert.rejects(diffOf(broken, false, undefined, thread), { code: "unparsable_existing" });
  });
});

describe("the thread for large files", () => {
  const job = (thread: EditThread, signal?: AbortSignal): Promise<MergedFile> =>
    mergeFile(LARGE_YAML, [pieceOf(yaml, "key7: new")], contextOf(yaml), signal, thread);
  const assertWorks = async (thread: EditThread): Promise<void> => {
    assert.equal((await job(thread)).outcomes.get("r")?.kind, "applied");
  };

  it("is ended by a signal in the middle of an edit, and started again by the next one", async () => {
    const thread = newThread();
    const stop = new AbortController();
    const under = job(thread, stop.signal);
    await until(async () => thread.worker !== undefined);
    stop.abort(new Error("stop"));
    await assert.rejects(under, /^Error: stop$/);
    assert.equal(thread.worker, undefined);
    await assertWorks(thread);
  });

  it("does one job at a time; a signal takes one that waits out of the row", async () => {
    const thread = newThread();
    const stop = new AbortController();
    const first = job(thread);
    const second = job(thread, stop.signal);
    stop.abort(new Error("stop"));
    await assert.rejects(second, /^Error: stop$/);
    assert.equal((await first).outcomes.get("r")?.kind, "applied");
  });

  it("that dies fails the rules of its file, and the next one works", async () => {
    const thread = newThread();
    const under = job(thread);
    await until(async () => thread.worker !== undefined);
    await thread.worker?.terminate();
    assert.deepEqual(failureOf(await under), {
      class: AgentError,
      code: "edit_failed",
      message: "the thread that edits large files ended",
      hint: undefined,
      remedy: "retry",
    });
    await assertWorks(thread);
  });

  it("that runs out of memory fails the rules of its file, and nothing else [agent 13.7]", async () => {
    const merged = await job(newThread({ heapMb: 16 }));
    assert.equal(
      (failureOf(merged) as AgentError).message,
      "the file is too large to be edited: that takes more than 16 MB of memory",
    );
  });

  it("ends when it has had nothing to do for a while", async () => {
    const thread = newThread({ idleMs: 1 });
    await assertWorks(thread);
    const { worker } = thread;
    if (worker !== undefined) await new Promise((resolve) => worker.once("exit", resolve));
    assert.equal(thread.worker, undefined);
    await assertWorks(thread);
  });
});
