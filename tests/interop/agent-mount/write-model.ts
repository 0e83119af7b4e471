import assert from "node:assert/strict";
import { open, readFile, readdir, rename, unlink, writeFile, type FileHandle } from "node:fs/promises";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { until } from "@devplat/testkit";
import type { MountStand } from "../agent-mount-stand.ts";

type Fields = Record<string, string | number>;

const PATHS = ["a", "b", "demo/x", "demo/y", "demo/registry"];
const BAD = ["", "no json", "[]", '{"a": 1', '{"a":1}{', '{"a":1,"a":2}'];
const MAX_HELD = 4;

/** A secret's file that was open for reading while others wrote. */
interface Held {
  readonly handle: FileHandle;
  readonly text: string;
}

/** Changes secrets through a mount and through its store, and compares both with a model in memory after each change. */
export class WriteModel {
  readonly counts = new Map<string, number>();
  readonly #stand: MountStand;
  readonly #random: () => number;
  readonly #secrets = new Map<string, Fields>([["demo/registry", { user: "ada", password: "first" }]]);
  readonly #held: Held[] = [];

  constructor(stand: MountStand, random: () => number) {
    this.#stand = stand;
    this.#random = random;
  }

  /** One random action, and what must hold after it. */
  async step(): Promise<void> {
    const path = this.#pick(PATHS);
    const fields = this.#secrets.get(path);
    const actions: (readonly [name: string, run: () => Promise<void>])[] = [
      ["replace", () => this.#replace(path)],
      ["rename onto", () => this.#renameOnto(path)],
      ["list", () => this.#list(path)],
    ];
    if (fields !== undefined)
      actions.push(
        ["patch", () => this.#patch(path, fields)],
        ["append white space", () => this.#append(path)],
        ["empty", async () => await writeFile(this.#file(path), "")],
        ["refused text", () => this.#refused(path)],
        ["refused rename", () => this.#refusedRename(path)],
        ["move", () => this.#move(path, this.#pick(PATHS), fields)],
        ["remove", () => this.#remove(path)],
        ["back up and replace", () => this.#backUp(path)],
        ["back up and restore", () => this.#restore(path)],
        ["hold", () => this.#hold(path)],
        ["change in the store", () => this.#storeChange(path)],
        ["conflict", () => this.#conflict(path)],
        ["field", () => this.#field(path, fields)],
        ["new field", () => this.#newField(path, fields)],
        ["remove field", () => this.#removeField(path, fields)],
      );
    else actions.push(["absent", () => this.#absent(path)]);
    const [name, run] = this.#pick(actions);
    try {
      await run();
      await this.#check(path);
    } catch (error) {
      throw new Error(`${name} of ${path}`, { cause: error });
    }
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }

  /** Every held file still has its version, and the store has exactly the secrets of the model. */
  async end(): Promise<void> {
    while (this.#held.length > 0) await this.#release();
    for (const path of PATHS) assert.deepEqual(await this.#stand.stored(path), this.#secrets.get(path), path);
  }

  async #check(path: string): Promise<void> {
    const fields = this.#secrets.get(path);
    assert.deepEqual(await this.#stand.stored(path), fields, "the store");
    if (fields === undefined) {
      await assert.rejects(readFile(this.#file(path)), { code: "ENOENT" });
      return;
    }
    const text = await readFile(this.#file(path), "utf8");
    const seen = JSON.parse(text) as Fields;
    assert.deepEqual(seen, fields, "the mount");
    assert.equal(text, `${JSON.stringify(seen, undefined, 2)}\n`);
  }

  async #replace(path: string): Promise<void> {
    const fields = this.#fields();
    const isNew = !this.#secrets.has(path);
    const file = await open(this.#file(path), "w");
    const text = Buffer.from(JSON.stringify(fields, undefined, this.#pick([0, 2, 4])));
    const middle = Math.floor(this.#random() * text.length);
    await file.write(text.subarray(0, middle), 0, undefined, 0);
    await file.write(text.subarray(middle), 0, undefined, middle);
    // A new file is stored at fsync.
    if (isNew || this.#random() < 0.3) await file.sync();
    await file.close();
    this.#secrets.set(path, fields);
  }

  async #renameOnto(path: string): Promise<void> {
    const fields = this.#fields();
    const temporary = join(dirname(this.#file(path)), this.#pick(["x.tmp", ".x.json", "x", "x.json~"]));
    await this.#inFolder(path);
    await writeFile(temporary, JSON.stringify(fields));
    await rename(temporary, this.#file(path));
    this.#secrets.set(path, fields);
    await assert.rejects(readFile(temporary), { code: "ENOENT" });
  }

  /** The folder `demo` may be gone with its last secret. */
  async #inFolder(path: string): Promise<void> {
    assert.ok((await readdir(dirname(this.#file(path)))).length >= 0);
  }

  async #list(path: string): Promise<void> {
    const folder = path.slice(0, path.lastIndexOf("/") + 1);
    const expected = [...this.#secrets.keys()]
      .filter((each) => each.slice(0, each.lastIndexOf("/") + 1) === folder)
      .flatMap((each) => [`${each.slice(folder.length)}.d`, `${each.slice(folder.length)}.json`]);
    if (folder === "") expected.push("demo");
    const names = (await readdir(this.#stand.at(folder))).filter((name) => !name.startsWith("."));
    assert.deepEqual(names.toSorted(), expected.toSorted());
  }

  /** Writes one value of equal length in place. */
  async #patch(path: string, fields: Fields): Promise<void> {
    const file = await open(this.#file(path), "r+");
    const text = await file.readFile("utf8");
    const [key, value] = this.#pick(Object.entries(fields));
    const length = Buffer.byteLength(String(value));
    const replacement = typeof value === "number" ? Number("7".repeat(length)) : "p".repeat(length);
    const at = text.indexOf(`"${key}": ${JSON.stringify(value)}`);
    assert.ok(at >= 0);
    const offset = Buffer.byteLength(text.slice(0, at)) + `"${key}": `.length;
    await file.write(Buffer.from(JSON.stringify(replacement)), 0, undefined, offset);
    await file.close();
    this.#secrets.set(path, { ...fields, [key]: replacement });
  }

  async #append(path: string): Promise<void> {
    const file = await open(this.#file(path), "a");
    await file.write("\n  \n");
    await file.close();
  }

  async #refused(path: string): Promise<void> {
    const text = this.#pick(BAD.slice(1));
    const file = await open(this.#file(path), "w");
    await file.write(text);
    if (this.#random() < 0.5) await assert.rejects(file.sync(), { code: "EINVAL" });
    await assert.rejects(file.close(), { code: "EINVAL" });
    const copy = this.#copy(path, "rejected");
    assert.equal(await readFile(copy, "utf8"), text);
    await unlink(copy);
  }

  async #refusedRename(path: string): Promise<void> {
    const temporary = `${this.#file(path)}.tmp`;
    await writeFile(temporary, this.#pick(BAD));
    await assert.rejects(rename(temporary, this.#file(path)), { code: "EINVAL" });
    await unlink(temporary);
    await unlink(this.#copy(path, "rejected")).catch(() => undefined);
  }

  async #move(path: string, target: string, fields: Fields): Promise<void> {
    await rename(this.#file(path), this.#file(target));
    if (target === path) return;
    this.#secrets.delete(path);
    this.#secrets.set(target, fields);
    await this.#check(target);
  }

  async #remove(path: string): Promise<void> {
    await unlink(this.#file(path));
    this.#secrets.delete(path);
  }

  async #absent(path: string): Promise<void> {
    await assert.rejects(unlink(this.#file(path)), { code: "ENOENT" });
    await assert.rejects(open(this.#file(path), "r+"), { code: "ENOENT" });
  }

  async #backUp(path: string): Promise<void> {
    const file = this.#file(path);
    await rename(file, `${file}~`);
    await assert.rejects(readFile(file), { code: "ENOENT" });
    assert.deepEqual(JSON.parse(await readFile(`${file}~`, "utf8")), this.#secrets.get(path));
    const fields = this.#fields();
    await writeFile(file, JSON.stringify(fields), { flag: this.#pick(["w", "wx"]) });
    await unlink(`${file}~`);
    this.#secrets.set(path, fields);
  }

  async #restore(path: string): Promise<void> {
    const file = this.#file(path);
    await rename(file, `${file}~`);
    await rename(`${file}~`, file);
  }

  async #hold(path: string): Promise<void> {
    if (this.#held.length >= MAX_HELD) await this.#release();
    const handle = await open(this.#file(path), "r");
    this.#held.push({ handle, text: await readFile(this.#file(path), "utf8") });
  }

  async #release(): Promise<void> {
    const held = this.#held.shift();
    if (held === undefined) return;
    const buffer = Buffer.alloc(64 * 1024);
    const { bytesRead } = await held.handle.read(buffer, 0, buffer.length, 0);
    await held.handle.close();
    assert.equal(buffer.toString("utf8", 0, bytesRead), held.text);
  }

  async #storeChange(path: string): Promise<void> {
    await this.#stored(path, this.#fields());
  }

  /** Writes past the mount, and waits until the mount shows it. */
  async #stored(path: string, fields: Fields): Promise<void> {
    await this.#stand.store(path, JSON.stringify(fields));
    this.#secrets.set(path, fields);
    let text = "";
    await until(
      async () => {
        text = await readFile(this.#file(path), "utf8");
        return isEqual(JSON.parse(text), fields);
      },
      () => `${path} is ${text}`,
    );
  }

  async #conflict(path: string): Promise<void> {
    const file = await open(this.#file(path), "w");
    // The store is changed by a child process, whose start flushes the file.
    await this.#stored(path, this.#fields());
    await file.write('{"mine": 1}');
    await assert.rejects(file.close(), { errno: -constants.errno.ESTALE });
    const copy = this.#copy(path, "conflict");
    assert.equal(await readFile(copy, "utf8"), '{"mine": 1}');
    await unlink(copy);
  }

  async #field(path: string, fields: Fields): Promise<void> {
    const [key, before] = this.#pick(Object.entries(fields));
    const value = typeof before === "number" ? Math.floor(this.#random() * 1e6) : this.#text();
    const file = await open(this.#fieldFile(path, key), "w");
    await file.write(String(value));
    await file.close();
    this.#secrets.set(path, { ...fields, [key]: value });
    assert.equal(await readFile(this.#fieldFile(path, key), "utf8"), String(value));
  }

  async #newField(path: string, fields: Fields): Promise<void> {
    const key = `n${Object.keys(fields).length}${Math.floor(this.#random() * 10)}`;
    if (key in fields) return;
    const value = this.#text();
    const file = await open(this.#fieldFile(path, key), "wx");
    await file.write(value);
    await file.sync();
    await file.close();
    this.#secrets.set(path, { ...fields, [key]: value });
  }

  async #removeField(path: string, fields: Fields): Promise<void> {
    const key = this.#pick(Object.keys(fields));
    if (Object.keys(fields).length === 1) {
      await assert.rejects(unlink(this.#fieldFile(path, key)), { code: "EPERM" });
      return;
    }
    await unlink(this.#fieldFile(path, key));
    this.#secrets.set(path, Object.fromEntries(Object.entries(fields).filter(([each]) => each !== key)));
  }

  #file(path: string): string {
    return this.#stand.at(`${path}.json`);
  }

  #fieldFile(path: string, key: string): string {
    return this.#stand.at(`${path}.d`, key);
  }

  #copy(path: string, end: string): string {
    const name = path.slice(path.lastIndexOf("/") + 1);
    return join(dirname(this.#file(path)), `.${name}.json.${end}`);
  }

  #fields(): Fields {
    const count = 1 + Math.floor(this.#random() * 4);
    const entries = Array.from({ length: count }, (_, index) => [
      `k${index}`,
      this.#random() < 0.3 ? Math.floor(this.#random() * 10) : this.#text(),
    ]);
    return Object.fromEntries(entries) as Fields;
  }

  #text(): string {
    const length = this.#random() < 0.05 ? 20_000 : 1 + Math.floor(this.#random() * 40);
    const first = this.#pick(["ä", "s", "€", " "]);
    return first + Math.floor(this.#random() * 36 ** 6).toString(36) + "x".repeat(length);
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)] as Item;
  }
}

function isEqual(one: unknown, other: unknown): boolean {
  try {
    assert.deepEqual(one, other);
    return true;
  } catch {
    return false;
  }
}
