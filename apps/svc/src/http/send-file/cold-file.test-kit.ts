import assert from "node:assert/strict";
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bindLibc } from "@devplat/base/libc";
import { isResident } from "./resident.ts";

const POSIX_FADV_DONTNEED = 4;

/** A file on a disk, whose pages the kernel can be made to give up. */
export class ColdFile implements Disposable {
  readonly fd: number;
  // The folder for temporary files may be in memory, where the kernel keeps everything.
  readonly #folder = mkdtempSync("/var/tmp/cold-file-");
  readonly #advise = bindLibc({
    posix_fadvise: { arguments: ["int32", "int64", "int64", "int32"], return: "int32" },
  }).posix_fadvise;

  constructor(content: Buffer) {
    const path = join(this.#folder, "content");
    writeFileSync(path, content);
    this.fd = openSync(path, "r+");
    fsyncSync(this.fd);
  }

  /** Resolves when the kernel does not have the range in memory. @param offset a multiple of the page size, as the length */
  async drop(offset: number, length: number): Promise<void> {
    // The kernel keeps pages that it is still busy with.
    for (let tries = 0; isResident(this.fd, offset, length); tries++) {
      assert.ok(tries < 500, "the kernel keeps the file in memory");
      assert.equal(this.#advise(this.fd, BigInt(offset), BigInt(length), POSIX_FADV_DONTNEED), 0);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.fd);
    rmSync(this.#folder, { recursive: true });
  }
}
