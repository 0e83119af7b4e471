/** Export of an entry, as its docstring and its declaration describe it. */
export interface ApiExport {
  readonly name: string;
  /** Package that declares it, if that is another one. */
  readonly origin: string | undefined;
  readonly documentation: string;
  readonly tags: readonly { readonly name: string; readonly text: string }[];
  /** TypeScript, with the docstrings of its members. */
  readonly declaration: string;
}

export interface ApiEntry {
  /** As it is imported. */
  readonly name: string;
  readonly exports: readonly ApiExport[];
}

/** Markdown page of a package. Equal entries give equal text. */
export function renderPage(name: string, entries: readonly ApiEntry[]): string {
  const described = new Set<string>();
  return [
    `# API of ${name}`,
    "Made from the docstrings by `npm run api`. Sizes, limits, error codes and examples are in the README.",
    ...entries.flatMap((entry) => renderEntry(entry, described)),
  ]
    .join("\n\n")
    .concat("\n");
}

/** @param described exports that the page already has; those of the entry are added */
function renderEntry({ name, exports }: ApiEntry, described: Set<string>): string[] {
  const heading = `## \`${name}\``;
  const origins = new Set(exports.map(({ origin }) => origin));
  const [origin] = origins;
  if (origins.size === 1 && origin !== undefined) {
    return [heading, `Exports everything of \`${origin}\`, which has an API page of its own.`];
  }
  const sorted = exports.toSorted((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
  const fresh = sorted.filter((each) => !described.has(each.name));
  for (const each of fresh) described.add(each.name);
  const contents = sorted.map((each) => `[${each.name}](#${each.name.toLowerCase()})`).join(" ·\n");
  return [heading, contents, ...fresh.flatMap(renderExport)];
}

function renderExport({ name, documentation, tags, declaration }: ApiExport): string[] {
  const notes = tags.map((tag) => `- ${noteOf(tag.name, tag.text.replaceAll(/\s+/g, " "))}`);
  return [
    `### ${name}`,
    ...(documentation === "" ? [] : [documentation]),
    ...(notes.length === 0 ? [] : [notes.join("\n")]),
    `\`\`\`ts\n${withoutPrivateParts(declaration)}\n\`\`\``,
  ];
}

/** Text of a tag: `@param name text`, `@throws {Type} text`, and others. */
function noteOf(tag: string, text: string): string {
  if (tag === "param") return text.replace(/^(\w+)\s*/, "`$1`: ");
  if (tag === "throws") return `Throws ${text.replace(/^\{(\w+)\}/, "`$1`")}`;
  return tag === "returns" ? `Returns ${text}` : `${tag}: ${text}`;
}

/** Declaration without members that callers cannot use, and with plain names for links. */
function withoutPrivateParts(declaration: string): string {
  return declaration
    .replaceAll(/^ *(?:#private|private [^\n]*);\n/gm, "")
    .replaceAll(/\{@link ([^}]+)\}/g, "`$1`")
    .replace(/^export (?:declare )?/gm, "");
}
