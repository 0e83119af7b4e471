import { withoutCredentials } from "../credentials/token-format.ts";

/** Characters of one text of an audit record: names and paths are far shorter. */
const MAX_TEXT = 300;
/** Characters that databases refuse in a text, or that a terminal obeys. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

/** A text as it is recorded: complete characters, no control characters, no token, limited length. */
export function auditText(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const clean = text.toWellFormed().replaceAll(CONTROL, "\uFFFD");
  // A path may hold a token, though no caller puts one into an event on purpose.
  return withoutCredentials(clean).slice(0, MAX_TEXT).toWellFormed();
}
