import { existsSync, globSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TestkitError } from "./errors.ts";
import { run } from "./process.ts";
import { tempFolder } from "./temp-folder.ts";

/** A PKCS#11 token in software (SoftHSM 2), in a folder of its own. */
export interface SoftHsm {
  /** Path of the PKCS#11 module. */
  readonly module: string;
  readonly token: string;
  /** Holds the user PIN, 0600. */
  readonly pinFile: string;
  /** Environment for a process that sees only this token. */
  readonly env: Readonly<Record<string, string>>;
  /** Labels of the private keys in it. */
  keys(): Promise<string[]>;
  /** Removes every key, as if another token were plugged in. */
  empty(): Promise<void>;
  stop(): Promise<void>;
}

const PIN = "pin-of-the-tests-5678";
const TOKEN = "daemon";

export async function createSoftHsm(): Promise<SoftHsm> {
  const module = softHsmModule();
  const folder = await tempFolder("softhsm");
  const configuration = join(folder.path, "softhsm2.conf");
  const pinFile = join(folder.path, "pin");
  const env = { SOFTHSM2_CONF: configuration };
  const tool = async (command: string, ...args: string[]): Promise<string> => {
    const done = await run(command, args, { env: { ...process.env, ...env, PIN } });
    if (done.code !== 0) throw new TestkitError("command_failed", `${command}: ${done.stderr}`);
    return done.stdout;
  };
  const objects = ["--module", module, "--token-label", TOKEN, "--login", "--pin", "env:PIN"];
  const keys = async (): Promise<string[]> => {
    const listed = await tool("pkcs11-tool", ...objects, "--list-objects", "--type", "privkey");
    return [...listed.matchAll(/^\s*label:\s*(\S+)$/gm)].map(([, label = ""]) => label);
  };
  await mkdir(join(folder.path, "tokens"));
  await writeFile(
    configuration,
    `directories.tokendir = ${folder.path}/tokens\nobjectstore.backend = file\nlog.level = ERROR\n`,
  );
  await writeFile(pinFile, `${PIN}\n`, { mode: 0o600 });
  await tool(
    "softhsm2-util",
    "--init-token",
    "--free",
    "--label",
    TOKEN,
    "--so-pin",
    "12345678",
    "--pin",
    PIN,
  );
  return {
    module,
    token: TOKEN,
    pinFile,
    env,
    keys,
    async empty() {
      for (const label of await keys()) {
        await tool("pkcs11-tool", ...objects, "--delete-object", "--type", "privkey", "--label", label);
      }
    },
    stop: () => folder.remove(),
  };
}

/** @throws TestkitError `peer_missing` */
export function softHsmModule(): string {
  const found = ["/usr/lib/softhsm/libsofthsm2.so", ...globSync("/usr/lib*/*/softhsm/libsofthsm2.so")].find(
    (path) => existsSync(path),
  );
  if (found !== undefined) return found;
  throw TestkitError.missing("SoftHSM");
}
