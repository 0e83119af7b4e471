import { xmlText } from "@devplat/base/xml-text";
import { serviceRefused } from "./service.ts";

/** Characters that no XML 1.0 document can hold, in any form. */
// eslint-disable-next-line no-control-regex -- control characters are what is looked for
const IMPOSSIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/;

/** A text as content of an element in the XML file of a service. @throws AgentError `service_refused` if XML cannot hold it */
export function serviceXml(text: string): string {
  if (IMPOSSIBLE.test(text) || !text.isWellFormed()) {
    throw serviceRefused(
      `Cannot make a service of ${JSON.stringify(text)}: its name has characters that no service file can hold`,
      "Put the program into another folder, and run it from there.",
    );
  }
  return xmlText(text);
}
