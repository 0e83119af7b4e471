import type { DocumentFormat, EditMap, EditResult, EditValue, LeafPath } from "../contract.ts";
import { inUtf8, PLAIN_VALUES } from "../core/format.ts";
import { maskLines } from "../core/mask.ts";
import { DocumentEditError } from "../errors.ts";

/** Key of the complete text in an EditMap. */
const WHOLE = "";

/** Format of a file that is written as one text. Its only leaf is `[]`. */
export const textFormat: DocumentFormat = {
  name: "text",
  values: PLAIN_VALUES,
  parse: (content: string): EditMap => new Map([[WHOLE, content]]),
  edit(_existing: string | undefined, content: EditMap): EditResult {
    const text = content.get(WHOLE);
    if (typeof text !== "string") {
      throw new DocumentEditError("unsupported", 'a text document takes one string, under the key ""');
    }
    return { text: inUtf8(text), managed: [[]] };
  },
  leaves: (): readonly LeafPath[] => [[]],
  get: (existing: string, leaves: readonly LeafPath[]): readonly (EditValue | undefined)[] =>
    leaves.map((leaf) => (leaf.length === 0 ? existing : undefined)),
  mask: maskLines,
};
