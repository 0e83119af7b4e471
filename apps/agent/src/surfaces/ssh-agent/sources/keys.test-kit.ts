import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run, tempFolder } from "@devplat/testkit";

/** Passphrase of every key of the corpus that has one. A test looks for it where it must not be. */
export const PASSPHRASE = "hunter2 hunter2";

/** A private key that OpenSSH or OpenSSL has made. */
export interface MadeKey {
  readonly name: string;
  readonly privateText: string;
  /** As `ssh-keygen -y` prints it, without a comment. */
  readonly publicLine: string;
  readonly hasPassphrase: boolean;
  /** OpenSSH's format shows the public half without the passphrase. */
  readonly showsPublicHalf: boolean;
}

const OPENSSH: Readonly<Record<string, readonly string[]>> = {
  ed25519: ["-t", "ed25519"],
  "ecdsa 256": ["-t", "ecdsa", "-b", "256"],
  "ecdsa 384": ["-t", "ecdsa", "-b", "384"],
  "ecdsa 521": ["-t", "ecdsa", "-b", "521"],
  "rsa 2048": ["-t", "rsa", "-b", "2048"],
  "rsa 3072": ["-t", "rsa", "-b", "3072"],
};
const OPENSSL: Readonly<Record<string, readonly string[]>> = {
  ed25519: ["-algorithm", "ed25519"],
  "ecdsa 256": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
  "ecdsa 384": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
  "ecdsa 521": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"],
  "rsa 2048": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
};

/** Runs a program that must succeed; its standard output. */
export async function succeed(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly input?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, options);
  assert.equal(code, 0, `${command} ${args[0] ?? ""}: ${stderr}`);
  return stdout;
}

async function keyFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const folder = await tempFolder("keys");
  return { path: folder.path, [Symbol.asyncDispose]: () => folder.remove() };
}

/** A key by ssh-keygen. @param args of ssh-keygen, for its type */
export async function sshKeygen(
  args: readonly string[],
  passphrase = "",
  more: readonly string[] = [],
): Promise<{ readonly privateText: string; readonly publicText: string }> {
  await using folder = await keyFolder();
  const file = join(folder.path, "key");
  await succeed("ssh-keygen", ["-q", "-f", file, "-N", passphrase, "-C", "ada@example", ...args, ...more]);
  return { privateText: await readFile(file, "utf8"), publicText: await readFile(`${file}.pub`, "utf8") };
}

/** A PKCS#8 key by OpenSSL, and the other forms that it can write. @param args of `openssl genpkey` */
export async function openssl(args: readonly string[], passphrase = ""): Promise<string> {
  const encrypted = passphrase === "" ? [] : ["-aes-256-cbc", "-pass", `pass:${passphrase}`];
  return await succeed("openssl", ["genpkey", ...args, ...encrypted]);
}

/** The public half by OpenSSH or OpenSSL, as a line without a comment. */
async function publicLineOf(privateText: string, passphrase: string): Promise<string> {
  await using folder = await keyFolder();
  const file = join(folder.path, "key");
  await writeFile(file, privateText, { mode: 0o600 });
  const line = await succeed("ssh-keygen", ["-y", "-P", passphrase, "-f", file]);
  return line.trim().split(" ").slice(0, 2).join(" ");
}

/** A key of every type and format, without and with a passphrase. */
export async function keyCorpus(): Promise<readonly MadeKey[]> {
  const keys: MadeKey[] = [];
  for (const passphrase of ["", PASSPHRASE]) {
    const hasPassphrase = passphrase !== "";
    const suffix = hasPassphrase ? " under a passphrase" : "";
    for (const [type, args] of Object.entries(OPENSSH)) {
      // Few rounds, so that the corpus is made and read quickly.
      const rounds = hasPassphrase ? ["-a", "2"] : [];
      const { privateText, publicText } = await sshKeygen(args, passphrase, rounds);
      const publicLine = publicText.trim().split(" ").slice(0, 2).join(" ");
      keys.push({
        name: `OpenSSH ${type}${suffix}`,
        privateText,
        publicLine,
        hasPassphrase,
        showsPublicHalf: true,
      });
    }
    for (const [type, args] of Object.entries(OPENSSL)) {
      const privateText = await openssl(args, passphrase);
      // ssh-keygen reads Ed25519 keys in PKCS#8 since version 9.6 only.
      const publicLine = type === "ed25519" ? "" : await publicLineOf(privateText, passphrase);
      keys.push({
        name: `PKCS#8 ${type}${suffix}`,
        privateText,
        publicLine,
        hasPassphrase,
        showsPublicHalf: !hasPassphrase,
      });
    }
  }
  return keys;
}
