import assert from "node:assert/strict";
import fc from "fast-check";
import {
  documentFormat,
  type EditMap,
  type EditValue,
  type FormatName,
  type IniDialect,
} from "../src/index.ts";
import { Choices, assertKeepsLines, edit } from "./editing.test-kit.ts";

/** Section → key → value. `""` is the section above the first header. */
export type Sections = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** A line format for the property tests. */
export interface EntriesCase {
  readonly format: FormatName;
  readonly dialect?: IniDialect;
  readonly sections: fc.Arbitrary<string>;
  readonly hasTop: boolean;
  readonly key: fc.Arbitrary<string>;
  /** Values that the format can represent. */
  readonly value: fc.Arbitrary<string>;
  /** Writes a value in one of the ways of the format. */
  write(key: string, value: string, choices: Choices): string;
  header(name: string, choices: Choices): string;
  readonly comments: readonly string[];
  /** Another parser than this package. Keys of sections are `section\0key`. */
  read(text: string): Map<string, string>;
  readonly runs: number;
}

const anySections = (of: EntriesCase): fc.Arbitrary<Sections> => {
  const entries = fc
    .uniqueArray(fc.tuple(of.key, of.value), { selector: ([key]) => key.toLowerCase(), maxLength: 4 })
    .map((list) => new Map(list));
  const named = fc.uniqueArray(fc.tuple(of.sections, entries), {
    selector: ([name]) => name.toLowerCase(),
    minLength: of.hasTop ? 0 : 1,
    maxLength: 3,
  });
  return fc
    .tuple(entries, named)
    .map(([top, list]) => new Map([...(of.hasTop ? [["", top] as const] : []), ...list]));
};

/** Prints sections in a random layout. Each entry has its own lines. */
function print(of: EntriesCase, sections: Sections, choices: Choices): { text: string; foreign: string[] } {
  const ending = choices.pick(["\n", "\r\n"]);
  const foreign: string[] = [];
  let text = "";
  const other = (): void => {
    if (!choices.chance(30)) return;
    const line = choices.pick(of.comments) + ending;
    foreign.push(line);
    text += line;
  };
  for (const [name, entries] of sections) {
    other();
    if (name !== "") {
      const header = of.header(name, choices) + ending;
      foreign.push(header);
      text += header;
    }
    for (const [key, value] of entries) {
      other();
      text += of.write(key, value, choices).replaceAll("\n", ending) + ending;
    }
    if (choices.chance(40)) text += ending;
  }
  return { text: choices.chance(20) ? text.replace(/\r?\n$/, "") : text, foreign };
}

/** Sections as content: entries above the first header at the root, sections as mappings. */
function asContent(sections: Sections): EditMap {
  const content = new Map<string, EditValue>();
  for (const [name, entries] of sections) {
    if (name === "") for (const [key, value] of entries) content.set(key, value);
    else content.set(name, entries);
  }
  return content;
}

function flat(sections: Sections): Map<string, string> {
  return new Map(
    [...sections].flatMap(([name, entries]) =>
      [...entries].map(([key, value]) => [name === "" ? key : `${name}\0${key}`, value] as const),
    ),
  );
}

/** Asserts for any document and content that another parser reads the merged values, and that other lines stay. */
export function assertEdits(of: EntriesCase): void {
  const changes = anySections(of).chain((sections) => {
    const subset = [...sections].map(([name, entries]) =>
      fc
        .tuple(...[...entries].map(([key]) => fc.tuple(fc.constant(key), fc.option(of.value))))
        .map(
          (list) =>
            [name, new Map(list.filter((pair): pair is [string, string] => pair[1] !== null))] as const,
        ),
    );
    return fc.tuple(fc.constant(sections), fc.tuple(...subset), anySections(of), fc.integer());
  });
  fc.assert(
    fc.property(changes, ([sections, changed, fresh, seed]) => {
      const before = print(of, sections, new Choices(seed));
      const content = new Map<string, ReadonlyMap<string, string>>(
        changed.filter(([, entries]) => entries.size > 0),
      );
      for (const [name, entries] of fresh) {
        if (
          entries.size > 0 &&
          !sections.has(name) &&
          ![...sections.keys()].some((key) => key.toLowerCase() === name.toLowerCase())
        )
          content.set(name, entries);
      }
      const after = edit(of.format, before.text, asContent(content), {}, { dialect: of.dialect });
      const expected = new Map([...flat(sections), ...flat(content)]);
      assert.deepEqual(sorted(of.read(after)), sorted(expected), after);
      assertKeepsLines(after.endsWith("\n") ? after : `${after}\n`, before.foreign.slice(0, -1));
    }),
    { numRuns: of.runs },
  );
}

/** Asserts that adding and removing keys gives the old text, except for white space at the end of the file. */
export function assertAddRemove(of: EntriesCase): void {
  const format = documentFormat(of.format, { dialect: of.dialect });
  fc.assert(
    fc.property(anySections(of), anySections(of), fc.integer(), (sections, fresh, seed) => {
      const { text } = print(of, sections, new Choices(seed));
      const content = new Map(
        [...fresh].filter(([name, entries]) =>
          name !== ""
            ? ![...sections.keys()].some((key) => key.toLowerCase() === name.toLowerCase()) &&
              entries.size > 0
            : !sections.has(""),
        ),
      );
      const added = format.edit(text, asContent(content));
      const removed = format.edit(added.text, new Map(), { remove: added.managed });
      const squeeze = (all: string): string => all.replaceAll(/(?:\r?\n)+/g, "\n").trimEnd();
      assert.equal(squeeze(removed.text), squeeze(text));
    }),
    { numRuns: of.runs },
  );
}

function sorted(map: ReadonlyMap<string, string>): [string, string][] {
  return [...map].toSorted(([a], [b]) => (a < b ? -1 : 1));
}
