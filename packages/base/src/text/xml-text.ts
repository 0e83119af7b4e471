/** Escapes a text for the content of an XML element. It is not for attributes: quotes stay as they are. */
export function xmlText(text: string): string {
  return (
    text
      .replaceAll("&", "&amp;")
      .replaceAll("<", "&lt;")
      .replaceAll(">", "&gt;")
      // A parser reads a plain CR as LF (XML 1.0, section 2.11).
      .replaceAll("\r", "&#13;")
  );
}
