import type { Identity } from "../identity/principal.ts";
import { html, type Assets, type Html } from "@devplat/web-kit";
import type { Access, Operation } from "../admin-api/operation.ts";
import { layout } from "./layout.ts";

const WHO: Readonly<Record<Access, string>> = { public: "anybody", user: "users", admin: "admins" };

export interface DocsPageOptions {
  readonly assets: Assets;
  readonly version: string;
  readonly identity: Identity | undefined;
  readonly operations: readonly Operation[];
  readonly baseUrl: string;
}

/** The administration API at a glance; its OpenAPI document has the fields and answers. */
export function docsPage({ assets, version, identity, operations, baseUrl }: DocsPageOptions): Html {
  const tags = [...new Set(operations.map(({ tag }) => tag))];
  return layout({
    title: "API",
    assets,
    version,
    identity,
    content: html`<div>
        <h1>API</h1>
        <p class="lead">
          JSON over HTTP, with a session or administration token (<code>svcr_…</code>) as bearer. Fields,
          answers and errors stand in the <a href="/api/openapi.json">OpenAPI document</a>.
        </p>
      </div>
      <section class="card stack" aria-labelledby="example-heading">
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
  });
}

function section(tag: string, operations: readonly Operation[]): Html {
  const id = `tag-${tag.toLowerCase().replaceAll(/\W+/g, "-")}`;
  return html`<section class="card flush" aria-labelledby="${id}">
    <div class="card-head"><h2 id="${id}">${tag}</h2></div>
    <table class="table">
      <caption class="visually-hidden">
        Operations of ${tag}
      </caption>
      <thead>
        <tr>
          <th scope="col">Request</th>
          <th scope="col">Does</th>
          <th scope="col">For</th>
        </tr>
      </thead>
      <tbody>
        ${operations.map(
          ({ method, path, summary, access }) =>
            html`<tr>
              <th scope="row" class="name"><code>${method} ${path}</code></th>
              <td data-label="Does"><span>${summary}</span></td>
              <td data-label="For" class="nowrap">${WHO[access]}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </section>`;
}
