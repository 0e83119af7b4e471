import { raw, type Html } from "@devplat/web-kit";

/**
 * Renders a text of the configuration (CommonMark). HTML in it is shown as text, links of schemes that could run
 * something stay text (markdown-it's own validator), and images become links: a page loads nothing from elsewhere.
 *
 * @returns undefined for an empty text
 */
export async function renderMarkdown(text: string): Promise<Html | undefined> {
  if (text.trim() === "") return undefined;
  // Loaded only where a text is configured: it costs more to start than the whole web server.
  const { default: MarkdownIt } = await import("markdown-it");
  const markdown = new MarkdownIt({ html: false, linkify: true }).disable("image");
  return raw(markdown.render(text));
}
