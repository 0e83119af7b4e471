import { flagOf } from "@devplat/cli";
import {
  MAX_DOCUMENT_BYTES,
  SecretStoreError,
  printJson,
  type FieldValue,
  type SecretDocument,
  type SecretStore,
} from "@devplat/secret-store";
import { BRAND } from "../brand.ts";
import type { LoadedConfig } from "../config/load.ts";
import { AgentError } from "../errors.ts";
import { withStore } from "./common/with-store.ts";
import type { Invocation, RunCommand } from "./common/command.ts";
import { lookAgainForKeys } from "./ssh-agent/look-again.ts";
import { FilesOfSecret } from "./secrets/files-of-secret.ts";
import {
  noteLine,
  printLine,
  printText,
  visible,
  visibleJson,
  visibleJsonText,
} from "@devplat/base/terminal";
import { noSuchField } from "./secrets/no-such-field.ts";
import { systemCode } from "@devplat/base";
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { REPLACEMENT } from "../secrets/form-text.ts";
import { ask } from "./common/prompt.ts";

/**
 * Keeps `agent secrets` from writing what an enrolment has made, unless `--force` says so.
 * @throws AgentError `confirmation_needed`
 */
function refuseEnrolled({ config }: LoadedConfig, { options }: Invocation, path: string): void {
  if (config.enrolments[path] === undefined || flagOf(options, "force")) return;
  throw new AgentError("confirmation_needed", `${path} belongs to an enrolment`, {
    hint: `'${BRAND.command} enrol run ${path} --again' replaces it; --force writes it without the enrolment.`,
  });
}

