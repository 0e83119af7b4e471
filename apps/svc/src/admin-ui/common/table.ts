import { html, type Html } from "@devplat/web-kit";

export interface TableOptions {
  /** Read out, but not shown. */
  readonly caption: string;
  readonly columns: readonly string[];
  /** Whether a last column without a visible heading has buttons. */
  readonly actions?: boolean;
  readonly rows: readonly Html[];
}

export function dataTable({ caption, columns, actions = false, rows }: TableOptions): Html {
  return html`<table class="table">
    <caption class="visually-hidden">
      ${caption}
    </caption>
    <thead>
      <tr>
        ${columns.map((name) => html`<th scope="col">${name}</th>`)}
        ${actions ? html`<th scope="col"><span class="visually-hidden">Actions</span></th>` : ""}
      </tr>
    </thead>
    <tbody>
      ${rows}
    </tbody>
  </table>`;
}
