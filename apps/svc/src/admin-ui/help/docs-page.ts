import { html, type Html } from "@devplat/web-kit";
import type { Access } from "../../administration/permission.ts";
import { listCard } from "../common/card.ts";
import type { Page } from "../common/layout.ts";
import { dataTable } from "../common/table.ts";

const WHO = { public: "anybody", user: "users", admin: "admins" } as const;

/** An operation of the API as the page lists it. */
export interface ListedOperation {
  readonly tag: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly access: Access | "public";
}

export interface DocsPageOptions {
  readonly operations: readonly ListedOperation[];
  readonly baseUrl: string;
}

/** The administration API at a glance; its OpenAPI document has the fields and answers. */
export function docsPage({ operations, baseUrl }: DocsPageOptions): Page {
  const tags = [...new Set(operations.map(({ tag }) => tag))];
  return {
    title: "API",
    lead: html`JSON over HTTP, with a session or administration token (<code>svcr_…</code>) as bearer. Fields,
      answers and errors are in the <a href="/api/openapi.json">OpenAPI document</a>.`,
    content: html`<section class="card stack" aria-labelledby="example-heading">
        <h2 id="example-heading">For example</h2>
        <pre
          class="code"
          tabindex="0"
        ><code>curl -sS ${baseUrl}/api/tokens -H "Authorization: Bearer $SVC_TOKEN"</code></pre>
      </section>
      ${tags.map((tag) =>
        section(
          tag,
          operations.filter((each) => each.tag === tag),
        ),
      )}`,
  };
}

function section(tag: string, operations: readonly ListedOperation[]): Html {
  const id = `tag-${tag.toLowerCase().replaceAll(/\W+/g, "-")}`;
  return listCard({
    id,
    title: tag,
    content: dataTable({
      caption: `Operations of ${tag}`,
      columns: ["Request", "Does", "For"],
      rows: operations.map(
        ({ method, path, summary, access }) =>
          html`<tr>
            <th scope="row" class="name"><code>${method} ${path}</code></th>
            <td data-label="Does"><span>${summary}</span></td>
            <td data-label="For" class="nowrap">${WHO[access]}</td>
          </tr>`,
      ),
    }),
  });
}
