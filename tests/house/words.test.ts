import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readSources } from "./sources.ts";

/** Folders whose text is plain. Add a folder once it has no findings. */
const CLEAN_FOLDERS = [
  "apps/agent/",
  "apps/svc/",
  "bench/",
  "packages/base/",
  "packages/cli/",
  "packages/config/",
  "packages/document-edit/",
  "packages/fuse-protocol/",
  "packages/git-mirror/",
  "packages/git-protocol/",
  "packages/git-store/",
  "packages/go-template/",
  "packages/http-client/",
  "packages/oauth/",
  "packages/object-store/",
  "packages/secret-store/",
  "packages/ssh-protocol/",
  "packages/web-kit/",
  "tests/house/",
  "tests/interop/",
  "tests/testkit/",
  "tools/",
];

const SOURCES = readSources([]);

/** Maximum title of a test, in characters, without the number of a rule. */
const MAX_TITLE_LENGTH = 80;

/** Words that have a plainer form, and the form to write instead. */
const WORDS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\banew\b/i, "again"],
  [/\baside\b/i, "a temporary file, or apart from"],
  [/\bbeside\b/i, "next to"],
  [/\bof ours\b/i, "our"],
  [/\bof (?:others|theirs)\b/i, "the owner, or other programs"],
  [/\bby now\b/i, "already"],
  [/\b(?:whatever|whoever)\b/i, "any, or the noun itself"],
  [/\bof late\b/i, "recently"],
  [/\bmeanwhile\b/i, "while, or at the same time"],
  [/\bat once\b/i, "immediately, or concurrently"],
  [/\bat most(?=[.,;:)]|$)/i, "maximum, before the noun"],
  [/\b(?:stands|lies)\b(?! for)/i, "is"],
  [/\bdeeds?\b/i, "action"],
  [/\bmend(?:s|ed|ing)?\b/i, "repair"],
  [/\blet(?:s|ting)? go of\b/i, "release"],
  [/\bdoubt(?:s|ed)?\b/i, "contested, or not verified"],
  [/\b(?:a|the|that|recent) yes\b/i, "authorization"],
  [/(?<!\bthere )\b(?:is|are|was) no (?!longer\b|more\b|other\b)\w/i, "is not a …"],
  [/\bto be (?:released|closed|freed)\./i, "The caller must release it."],
];

/** First words with which a comment must not begin: its subject comes first. */
const FIRST_WORDS = /^(?:(?:What|Whoever|Whatever|Of|To be) )/;

interface Prose {
  /** Counts from 1. */
  readonly line: number;
  readonly kind: "comment" | "string" | "title";
  readonly text: string;
}

interface Finding {
  readonly line: number;
  readonly word: string;
  readonly instead: string;
}

const COMMENT_LINE = /^\s*(?:\/\*\*?|\*\/|\*(?= |$)|\/\/)\s?/;
const TITLE = /^\s*(?:await )?(?:it|test|describe|t\.test)(?:\.\w+)?\(\s*(["'`])((?:\\.|(?!\1).)*)\1/;
const RULE_NUMBER = / \[(?:agent|svc) [\d., ]+\]$/;
/** The title of a call whose first argument is on a line of its own. */
const TITLE_BELOW = /^\s*(?:await )?(?:it|test|describe|t\.test)(?:\.\w+)?\($/;
const STRING = /"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g;

/** Comments, titles of tests and, outside tests, strings of several words. A comment of several lines is one text. */
function proseOf(source: string, isTest: boolean): Prose[] {
  const found: Prose[] = [];
  const lines = source.split("\n");
  let comment: { line: number; parts: string[] } | undefined;
  const endComment = (): void => {
    if (comment === undefined) return;
    const text = comment.parts.join("\n").trim();
    if (text !== "") found.push({ line: comment.line, kind: "comment", text });
    comment = undefined;
  };
  lines.forEach((content, index) => {
    if (COMMENT_LINE.test(content)) {
      if (/^\s*\/\*/.test(content)) endComment();
      comment ??= { line: index + 1, parts: [] };
      comment.parts.push(content.replace(COMMENT_LINE, "").replace(/\s*\*\/$/, ""));
      return;
    }
    endComment();
    const below = TITLE_BELOW.test(lines[index - 1] ?? "") ? `it(${content.trim()}` : content;
    const title = TITLE.exec(below)?.[2];
    if (title !== undefined)
      found.push({ line: index + 1, kind: "title", text: title.replace(RULE_NUMBER, "") });
    else if (!isTest) {
      for (const [, quoted, template] of content.matchAll(STRING)) {
        const text = quoted ?? template ?? "";
        if (/\w \w+ \w/.test(text)) found.push({ line: index + 1, kind: "string", text });
      }
    }
  });
  endComment();
  return found;
}

function findingsOf(source: string, isTest: boolean): Finding[] {
  return proseOf(source, isTest).flatMap(({ line, kind, text }) => {
    // Line breaks of a comment may separate the words of a pattern.
    const flat = text.replaceAll("\n", " ");
    const findings = WORDS.flatMap(([pattern, instead]): Finding[] => {
      const found = pattern.exec(flat);
      if (found === null) return [];
      const breaks = text.slice(0, found.index).split("\n").length - 1;
      return [{ line: line + breaks, word: found[0], instead }];
    });
    const first = kind === "comment" ? FIRST_WORDS.exec(text)?.[0] : undefined;
    if (first !== undefined) findings.push({ line, word: first.trim(), instead: "the subject first" });
    if (kind === "title" && text.length > MAX_TITLE_LENGTH)
      findings.push({
        line,
        word: `${text.slice(0, 20)}…`,
        instead: `a title of at most ${MAX_TITLE_LENGTH} characters; this one has ${text.length}`,
      });
    return findings;
  });
}

describe("words", () => {
  it("finds words in comments, strings and titles, with their lines", () => {
    const source = [
      "/** What it",
      " * keeps by",
      " * now. */",
      'const text = "a file aside of it";',
      'it("waits meanwhile", () => {});',
      "it(",
      `  "${"x".repeat(81)}",`,
      "// There is no file; it is no longer here.",
      'const aside = "aside";',
    ].join("\n");
    assert.deepEqual(
      findingsOf(source, false).map(({ line, word }) => [line, word]),
      [
        [2, "by now"],
        [1, "What"],
        [4, "aside"],
        [5, "meanwhile"],
        [7, `${"x".repeat(20)}…`],
      ],
    );
  });

  it("ignores the strings of a test except its title", () => {
    assert.deepEqual(findingsOf('const text = "a file aside of it";', true), []);
  });

  for (const folder of CLEAN_FOLDERS) {
    it(`are plain in ${folder}`, () => {
      const sources = SOURCES.filter(({ path }) => path.startsWith(folder));
      assert.ok(sources.length > 0);
      const findings = sources.flatMap(({ path, text, isTest }) =>
        findingsOf(text, isTest).map(
          ({ line, word, instead }) => `${path}:${line}: '${word}'; write: ${instead}`,
        ),
      );
      assert.deepEqual(findings, []);
    });
  }
});
