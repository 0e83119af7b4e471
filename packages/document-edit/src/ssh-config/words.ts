/** One argument, or text that ssh refuses. It may have quotes of both kinds, and `\\` before a quote or itself. */
export const WORD = /(?:"(?:\\["'\\]|[^"])*"|'(?:\\["'\\]|[^'])*'|\\["'\\ ]|[^\s"'])+/g;

/** An argument without its quotes and escapes (argv_split in OpenSSH's misc.c). */
export function readWord(word: string): string {
  return word.replace(
    /"((?:\\["'\\]|[^"])*)"|'((?:\\["'\\]|[^'])*)'|\\(["'\\ ])/g,
    (_, double: string | undefined, single: string | undefined, escaped: string | undefined) =>
      (double ?? single ?? "").replace(/\\(["'\\])/g, "$1") + (escaped ?? ""),
  );
}

/** The arguments of a line. */
export function wordsOf(text: string): readonly string[] {
  return (text.match(WORD) ?? []).map(readWord);
}
