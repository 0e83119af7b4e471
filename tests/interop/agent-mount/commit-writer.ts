import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { ORDINARY } from "./hello-stand.ts";

/**
 * Replaces a secret again and again, in turn with fsync and with a close alone, and makes a new file with fsync at times. It
 * prints each number before it begins to write it, and again when the last call has succeeded.
 */
const WRITER = `
const { openSync, writeSync, fsyncSync, closeSync } = require("node:fs");
const [folder] = process.argv.slice(1);
const write = (path, flags, text, isSynced) => {
  const file = openSync(path, flags);
  let isWritten = false;
  try {
    for (let at = 0; at < text.length; at += 1000) writeSync(file, text.slice(at, at + 1000));
    if (isSynced) fsyncSync(file);
    isWritten = true;
  } finally {
    try { closeSync(file); } catch (error) { if (isWritten && !isSynced) throw error; }
  }
};
let count = 0;
const timer = setInterval(() => {
  const number = ++count;
  const fields = { number: String(number), pad: "x".repeat((number * 37) % 5000), again: String(number) };
  console.log("begin " + number);
  try {
    write(folder + "/target.json", "w", JSON.stringify(fields), number % 2 === 0);
    console.log("stored " + number);
  } catch {}
  if (number % 20 !== 0) return;
  try {
    write(folder + "/new-" + number + ".json", "wx", JSON.stringify(fields), true);
    console.log("made " + number);
  } catch {}
}, 5);
process.stdin.resume().on("end", () => clearInterval(timer));
`;

/** A program that writes to the mount, and knows which of its writes must not be lost. */
export class CommitWriter {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  /** The last number that it has begun to write. */
  begun = 0;
  /** The last number for which fsync or close has returned 0. */
  stored = 0;
  storedCount = 0;
  /** New files for which fsync has returned 0. */
  readonly made: number[] = [];

  /** @param folder on the mount, with a secret `target` */
  constructor(folder: string) {
    const command = [process.execPath, "-e", WRITER, folder];
    const [program = "", ...words] = [...ORDINARY.words, ...command];
    this.#child = spawn(program, words, { stdio: ["pipe", "pipe", "inherit"], cwd: "/" });
    this.#ended = once(this.#child, "close");
    assert.ok(this.#child.stdout);
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      const [word, number] = line.split(" ");
      if (word === "begin") this.begun = Number(number);
      if (word === "made") this.made.push(Number(number));
      if (word !== "stored") return;
      this.stored = Number(number);
      this.storedCount++;
    });
  }

  /**
   * Checks what the store has.
   * @param atLeast {@link stored} before the store was read
   */
  check(fields: Readonly<Record<string, unknown>>, atLeast: number): void {
    const { number, pad, again } = fields;
    assert.equal(again, number, "half of a secret is stored");
    const found = Number(number);
    if (found > 0) assert.equal(String(pad).length, (found * 37) % 5000, "half of a secret is stored");
    assert.ok(found >= atLeast, `write ${atLeast} was confirmed, and the store has ${found}`);
    // The line about the beginning may be under way.
    assert.ok(found <= this.begun + 1, `the store has ${found}, and ${this.begun} was not begun`);
  }

  async finish(): Promise<void> {
    this.#child.stdin?.end();
    await this.#ended;
  }
}
