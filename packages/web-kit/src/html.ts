/** Tagged templates that escape their values. Only `raw` inserts text without escaping. */
export { html, raw } from "hono/html";
export type { HtmlEscapedString } from "hono/utils/html";