/** Changes a secret, and waits for the running daemon to have written it into its files, unless `--no-wait` says otherwise. */
async function changeSecret(
  invocation: Invocation,
  secretPath: string,
  change: (store: SecretStore, signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const { options, flags } = invocation;
  const { files, look } = await withStore(invocation, async (store, signal, loaded, host) => {
    refuseEnrolled(loaded, invocation, secretPath);
    const before = await FilesOfSecret.look(host, loaded, secretPath);
    await change(store, signal);
    return { files: before, look: () => lookAgainForKeys(host, loaded.config, secretPath) };
  });
  // The running daemon has its own configuration: what it does says nothing of one that was named here.
  if (!flags.dryRun && flags.config === undefined && !flagOf(options, "no-wait")) {
    await Promise.all([files.untilSynced(), look()]);
  }
  return 0;
}

/** Prints names only, without a field or `--reveal`. */
export const get: RunCommand = (invocation) =>
  withStore(invocation, async (store, signal) => {
    const [path = "", field] = invocation.positionals;
    const { fields, version } = await store.read(path, { signal });
    const json = flagOf(invocation.options, "json");
    if (field !== undefined) {
      const value = fields.get(field);
      if (value === undefined) throw noSuchField(path, fields);
      if (json) printText(`${visibleJsonText(printJson(value))}\n`);
      // A program gets the value unchanged. A terminal would execute control characters in it.
      else if (process.stdout.isTTY) printText(`${asText(value)}\n`);
      else process.stdout.write(`${asText(value)}\n`);
      return 0;
    }
    const reveal = flagOf(invocation.options, "reveal");
    if (json) {
      const shown: FieldValue = reveal ? fields : [...fields.keys()];
      const document = new Map<string, FieldValue>([
        ["path", path],
        ["version", { number: String(version) }],
        ["fields", shown],
      ]);
      printText(`${visibleJsonText(printJson(document))}\n`);
      return 0;
    }
    const lines = [...fields].map(([name, value]) => `${visible(name)}: ${reveal ? asText(value) : "••••"}`);
    printText(`${[`# ${path}, version ${version}`, ...lines].join("\n")}\n`);
    return 0;
  });

function asText(value: FieldValue): string {
  return typeof value === "string" ? value : printJson(value);
}

export const list: RunCommand = (invocation) =>
  withStore(invocation, async (store, signal) => {
    const [given = ""] = invocation.positionals;
    const folder = given === "" || given.endsWith("/") ? given : `${given}/`;
    const keys = await store.list(folder, { signal });
    const text = flagOf(invocation.options, "json")
      ? `${visibleJson({ path: folder, keys }, 2)}\n`
      : keys.map((key) => `${visible(key)}\n`).join("");
    printText(text);
    return 0;
  });

/** Tries against others who write the same secret at the same time. */
const MAX_TRIES = 3;

/** Sets fields. If the secret has changed since it was read, it is read again and the change is repeated. */
export const put: RunCommand = async (invocation) => {
  const [path = "", ...parts] = invocation.positionals;
  const given = await readFields(parts);
  if (process.stdin.isTTY && parts.some((part) => /^[^=]+=[^@-]/.test(part))) {
    noteLine(`A value on the command line stays in the shell's history; FIELD alone asks for it.`);
  }
  return changeSecret(invocation, path, async (store, signal) => {
    for (let attempt = 1; ; attempt++) {
      const before = await readOrUndefined(store, path, signal);
      const kept = flagOf(invocation.options, "replace") ? [] : [...(before?.fields ?? [])];
      const fields = new Map<string, FieldValue>([...kept, ...given]);
      if (invocation.flags.dryRun) {
        printLine(`would write ${path}: ${[...given.keys()].join(", ")}`);
        return;
      }
      try {
        const { version } = await store.write(path, fields, { ifVersion: before?.version ?? 0, signal });
        printLine(`${path}: version ${version}`);
        return;
      } catch (error) {
        const conflict = error instanceof SecretStoreError && error.code === "version_conflict";
        if (!conflict || attempt >= MAX_TRIES) throw error;
      }
    }
  });
};

async function readOrUndefined(
  store: SecretStore,
  path: string,
  signal: AbortSignal,
): Promise<SecretDocument | undefined> {
  try {
    return await store.read(path, { signal });
  } catch (error) {
    if (error instanceof SecretStoreError && error.code === "not_found") return undefined;
    throw error;
  }
}

/** `field=value`, `field=@file`, `field=-` (standard input, once), `field` (asked without echo). */
async function readFields(parts: readonly string[]): Promise<Map<string, string>> {
  const fields = new Map<string, string>();
  let stdinUsed = false;
  for (const part of parts) {
    const split = part.indexOf("=");
    const name = split < 0 ? part : part.slice(0, split);
    const source = split < 0 ? undefined : part.slice(split + 1);
    if (name === "") throw new AgentError("usage", "a field needs a name: field=value");
    if (name.includes(REPLACEMENT)) throw notText("a field's name");
    if (fields.has(name)) throw new AgentError("usage", "a field is given twice");
    if (source === "-") {
      if (stdinUsed) throw new AgentError("usage", "standard input can be read for one field only");
      stdinUsed = true;
      fields.set(name, withoutFinalNewline(decoded(await bounded(process.stdin, name), name)));
    } else if (source?.startsWith("@") === true) {
      fields.set(name, decoded(await readValueFile(source.slice(1), name), name));
    } else {
      fields.set(name, withoutReplacement(source ?? (await ask(`${name}: `, { hidden: true })), name));
    }
  }
  return fields;
}

async function readValueFile(path: string, field: string): Promise<Buffer> {
  try {
    return await bounded(createReadStream(path), field);
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw new AgentError("usage", `cannot read ${path} (${systemCode(error) ?? "unknown error"})`);
  }
}

/** All bytes of a stream, which may have no end. @throws AgentError `usage` for more than a secret may have */
async function bounded(stream: Readable, field: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_DOCUMENT_BYTES) {
      throw new AgentError(
        "usage",
        `the value of ${field} has more than ${MAX_DOCUMENT_BYTES} bytes, which is all that a secret may have`,
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function decoded(bytes: Buffer, field: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw notText(`the value of ${field}`);
  }
}

/** In arguments and typed lines U+FFFD replaces bytes that are not UTF-8. A file and standard input may hold it. */
function withoutReplacement(value: string, field: string): string {
  if (value.includes(REPLACEMENT)) throw notText(`the value of ${field}`);
  return value;
}

function notText(what: string): AgentError {
  return new AgentError("usage", `${what} is not UTF-8 text`, {
    hint: "Encode it, in base64 for example.",
  });
}

/** `echo secret | agent secrets put …`: the newline is echo's. */
function withoutFinalNewline(value: string): string {
  return value.replace(/\r?\n$/, "");
}

export const rm: RunCommand = (invocation) => {
  const [path = ""] = invocation.positionals;
  return changeSecret(invocation, path, async (store, signal) => {
    const { version } = await store.metadata(path, { signal });
    if (invocation.flags.dryRun) {
      printLine(`would remove ${path} with every version up to ${version}`);
      return;
    }
    if (!flagOf(invocation.options, "yes")) await confirm(path);
    await store.delete(path, { signal });
    printLine(`removed ${path}`);
  });
};

/** The secret cannot be restored, so its name has to be typed. */
async function confirm(path: string): Promise<void> {
  if (!process.stdin.isTTY) {
    throw new AgentError("confirmation_needed", `refused to remove ${path} without being asked`, {
      hint: "Use --yes. The secret cannot be restored.",
    });
  }
  const typed = await ask(`This removes every version of ${path} for good. Type its name: `, {
    hidden: false,
  });
  if (typed !== path)
    throw new AgentError("confirmation_needed", "that is another name; nothing was removed");
}
