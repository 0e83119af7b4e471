import type { ObjectFormat } from "@devplat/git-protocol";
import { oidLine, startsWith } from "./commit.ts";
import { GitStoreError } from "./errors.ts";
import { oidBytes, type ObjectType } from "./object-format.ts";
import type { Oid } from "./oid.ts";

/** Target of an annotated tag. */
export interface Tag {
  readonly object: Oid;
  readonly type: ObjectType;
}

const TYPES: readonly ObjectType[] = ["commit", "tree", "blob", "tag"];

/** Reads the first two lines of an annotated tag. @throws {GitStoreError} `corrupt_object` */
export function parseTag(content: Buffer, format: ObjectFormat): Tag {
  const digits = oidBytes(format) * 2;
  const object = oidLine(content, 0, "object ", digits, format);
  const at = "object ".length + digits + 1;
  const type = TYPES.find((name) => startsWith(content, at, `type ${name}\n`));
  if (object === undefined || type === undefined) {
    throw new GitStoreError("corrupt_object", "read tag: no object and type lines");
  }
  return { object, type };
}
