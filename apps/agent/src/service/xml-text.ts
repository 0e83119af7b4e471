import { serviceRefused } from "./service.ts";

/** Characters that no XML 1.0 document can hold, in any form. */
// eslint-disable-next-line no-control-regex -- control characters are what is looked for
const IMPOSSIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/;

/** A text as content of an XML element. @throws AgentError `service_refused` if XML cannot hold it */
export function xmlText(text: string): string {
  if (IMPOSSIBLE.test(text) || !text.isWellFormed()) {
    throw serviceRefused(
      `Cannot make a service of ${JSON.stringify(text)}: its name has characters that no service file can hold`,
      "Put the program into another folder, and run it from there.",
    );
  }
  // A line end would be read as another one.
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll("\r", "&#13;");
}
