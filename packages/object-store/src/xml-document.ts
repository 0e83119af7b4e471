import { DOMParser, onWarningStopParsing, type Element } from "@xmldom/xmldom";
import { ObjectStoreError } from "./errors.ts";

/** Bytes of the largest document: 1000 entries with names of 1024 bytes, percent-encoded, and their other members. */
export const MAX_XML_BYTES = 8 << 20;
/** Node type of an element (DOM, section 4.4). */
const ELEMENT = 1;

/** One element of a response: its direct children by their local names, because stores differ in their namespaces. */
export class XmlElement {
  readonly #element: Element;

  constructor(element: Element) {
    this.#element = element;
  }

  get name(): string {
    return this.#element.localName ?? this.#element.tagName;
  }

  children(name: string): XmlElement[] {
    const found: XmlElement[] = [];
    for (let node = this.#element.firstChild; node !== null; node = node.nextSibling) {
      if (node.nodeType !== ELEMENT) continue;
      const child = new XmlElement(node as Element);
      if (child.name === name) found.push(child);
    }
    return found;
  }

  /** Text of the only child with this name; undefined if there is none. @throws ObjectStoreError `damaged`: several */
  text(name: string): string | undefined {
    const [first, second] = this.children(name);
    if (second !== undefined) throw damagedXml(`<${this.name}> has more than one <${name}>`);
    return first === undefined ? undefined : first.#ownText();
  }

  /** @throws ObjectStoreError `damaged`: none, or it is empty */
  required(name: string): string {
    const text = this.text(name);
    if (text === undefined || text === "") throw damagedXml(`<${this.name}> has no <${name}>`);
    return text;
  }

  /** @throws ObjectStoreError `damaged`: there are elements in the text */
  #ownText(): string {
    let text = "";
    for (let node = this.#element.firstChild; node !== null; node = node.nextSibling) {
      if (node.nodeType === ELEMENT) throw damagedXml(`<${this.name}> has elements in place of text`);
      text += node.nodeValue ?? "";
    }
    return text;
  }
}

/**
 * Reads a response of the store. A document type is refused, because it could define entities.
 *
 * @param roots names that the root element may have
 * @throws ObjectStoreError `damaged`
 */
export function readXml(text: string, ...roots: readonly string[]): XmlElement {
  let root: Element | null;
  // Stores send white space before a document while they work.
  const trimmed = text.trimStart();
  if (trimmed.includes("<!DOCTYPE")) throw damagedXml("it has a document type");
  try {
    root = new DOMParser({ onError: onWarningStopParsing }).parseFromString(
      trimmed,
      "text/xml",
    ).documentElement;
  } catch {
    // The parser's message may quote its input.
    throw damagedXml("it is not well-formed XML");
  }
  if (root === null) throw damagedXml("it is empty");
  const element = new XmlElement(root);
  if (!roots.includes(element.name)) throw damagedXml(`it is not a <${roots.join("> or <")}>`);
  return element;
}

export function damagedXml(reason: string): ObjectStoreError {
  return new ObjectStoreError("damaged", `Cannot read the response of the object store: ${reason}`);
}
