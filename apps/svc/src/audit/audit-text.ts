import { BRAND } from "../brand.ts";

/** Characters of one text of an audit record: names and paths are far shorter. */
const MAX_TEXT = 300;
/** What databases do not take in a text, or a reader's terminal would trip over. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;
/** One of our tokens, whole or in part: no caller puts one into an event on purpose, but a path may hold one. */
const OWN_TOKEN = new RegExp(
  `(${[BRAND.adminTokenPrefix, BRAND.proxyTokenPrefix, BRAND.agentTokenPrefix].join("|")})[0-9A-Za-z]+`,
  "g",
);

/** A text as it is written down: whole characters only, no control characters, no token of ours, bounded. */
export function auditText(text: string | undefined): string | undefined {
  return text
    ?.toWellFormed()
    .replaceAll(CONTROL, "\uFFFD")
    .replaceAll(OWN_TOKEN, "$1***")
    .slice(0, MAX_TEXT)
    .toWellFormed();
}
