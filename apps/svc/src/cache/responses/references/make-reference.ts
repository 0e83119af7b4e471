import type { FileHandle } from "node:fs/promises";
import { OID_BYTES, type ObjectFormat } from "@devplat/git-protocol";
import { SLICE_BYTES } from "../slices.ts";
import type { OpenFile } from "../response-file.ts";
import { isSound } from "../verify-response.ts";
import { framedReader } from "./framed-pack.ts";
import { LayoutBuilder } from "./layout-builder.ts";
import type { Reference } from "./reference-file.ts";

/**
 * Makes a reference from a framed response, if a pack of the mirror gives back each of its bytes: that is tried.
 *
 * @param format of the ids in the pack
 * @param openPack gives the pack of a reference; undefined: the mirror does not have it
 * @throws a system error
 */
export async function makeReference(
  file: Pick<OpenFile, "read" | "size" | "sums">,
  format: ObjectFormat,
  openPack: (reference: Omit<Reference, "sums">) => Promise<FileHandle | undefined>,
): Promise<Reference | undefined> {
  const { read, size, sums } = file;
  const builder = new LayoutBuilder(OID_BYTES[format]);
  const buffer = Buffer.allocUnsafe(Math.min(size, SLICE_BYTES));
  for (let at = 0; at < size;) {
    const bytes = buffer.subarray(0, Math.min(buffer.length, size - at));
    if ((await read(bytes, at)) < bytes.length) return undefined;
    builder.push(bytes);
    at += bytes.length;
  }
  const built = builder.finish();
  if (built?.layout.size !== size || built.tail.length !== OID_BYTES[format]) return undefined;
  const reference = { layout: built.layout, sums, packChecksum: Buffer.from(built.tail) };
  const pack = await openPack(reference);
  if (pack === undefined) return undefined;
  try {
    const isSame = await isSound({ read: framedReader(reference.layout, pack.fd), size, sums });
    return isSame ? reference : undefined;
  } finally {
    await pack.close();
  }
}
