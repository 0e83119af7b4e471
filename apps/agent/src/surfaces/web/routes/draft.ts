import type { Context } from "hono";
import type { Environment } from "../../http-api/environment.ts";
import { MAX_BODY_BYTES, pathOf } from "../../http-api/request-checks.ts";
import { REPLACEMENT } from "../../../secrets/form-text.ts";
import { storePath } from "../../../secrets/url-path.ts";
import { MAX_FORM_BYTES } from "../state/form-limit.ts";
import { SECRETS_PREFIX } from "../pages/secrets/links.ts";
import { DRAFT_ACTIONS, type Draft } from "../state/draft.ts";

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
 * @param hasAccess whether the sender may use the pages. From other senders only a small form is read.
 */
export async function draftOf(c: Context<Environment>, hasAccess: boolean): Promise<Draft | undefined> {
  if (
    !mayHoldDraft(c) ||
    Number(c.req.header("Content-Length")) > (hasAccess ? MAX_FORM_BYTES : MAX_BODY_BYTES)
  )
    return undefined;
  const path = storePath(pathOf(c.env.incoming), SECRETS_PREFIX);
  const form = await c.req.text().then(
    (text) => new URLSearchParams(text),
    // The connection ended inside the form.
    () => undefined,
  );
  const action = DRAFT_ACTIONS.find((each) => each === form?.get("action"));
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
