import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run, tempFolder } from "@devplat/testkit";

/** A folder for keys, and OpenSSH's ssh-keygen in it. */
export interface KeyFolder extends AsyncDisposable {
  readonly path: string;
  /** Runs ssh-keygen; its standard output. Fails when it fails. */
  keygen(args: readonly string[], input?: string | Uint8Array): Promise<string>;
  /** Makes a key with the arguments of ssh-keygen; texts of both files. */
  makeKey(name: string, args: readonly string[]): Promise<{ privateText: string; publicText: string }>;
  read(name: string): Promise<string>;
  /** Writes a file that only this user can read, as OpenSSH asks of private keys; its path. */
  write(name: string, content: string | Uint8Array): Promise<string>;
}

export async function keyFolder(): Promise<KeyFolder> {
  const folder = await tempFolder("ssh");
  const at = (name: string): string => join(folder.path, name);
  const keygen = async (args: readonly string[], input: string | Uint8Array = ""): Promise<string> => {
    const { code, stdout, stderr } = await run("ssh-keygen", args, { cwd: folder.path, input });
    assert.equal(code, 0, `ssh-keygen ${args.join(" ")}: ${stderr}`);
    return stdout;
  };
  return {
    path: folder.path,
    keygen,
    async makeKey(name, args) {
      await keygen(["-q", "-N", "", "-C", `${name} key`, "-f", at(name), ...args]);
      return {
        privateText: await readFile(at(name), "utf8"),
        publicText: await readFile(at(`${name}.pub`), "utf8"),
      };
    },
    read: (name) => readFile(at(name), "utf8"),
    async write(name, content) {
      await writeFile(at(name), content, { mode: 0o600 });
      return at(name);
    },
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}

/** Arguments of ssh-keygen for a key of each type that can sign. */
export const KEY_TYPES: Readonly<Record<string, readonly string[]>> = {
  "ssh-ed25519": ["-t", "ed25519"],
  "ecdsa-sha2-nistp256": ["-t", "ecdsa", "-b", "256"],
  "ecdsa-sha2-nistp384": ["-t", "ecdsa", "-b", "384"],
  "ecdsa-sha2-nistp521": ["-t", "ecdsa", "-b", "521"],
  "ssh-rsa": ["-t", "rsa", "-b", "2048"],
};
