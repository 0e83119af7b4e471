/** Tagged templates that escape what is put into them; `raw` is the one way around it. */
export { html, raw } from "hono/html";
export type { HtmlEscapedString } from "hono/utils/html";
