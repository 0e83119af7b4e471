import type { Context } from "hono";
import type { Environment } from "../http-api/environment.ts";
import { MAX_BODY_BYTES, pathOf } from "../http-api/request-checks.ts";
import { REPLACEMENT } from "../../secrets/form-text.ts";
import { storePath } from "../../secrets/url-path.ts";
import { MAX_FORM_BYTES } from "./form-limit.ts";
import { SECRETS_PREFIX } from "./pages/secrets/links.ts";

const ACTIONS = ["save", "add", "remove", "new"] as const;

/** The text that was typed into a form whose action has failed. It goes back with the answer and is kept nowhere else. */
export interface Draft {
  readonly action: (typeof ACTIONS)[number];
  /** The secret, or for `new` the folder, that the form belongs to. */
  readonly path: string;
  /** As the form carried them; empty where it has none. */
  readonly version: string;
  readonly field: string;
  readonly name: string;
  readonly text: string;
  /** It held a NUL character, which the page shows as U+FFFD. */
  readonly damaged: boolean;
}

/** Whether a request brings a form whose text a failure must not lose. It has a length, as every browser's form has. */
export function mayHoldDraft(c: Context<Environment>): boolean {
  return (
    c.req.method === "POST" &&
    c.req.path.startsWith(SECRETS_PREFIX) &&
    c.req.header("Content-Length") !== undefined &&
    c.req.header("Transfer-Encoding") === undefined
  );
}

/**
 * The draft that a request holds, if it holds one.
 * @param letIn whether the sender may use the pages. Only a small form is read of anybody else.
 */
export async function draftOf(c: Context<Environment>, letIn: boolean): Promise<Draft | undefined> {
  if (!mayHoldDraft(c) || Number(c.req.header("Content-Length")) > (letIn ? MAX_FORM_BYTES : MAX_BODY_BYTES))
    return undefined;
  const path = storePath(pathOf(c.env.incoming), SECRETS_PREFIX);
  const form = await c.req.text().then(
    (text) => new URLSearchParams(text),
    // The connection ended inside the form.
    () => undefined,
  );
  const action = ACTIONS.find((each) => each === form?.get("action"));
  if (path === undefined || form === undefined || action === undefined) return undefined;
  const of = (key: string): string => form.get(key) ?? "";
  const [version, field, name, text] = [of("version"), of("field"), of("name"), of("text")];
  return { action, path, version, field, name, text, damaged: isDamaged(form) };
}

/** Whether a form holds a NUL character, or what is left of one after it was shown in a page. */
export function isDamaged(form: URLSearchParams): boolean {
  const typed = `${form.get("name") ?? ""}${form.get("text") ?? ""}`;
  return typed.includes("\0") || (form.get("damaged") === "true" && typed.includes(REPLACEMENT));
}
