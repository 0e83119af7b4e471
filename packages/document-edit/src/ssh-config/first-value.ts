import type { EditMap } from "../contract.ts";
import type { Entry, Section } from "../core/entries.ts";
import { isMap } from "../core/value.ts";
import { DocumentEditError, errorAt } from "../errors.ts";
import { matchCriteria, patternsOf, type Subject } from "./criteria.ts";
import { ADDING_KEYWORDS, settingOf } from "./keywords.ts";
import { readSshConfig } from "./ssh-config.ts";
import { wordsOf } from "./words.ts";

/**
 * Refuses an edit with values that ssh would not use. For most keywords, ssh uses the first value in the file for a
 * host. Blocks that may match (`Match user`, `Match exec`) and included files are ignored.
 *
 * @throws DocumentEditError `unsupported`, with the line in `before` that ssh uses
 */
export function refuseUnusedValues(before: string, after: string, content: EditMap): void {
  const { sections } = readSshConfig(after, "existing");
  for (const [block, keywords] of content) {
    if (!isMap(keywords)) continue;
    for (const keyword of keywords.keys()) {
      const earlier = earlierValue(sections, content, block, keyword);
      if (earlier === undefined) continue;
      const problem = `ssh uses the first value for a host, so it would not use the rule's ${keyword} in the block "${block}"`;
      const advice = "move the line that sets it first below this block, or let the rule set it there";
      const present = sameEntry(earlier, sections, readSshConfig(before, "existing").sections);
      if (present === undefined) throw new DocumentEditError("unsupported", `${problem}: ${advice}`);
      throw errorAt("unsupported", `${problem}: ${advice}`, before, present.span.start);
    }
  }
}

/** The entry that ssh uses instead of the one in the block, for a host of this block. */
function earlierValue(
  sections: readonly Section[],
  content: EditMap,
  block: string,
  keyword: string,
): Entry | undefined {
  if (ADDING_KEYWORDS.has(keyword)) return undefined;
  for (const name of patternsOf(block)) {
    const first = firstEntry(sections, name, block, keyword);
    if (first === undefined) continue;
    const { section, entry } = first;
    if (section.name === block && entry.key === keyword) continue;
    const isSame =
      entry.key === keyword && wordsOf(entry.value).join(" ") === writtenIn(sections, block, keyword);
    if (!isSame && !isMeant(content, section, entry, block, keyword)) return entry;
  }
  return undefined;
}

/** First entry of a setting up to the block that ssh certainly uses for a host. Undefined if the block is not for the host. */
function firstEntry(
  sections: readonly Section[],
  name: string,
  block: string,
  keyword: string,
): { section: Section; entry: Entry } | undefined {
  let subject: Subject = { name, hostName: name };
  let found: { section: Section; entry: Entry } | undefined;
  let hasHostName = false;
  for (const section of sections) {
    const match = section.name === undefined ? "yes" : matchCriteria(section.name, subject);
    const isLast = section.name === block;
    if (isLast && match === "no") return undefined;
    if (match === "yes" || isLast) {
      const entry = section.entries.find(({ key }) => settingOf(key) === settingOf(keyword));
      if (entry !== undefined) found ??= { section, entry };
    }
    if (isLast) return found;
    const hostName = match === "no" ? undefined : section.entries.find(({ key }) => key === "HostName");
    if (hostName === undefined || hasHostName) continue;
    hasHostName = true;
    const value = wordsOf(hostName.value)
      .join(" ")
      .replace(/%[%h]/g, (token) => (token === "%h" ? name : "%"));
    subject = { name, hostName: match === "yes" ? value : undefined };
  }
  return found;
}

function writtenIn(sections: readonly Section[], block: string, keyword: string): string | undefined {
  const entries = sections.filter(({ name }) => name === block).flatMap((section) => section.entries);
  const entry = entries.find(({ key }) => key === keyword);
  return entry === undefined ? undefined : wordsOf(entry.value).join(" ");
}

/** True if the content itself sets the earlier value before the later one. ssh then reads the content in the same way. */
function isMeant(content: EditMap, section: Section, entry: Entry, block: string, keyword: string): boolean {
  if (section.name === undefined) return content.has(entry.key);
  const keywords = content.get(section.name);
  if (keywords === undefined || !isMap(keywords) || !keywords.has(entry.key)) return false;
  const blocks = [...content.keys()];
  if (section.name !== block) return blocks.indexOf(section.name) < blocks.indexOf(block);
  const keys = [...keywords.keys()];
  return keys.indexOf(entry.key) < keys.indexOf(keyword);
}

/** The same entry in the file before the edit, which moves lines. Undefined if the edit adds it. */
function sameEntry(entry: Entry, after: readonly Section[], before: readonly Section[]): Entry | undefined {
  const section = after.find(({ entries }) => entries.includes(entry));
  if (section === undefined) return undefined;
  const namesakes = (sections: readonly Section[]): readonly Section[] =>
    sections.filter(({ name }) => name === section.name);
  const present = namesakes(before)[namesakes(after).indexOf(section)];
  return present?.entries.find(({ key }) => key === entry.key);
}
