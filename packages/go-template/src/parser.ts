import { TemplateError, type Place } from "./errors.ts";
import { lex } from "./lexer.ts";
import { MAX_NESTING } from "./limits.ts";
import { readChar, readNumber, readString } from "./literal.ts";
import type { Branch, Command, Node, NodeList, Operand, Pipeline } from "./node.ts";
import type { Token, TokenKind } from "./token.ts";

/** A parsed source: its own body, and the templates that it defines. */
export interface ParsedTemplate {
  readonly body: NodeList;
  readonly defined: ReadonlyMap<string, NodeList>;
}

/** End of a list of nodes. */
type ListEnd = "end" | "else" | "end of text";

/**
 * Parses a template, as Go's text/template/parse does.
 * @param functions whether a name may be called
 * @throws TemplateError `syntax`, `unknown_function`, `limit`
 */
export function parse(name: string, text: string, functions: (name: string) => boolean): ParsedTemplate {
  return new Parser(name, text, functions).parse();
}

class Parser {
  readonly #name: string;
  /** Offset of the first character of each line. */
  readonly #lineStarts: readonly number[];
  readonly #functions: (name: string) => boolean;
  readonly #tokens: readonly Token[];
  readonly #defined = new Map<string, NodeList>();
  #at = 0;
  /** Names in scope, innermost last. */
  #variables: string[] = ["$"];
  #rangeDepth = 0;
  #nesting = 0;

  constructor(name: string, text: string, functions: (name: string) => boolean) {
    this.#name = name;
    this.#lineStarts = [0, ...Array.from(text.matchAll(/\n/g), (match) => match.index + 1)];
    this.#functions = functions;
    this.#tokens = lex(text, (problem, offset) => this.#fail(problem, offset));
  }

  parse(): ParsedTemplate {
    const body: Node[] = [];
    while (this.#peekNonSpace().kind !== "end of text") {
      const node = this.#define() ?? this.#node();
      if (node === "end" || node === "else")
        this.#fail(`{{${node}}} without an opening action`, this.#previousOffset());
      if (node !== "defined") body.push(node);
    }
    return { body, defined: this.#defined };
  }

  /** Parses `{{define "name"}}…{{end}}`, which is only allowed at the top level. */
  #define(): "defined" | undefined {
    const start = this.#at;
    if (this.#next().kind === "open") {
      const keyword = this.#nextNonSpace();
      if (keyword.kind === "keyword" && keyword.text === "define") {
        const name = this.#templateName("define");
        this.#expectClose("define");
        this.#addTemplate(name, keyword);
        return "defined";
      }
    }
    this.#at = start;
    return undefined;
  }

  /** Parses the body of `define` and `block`, in its own scope. */
  #addTemplate(name: string, keyword: Token): void {
    const [variables, rangeDepth] = [this.#variables, this.#rangeDepth];
    this.#variables = ["$"];
    this.#rangeDepth = 0;
    const { list, end } = this.#list(keyword);
    if (end !== "end") this.#fail(`unexpected {{else}} in ${keyword.text}`, this.#previousOffset());
    [this.#variables, this.#rangeDepth] = [variables, rangeDepth];
    const earlier = this.#defined.get(name);
    if (earlier === undefined || isEmpty(earlier)) this.#defined.set(name, list);
    else if (!isEmpty(list))
      this.#fail(`the template ${JSON.stringify(name)} is defined twice`, keyword.offset);
  }

  #list(opener: Token): { list: NodeList; end: ListEnd } {
    if (++this.#nesting > MAX_NESTING) this.#tooDeep(opener.offset);
    const list: Node[] = [];
    while (this.#peekNonSpace().kind !== "end of text") {
      const node = this.#node();
      if (node === "end" || node === "else") {
        this.#nesting--;
        return { list, end: node };
      }
      list.push(node);
    }
    return this.#fail(`{{${opener.text}}} has no {{end}}`, opener.offset);
  }

  #node(): Node | "end" | "else" {
    const token = this.#nextNonSpace();
    if (token.kind === "text") return { kind: "text", text: token.text };
    if (token.kind !== "open") this.#unexpected(token, "the template");
    const first = this.#nextNonSpace();
    if (first.kind === "keyword" && first.text !== "nil") return this.#keyword(first);
    this.#backup();
    return {
      kind: "action",
      place: this.#place(first.offset),
      pipeline: this.#pipeline("an action", "close"),
    };
  }

