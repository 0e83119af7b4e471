import { isOid, type ObjectFormat } from "@devplat/git-protocol";
import { GitStoreError, corruptIn } from "../errors.ts";
import type { Oid } from "../oid.ts";
import { checkRefName, isRefName } from "./ref-name.ts";

const corrupt = (line: number): GitStoreError =>
  corruptIn("corrupt_repository", "packed-refs")(`line ${line} does not parse`);

/** A ref and its target. */
export interface Ref {
  readonly name: string;
  readonly oid: Oid;
  /** Peeled target of an annotated tag. */
  readonly peeled?: Oid;
}

const HEADER = "# pack-refs with: peeled fully-peeled sorted \n";

/** Reads the text of a `packed-refs` file. @throws {GitStoreError} `corrupt_repository` */
export function parsePackedRefs(text: string, format: ObjectFormat): Ref[] {
  const refs: Ref[] = [];
  for (const [i, line] of text.split("\n").entries()) {
    if (line === "" || line.startsWith("#")) continue;
    if (line.startsWith("^")) {
      const last = refs.pop();
      if (last === undefined || !isOid(line.slice(1), format)) throw corrupt(i + 1);
      refs.push({ ...last, peeled: line.slice(1) });
      continue;
    }
    const space = line.indexOf(" ");
    const [oid, name] = [line.slice(0, space), line.slice(space + 1)];
    if (!isOid(oid, format) || !isRefName(name)) throw corrupt(i + 1);
    refs.push({ name, oid });
  }
  return refs;
}

/**
 * Formats a `packed-refs` file, sorted as git sorts it. Every annotated tag needs `peeled`, because the header of the
 * file states that refs without a peeled target are not tags.
 *
 * @throws {GitStoreError} `bad_ref_name`, `bad_oid`
 */
export function formatPackedRefs(refs: Iterable<Ref>, format: ObjectFormat): string {
  const sorted = [...refs].toSorted((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
  let text = HEADER;
  for (const { name, oid, peeled } of sorted) {
    checkRefName(name);
    if (!isOid(oid, format) || (peeled !== undefined && !isOid(peeled, format))) {
      throw new GitStoreError(
        "bad_oid",
        `write ref ${JSON.stringify(name)}: not an id of a ${format} repository`,
      );
    }
    text += `${oid} ${name}\n`;
    if (peeled !== undefined) text += `^${peeled}\n`;
  }
  return text;
}
