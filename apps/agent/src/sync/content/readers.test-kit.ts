import { execFile, execFileSync } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { readersPython } from "@devplat/testkit";

/** A document, the reader to read it with, and where the value is. */
export interface Reading {
  readonly reader: string;
  readonly text: string;
  readonly path: readonly string[];
}
/** Value that a reader found, or the reason why it refused the document. */
export type Found = { readonly value: string } | { readonly error: string };

const run = promisify(execFile);
const tools = new URL("../../../../../tools/readers/", import.meta.url).pathname;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

type Values = (path: readonly string[]) => string | undefined;

/** Readers that are programs of their own, one run for each document. */
const PROGRAMS: Readonly<Record<string, (file: string) => Promise<Values>>> = {
  git: async (file) => {
    const { stdout } = await run("git", ["config", "--null", "--file", file, "--list"]);
    const entries = stdout
      .split("\0")
      .map((entry) => [entry.slice(0, entry.indexOf("\n")), entry.slice(entry.indexOf("\n") + 1)]);
    return (path) => entries.find(([key]) => key === path.join("."))?.[1];
  },
  "ssh -G": async (file) => {
    const { stdout } = await run("ssh", ["-G", "-F", file, "h"]);
    const lines = stdout.split("\n");
    return ([, keyword]) =>
      lines.find((line) => line.startsWith(`${keyword} `))?.slice((keyword?.length ?? 0) + 1);
  },
  curl: async (file) => {
    let sent = "";
    const server = createServer((request, response) => {
      sent = Buffer.from((request.headers.authorization ?? "").replace("Basic ", ""), "base64").toString();
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    try {
      await run("curl", ["-sS", "--noproxy", "*", "--netrc-file", file, `http://127.0.0.1:${port}/`]);
    } finally {
      server.close();
    }
    return () => sent.slice(sent.indexOf(":") + 1);
  },
};

/** Readers that take many documents in one run. @returns a value, or nothing, for each */
const BATCHES: Readonly<
  Record<string, (files: readonly string[], readings: readonly Reading[]) => string[]>
> = {
  sh: (files, readings) => {
    const script =
      'while [ $# -gt 0 ]; do ( . "$1"; eval "printf %s \\"\\$$2\\"" ); printf "\\0"; shift 2; done';
    const args = files.flatMap((file, index) => [file, readings[index]?.path[0] ?? ""]);
    const output = execFileSync("sh", ["-c", script, "sh", ...args], { encoding: "utf8", env: {} });
    return output.split("\0");
  },
  jq: (files, readings) => {
    const paths = JSON.stringify(readings.map((reading) => reading.path));
    const filter = "[inputs] | to_entries | map(.key as $n | .value | getpath($paths[$n]))";
    const output = execFileSync("jq", ["-n", "--argjson", "paths", paths, filter, ...files], {
      encoding: "utf8",
      maxBuffer: MAX_OUTPUT_BYTES,
    });
    return (JSON.parse(output) as unknown[]).map(String);
  },
};
const OF_NPM: ReadonlySet<string> = new Set(["ini", "yaml", "yaml (1.1)", "dotenv", "node --env-file"]);

/** Reads each document with its reader, in as few processes as the reader allows. */
export async function readAll(readings: readonly Reading[], folder: string): Promise<Found[]> {
  const found: Found[] = [];
  const numbersOf = (isOwn: (reader: string) => boolean): number[] =>
    [...readings.keys()].filter((index) => isOwn(readings[index]?.reader ?? ""));
  const asJson = (program: string, script: string, numbers: readonly number[]): void => {
    const output = execFileSync(program, [join(tools, script)], {
      input: JSON.stringify(numbers.map((index) => readings[index])),
      encoding: "utf8",
      maxBuffer: MAX_OUTPUT_BYTES,
    });
    for (const [at, answer] of (JSON.parse(output) as Found[]).entries()) found[numbers[at] ?? 0] = answer;
  };
  const isProgram = (reader: string): boolean =>
    Object.hasOwn(PROGRAMS, reader) || Object.hasOwn(BATCHES, reader);
  asJson(
    process.execPath,
    "read.mjs",
    numbersOf((reader) => OF_NPM.has(reader)),
  );
  asJson(
    readersPython(),
    "read.py",
    numbersOf((reader) => !OF_NPM.has(reader) && !isProgram(reader)),
  );
  const files = new Map<string, string>();
  const fileOf = (text: string): string => {
    const file = files.get(text) ?? join(folder, `${files.size}.conf`);
    if (!files.has(text)) writeFileSync(file, text, { mode: 0o600 });
    files.set(text, file);
    return file;
  };
  for (const [reader, batch] of Object.entries(BATCHES)) {
    const numbers = numbersOf((each) => each === reader);
    const own = numbers.flatMap((index) => readings[index] ?? []);
    if (own.length === 0) continue;
    const values = batch(
      own.map(({ text }) => fileOf(text)),
      own,
    );
    for (const [at, index] of numbers.entries()) found[index] = { value: values[at] ?? "" };
  }
  const opened = new Map<string, Promise<Values>>();
  for (const [index, { reader, text, path }] of readings.entries()) {
    const program = PROGRAMS[reader];
    if (program === undefined) continue;
    const id = `${reader} ${text}`;
    const values = opened.get(id) ?? program(fileOf(text));
    opened.set(id, values);
    found[index] = await values.then(
      (valueOf) => ({ value: valueOf(path) ?? "" }),
      (error: unknown) => ({ error: String(error) }),
    );
  }
  return found;
}
