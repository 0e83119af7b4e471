import { shownName } from "../../field-path.ts";

/**
 * JSON Pointer (RFC 6901) of the first key that an object of the text has twice; undefined: there is none.
 * `JSON.parse` takes the last of them without a word, and other readers take the first.
 *
 * @param text valid JSON, at any depth
 */
export function repeatedKey(text: string): string | undefined {
  const open: Level[] = [];
  let at = 0;
  while (at < text.length) {
    const level = open.at(-1);
    switch (text[at]) {
      case '"': {
        const end = endOfString(text, at);
        if (level?.keys !== undefined && level.awaitsKey) {
          level.step = JSON.parse(text.slice(at, end)) as string;
          if (level.keys.has(level.step)) return pointerTo(open.map(({ step }) => step));
          level.keys.add(level.step);
          level.awaitsKey = false;
        }
        at = end;
        continue;
      }
      case "{":
        open.push({ keys: new Set(), awaitsKey: true, step: "" });
        break;
      case "[":
        open.push({ keys: undefined, awaitsKey: false, step: 0 });
        break;
      case ",":
        if (typeof level?.step === "number") level.step++;
        else if (level !== undefined) level.awaitsKey = true;
        break;
      case "}":
      case "]":
        open.pop();
        break;
    }
    at++;
  }
  return undefined;
}

/** Characters of a name in a pointer: as many as git's names of refs have. No field has a longer name. */
const MAX_STEP = 1000;

/** JSON Pointer (RFC 6901 section 3). Names that are longer than those of any field are cut. */
export function pointerTo(path: readonly PropertyKey[]): string {
  return path
    .map(String)
    .map((step) => (step.length > MAX_STEP ? shownName(step) : step))
    .map((step) => `/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`)
    .join("");
}

/** An object or array that the reader is in. */
interface Level {
  /** Keys so far; undefined: an array. */
  readonly keys: Set<string> | undefined;
  /** Whether the next string is a key. */
  awaitsKey: boolean;
  /** The key, or the index, of the value that is being read. */
  step: string | number;
}

/** Behind the closing quotation mark. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}
