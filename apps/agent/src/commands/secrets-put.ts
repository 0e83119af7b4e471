import {
  SecretStoreError,
  type FieldValue,
  type SecretDocument,
  type SecretStore,
} from "@devplat/secret-store";
import { systemCode } from "@devplat/base";
import { noteLine, printLine } from "@devplat/base/terminal";
import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { AgentError } from "../errors.ts";
import type { RunCommand } from "./command.ts";
import { ask } from "./prompt.ts";
import { changeSecret } from "./secret-session.ts";

/** Tries against others who write the same secret at the same time. */
const MAX_TRIES = 3;

/** Sets fields; written only if nobody else has changed the secret meanwhile, else read again and repeated. */
export const run: RunCommand = async (invocation) => {
  const [path = "", ...parts] = invocation.positionals;
  const given = await readFields(parts);
  if (process.stdin.isTTY && parts.some((part) => /^[^=]+=[^@-]/.test(part))) {
    noteLine(`A value on the command line stays in the shell's history; FIELD alone asks for it.`);
  }
  return changeSecret(invocation, path, async (store, signal) => {
    for (let attempt = 1; ; attempt++) {
      const before = await readOrUndefined(store, path, signal);
      const kept = invocation.options["replace"] === true ? [] : [...(before?.fields ?? [])];
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
    if (fields.has(name)) throw new AgentError("usage", "a field is given twice");
    if (source === "-") {
      if (stdinUsed) throw new AgentError("usage", "standard input can be read for one field only");
      stdinUsed = true;
      fields.set(name, withoutFinalNewline(text(await buffer(process.stdin), name)));
    } else if (source?.startsWith("@") === true) {
      fields.set(name, text(await readValueFile(source.slice(1)), name));
    } else {
      fields.set(name, source ?? (await ask(`${name}: `, { hidden: true })));
    }
  }
  return fields;
}

async function readValueFile(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new AgentError("usage", `cannot read ${path} (${systemCode(error) ?? "unknown error"})`);
  }
}

function text(bytes: Buffer, field: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new AgentError("usage", `the value of ${field} is not UTF-8 text`, {
      hint: "Encode it, in base64 for example.",
    });
  }
}

/** `echo secret | agent secrets put …`: the newline is echo's. */
function withoutFinalNewline(value: string): string {
  return value.replace(/\r?\n$/, "");
}
