/** Marks around the part of a page that `npm run bench` writes. */
const BEGIN = "<!-- Written by npm run bench. Do not edit. -->\n";
const END = "<!-- End of the written part. -->\n";

/** A page with its written part replaced. @param path of the page, for the error */
export function withWrittenPart(path: string, page: string, text: string): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin)
    throw new Error(`Cannot write the figures of ${path}: its marks are missing.`);
  return `${page.slice(0, begin + BEGIN.length)}\n${text}\n\n${page.slice(end)}`;
}