  #keyword(keyword: Token): Node | "end" | "else" {
    const place = this.#place(keyword.offset);
    switch (keyword.text) {
      case "if":
      case "with":
      case "range":
        return this.#branch(keyword.text, keyword);
      case "end":
        this.#expectClose("end");
        return "end";
      case "else": {
        // {{else if}} and {{else with}}: the next branch reads the word.
        const next = this.#peekNonSpace();
        if (next.kind !== "keyword" || (next.text !== "if" && next.text !== "with"))
          this.#expectClose("else");
        return "else";
      }
      case "break":
      case "continue":
        if (this.#rangeDepth === 0) this.#fail(`{{${keyword.text}}} outside of {{range}}`, keyword.offset);
        this.#expectClose(keyword.text);
        return { kind: keyword.text, place };
      case "template": {
        const name = this.#templateName("template");
        const closes = this.#nextNonSpace().kind === "close";
        if (!closes) this.#backup();
        return {
          kind: "template",
          place,
          name,
          pipeline: closes ? undefined : this.#pipeline("template", "close"),
        };
      }
      case "block": {
        const name = this.#templateName("block");
        const pipeline = this.#pipeline("block", "close");
        this.#addTemplate(name, keyword);
        return { kind: "template", place, name, pipeline };
      }
      default:
        return this.#fail(`{{${keyword.text}}} is not allowed here`, keyword.offset);
    }
  }

  #branch(kind: Branch["kind"], keyword: Token): Branch {
    const scope = this.#variables.length;
    const pipeline = this.#pipeline(kind, "close");
    if (kind === "range") this.#rangeDepth++;
    const { list: body, end } = this.#list(keyword);
    if (kind === "range") this.#rangeDepth--;
    const otherwise = end === "else" ? this.#otherwise(kind, keyword) : [];
    this.#variables.length = scope;
    return { kind, place: this.#place(keyword.offset), pipeline, body, otherwise };
  }

  #otherwise(kind: Branch["kind"], keyword: Token): NodeList {
    const next = this.#peek();
    const word = next.kind === "space" ? this.#peekNonSpace() : next;
    if (word.kind === "keyword") {
      if (word.text !== kind) this.#fail(`{{else ${word.text}}} cannot continue {{${kind}}}`, word.offset);
      this.#nextNonSpace();
      if (++this.#nesting > MAX_NESTING) this.#tooDeep(word.offset);
      const branch = this.#branch(kind, word);
      this.#nesting--;
      return [branch];
    }
    const { list, end } = this.#list(keyword);
    if (end !== "end") this.#fail("a second {{else}}", this.#previousOffset());
    return list;
  }

  #pipeline(context: string, end: TokenKind): Pipeline {
    const first = this.#peekNonSpace();
    const { variables, isAssignment } = this.#declarations(context);
    const commands: Command[] = [];
    for (;;) {
      const token = this.#nextNonSpace();
      if (token.kind === end) break;
      if (!OPERAND_STARTS.has(token.kind) && !(token.kind === "keyword" && token.text === "nil")) {
        this.#unexpected(token, context);
      }
      this.#backup();
      commands.push(this.#command());
    }
    if (commands.length === 0) this.#fail(`${context} has no value`, first.offset);
    for (const { operands, place } of commands.slice(1)) {
      if (CONSTANTS.has(operands[0].kind)) this.#failAt("a constant cannot take a value from |", place);
    }
    return { place: this.#place(first.offset), variables, isAssignment, commands };
  }

  /** Reads `$x :=`, `$x =`, and in range `$i, $x :=`. Other tokens belong to the commands. */
  #declarations(context: string): { variables: readonly string[]; isAssignment: boolean } {
    const variables: string[] = [];
    for (;;) {
      const start = this.#at;
      const variable = this.#nextNonSpace();
      if (variable.kind !== "variable") {
        this.#at = start;
        if (variables.length > 0 && context !== "range") this.#unexpected(variable, context);
        return { variables, isAssignment: false };
      }
      const token = this.#nextNonSpace();
      if (token.kind === "declare" || token.kind === "assign") {
        variables.push(variable.text);
        this.#variables.push(variable.text);
        return { variables, isAssignment: token.kind === "assign" };
      }
      if (token.kind !== "character" || token.text !== ",") {
        this.#at = start;
        return { variables, isAssignment: false };
      }
      if (context !== "range" || variables.length > 0)
        this.#fail(`too many variables in ${context}`, token.offset);
      variables.push(variable.text);
      this.#variables.push(variable.text);
      const next = this.#peekNonSpace();
      if (next.kind !== "variable" && next.kind !== "close") {
        this.#fail("range can only set variables", next.offset);
      }
    }
  }

  #command(): Command {
    const operands: Operand[] = [];
    const first = this.#peekNonSpace();
    for (;;) {
      this.#peekNonSpace();
      const operand = this.#operand();
      if (operand !== undefined) operands.push(operand);
      const token = this.#next();
      if (token.kind === "space") continue;
      if (token.kind === "close" || token.kind === "right paren") this.#backup();
      else if (token.kind !== "pipe") this.#unexpected(token, "a command");
      break;
    }
    const [head, ...rest] = operands;
    if (head === undefined) this.#fail("an empty command", first.offset);
    return { place: this.#place(first.offset), operands: [head, ...rest] };
  }

