import {
  LineCounter,
  isMap,
  isPair,
  isScalar,
  isSeq,
  parseDocument,
  visit,
  type Document,
  type Node,
} from "yaml";
import { ConfigError, type ConfigProblem } from "./problem.ts";
import type { Locate } from "./validate.ts";

/** Maximum size of a configuration, in bytes. Usual ones have some kilobytes; large YAML takes much memory to parse. */
export const MAX_CONFIG_BYTES = 1024 * 1024;
/** Maximum number of alias resolutions, so that nested aliases cannot fill the memory. */
const MAX_ALIASES = 100;

/** A parsed YAML file with the place of each key. */
export interface ConfigDocument {
  readonly source: string;
  /** The plain value; an empty document is `{}`. */
  readonly value: unknown;
  /** Place of the key at `path`, or of its nearest existing ancestor. Line and column count from 1. */
  position(path: readonly PropertyKey[]): { line: number; column: number };
}

/**
 * Parses one YAML 1.2 document strictly: no duplicate keys, no tags, one document.
 *
 * @param source name of the file in messages
 * @throws ConfigError `config_invalid` with line and column. It never holds the parser's own message, which quotes the input
 */
export function parseConfigDocument(source: string, text: string): ConfigDocument {
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES) {
    throw invalid({ source, line: 1, column: 1, key: "", message: `larger than ${MAX_CONFIG_BYTES} bytes` });
  }
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: true,
    version: "1.2",
  });
  const problems = [...document.errors, ...document.warnings].map((fault) => {
    const { line, col } = lines.linePos(fault.pos[0]);
    return { source, line, column: col, key: "", message: yamlFault(fault.code) };
  });
  if (problems.length > 0) throw new ConfigError("config_invalid", problems);
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES }) ?? {};
  } catch {
    const { offset, message } = aliasFault(document);
    const { line, col } = lines.linePos(offset);
    throw invalid({ source, line, column: col, key: "", message });
  }
  return { source, value, position: (path) => positionOf(document, lines, path) };
}

/** Finds the places of keys in a text that was parsed before. Keeps only the text, and parses it again on the first call. */
export function locateIn(source: string, text: string): Locate {
  let document: ConfigDocument | undefined;
  return (path) => {
    document ??= parseConfigDocument(source, text);
    return { source, ...document.position(path) };
  };
}

function invalid(problem: ConfigProblem): ConfigError {
  return new ConfigError("config_invalid", [problem]);
}

function yamlFault(code: string): string {
  if (code === "DUPLICATE_KEY") return "this key is given twice";
  if (code === "TAB_AS_INDENT") return "a tab is used for indentation; YAML takes spaces only";
  if (code === "MULTIPLE_DOCS") return "holds more than one document";
  return `not valid YAML (${code.toLowerCase().replaceAll("_", " ")})`;
}

/** The fault in the aliases of a document that has no plain value. */
function aliasFault(document: Document): { offset: number; message: string } {
  let offset = 0;
  let message = `uses more than ${MAX_ALIASES} aliases`;
  visit(document, {
    Alias: (_key, alias) => {
      offset = rangeStart(alias) ?? 0;
      if (alias.resolve(document) !== undefined) return undefined;
      message = "this alias (*) names no anchor (&) above it";
      return visit.BREAK;
    },
  });
  return { offset, message };
}

function positionOf(
  document: Document,
  lines: LineCounter,
  path: readonly PropertyKey[],
): { line: number; column: number } {
  let node: unknown = document.contents;
  let offset = rangeStart(node) ?? 0;
  for (const step of path) {
    let next: unknown;
    if (isMap(node)) {
      const pair = node.items.find((item) => isPair(item) && isScalar(item.key) && item.key.value === step);
      if (pair === undefined) break;
      offset = rangeStart(pair.key) ?? offset;
      next = pair.value;
    } else if (isSeq(node) && typeof step === "number") {
      next = node.items[step];
      offset = rangeStart(next) ?? offset;
    } else break;
    node = next;
  }
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

function rangeStart(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0];
}
