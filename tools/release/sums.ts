import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";

export interface FileSum {
  readonly name: string;
  readonly sha256: string;
}

/** Namespace of the signature: a signature of the same key for another purpose does not count. */
export const SIGNATURE_NAMESPACE = "release";

/** Hashes of files of a folder, in the order of their names. */
export async function sumsOf(folder: string, names: readonly string[]): Promise<FileSum[]> {
  return Promise.all(
    names.toSorted().map(async (name) => ({
      name,
      sha256: createHash("sha256")
        .update(await readFile(join(folder, name)))
        .digest("hex"),
    })),
  );
}

/** Text of a file that `sha256sum --check` reads. */
export function sumsText(sums: readonly FileSum[]): string {
  return sums.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join("");
}

/**
 * Signs a file with `ssh-keygen`, into `<file>.sig`.
 *
 * @param key private key of OpenSSH, or the public key of one in the SSH agent
 */
export async function sign(file: string, key: string): Promise<void> {
  await rm(`${file}.sig`, { force: true });
  execFileSync("ssh-keygen", ["-Y", "sign", "-n", SIGNATURE_NAMESPACE, "-f", key, file], {
    stdio: ["inherit", "ignore", "pipe"],
  });
}