  /** A term with the fields that follow it without a space. */
  #operand(): Operand | undefined {
    const term = this.#term();
    if (term === undefined || this.#peek().kind !== "field") return term;
    const fields: string[] = [];
    while (this.#peek().kind === "field") fields.push(this.#next().text.slice(1));
    if (term.kind === "field" || term.kind === "variable")
      return { ...term, fields: [...term.fields, ...fields] };
    if (CONSTANTS.has(term.kind)) this.#failAt("a constant has no fields", term.place);
    return { kind: "chain", of: term, fields, place: term.place };
  }

  #term(): Operand | undefined {
    const token = this.#nextNonSpace();
    const place = this.#place(token.offset);
    switch (token.kind) {
      case "identifier":
        if (!this.#functions(token.text)) {
          throw new TemplateError(
            "unknown_function",
            `there is no function "${token.text}"`,
            this.#name,
            place,
          );
        }
        return { kind: "function", name: token.text, place };
      case "dot":
        return { kind: "dot", place };
      case "keyword":
        if (token.text !== "nil")
          return this.#fail(`the keyword ${token.text} is not allowed here`, token.offset);
        return { kind: "nil", place };
      case "variable":
        if (!this.#variables.includes(token.text))
          this.#fail(`undefined variable ${token.text}`, token.offset);
        return { kind: "variable", name: token.text, fields: [], place };
      case "field":
        return { kind: "field", fields: [token.text.slice(1)], place };
      case "bool":
        return { kind: "bool", value: token.text === "true", place };
      case "char":
        return {
          kind: "number",
          value: readChar(token.text) ?? this.#fail("not a character", token.offset),
          place,
        };
      case "number": {
        const value = readNumber(token.text);
        if (value === undefined) this.#fail("not a number, or a number beyond 64 bits", token.offset);
        return { kind: "number", value, place };
      }
      case "string": {
        const value = readString(token.text);
        if (value === undefined) this.#fail("unknown escape in a text", token.offset);
        return { kind: "string", value, place };
      }
      case "left paren": {
        if (++this.#nesting > MAX_NESTING) this.#tooDeep(token.offset);
        const pipeline = this.#pipeline("a parenthesis", "right paren");
        this.#nesting--;
        return { kind: "pipeline", pipeline, place };
      }
      default:
        this.#backup();
        return undefined;
    }
  }

  #templateName(context: string): string {
    const token = this.#nextNonSpace();
    if (token.kind !== "string") this.#unexpected(token, context);
    return readString(token.text) ?? this.#fail("unknown escape in a text", token.offset);
  }

  #expectClose(context: string): void {
    const token = this.#nextNonSpace();
    if (token.kind !== "close") this.#unexpected(token, context);
  }

  #next(): Token {
    return (
      this.#tokens[this.#at++] ?? this.#tokens[this.#tokens.length - 1] ?? this.#fail("unexpected end", 0)
    );
  }

  #backup(): void {
    this.#at--;
  }

  #peek(): Token {
    const token = this.#next();
    this.#backup();
    return token;
  }

  #nextNonSpace(): Token {
    if (this.#peek().kind === "space") this.#next();
    return this.#next();
  }

  /** Returns the next token after space, and skips the space. */
  #peekNonSpace(): Token {
    const token = this.#nextNonSpace();
    this.#backup();
    return token;
  }

  #previousOffset(): number {
    return this.#tokens[this.#at - 1]?.offset ?? 0;
  }

  #place(offset: number): Place {
    let [low, high] = [0, this.#lineStarts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.#lineStarts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return { line: low + 1, column: offset - (this.#lineStarts[low] ?? 0) + 1 };
  }

  #unexpected(token: Token, context: string): never {
    this.#fail(
      `unexpected ${token.kind === "character" ? `"${token.text}"` : token.kind} in ${context}`,
      token.offset,
    );
  }

  #tooDeep(offset: number): never {
    throw new TemplateError("limit", `nested deeper than ${MAX_NESTING}`, this.#name, this.#place(offset));
  }

  #fail(problem: string, offset: number): never {
    this.#failAt(problem, this.#place(offset));
  }

  #failAt(problem: string, place: Place): never {
    throw new TemplateError("syntax", problem, this.#name, place);
  }
}

const OPERAND_STARTS: ReadonlySet<TokenKind> = new Set([
  "bool",
  "char",
  "dot",
  "field",
  "identifier",
  "number",
  "string",
  "variable",
  "left paren",
]);

const CONSTANTS: ReadonlySet<Operand["kind"]> = new Set(["bool", "dot", "nil", "number", "string"]);

/** Whether the template has only white space. In Go such a template can be defined again. */
function isEmpty(list: NodeList): boolean {
  return list.every((node) => node.kind === "text" && node.text.trim() === "");
}
