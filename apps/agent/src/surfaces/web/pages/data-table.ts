import { html, type Html } from "@devplat/web-kit";

/*
 * Tables that are cards on a phone. Roles are written out because the browser does not see the cards as a table.
 */

/** A table with a heading of its own. @param heading id of the heading */
export function dataTable(
  look: string,
  heading: string,
  columns: readonly string[],
  rows: readonly Html[],
): Html {
  return html`<table class="table ${look}" role="table" aria-labelledby="${heading}">
    <thead role="rowgroup">
      <tr role="row">
        ${columns.map((column) => html`<th scope="col" role="columnheader">${column}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows}
    </tbody>
  </table>`;
}

/** A row. @param name content of its first cell, which names it */
export function dataRow(name: Html, cells: readonly Html[]): Html {
  return html`<tr role="row">
    <th scope="row" role="rowheader" class="wrap">${name}</th>
    ${cells}
  </tr>`;
}

/** A cell. @param label name of its column, for the card @param look classes */
export function dataCell(label: string, content: Html, look = ""): Html {
  return html`<td role="cell" data-label="${label}" class="${look}"><div>${content}</div></td>`;
}
