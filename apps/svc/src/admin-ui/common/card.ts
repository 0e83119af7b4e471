import { html, type Html } from "@devplat/web-kit";

export interface ListCardOptions {
  /** Unique in the page. */
  readonly id: string;
  readonly title: string;
  /** At the end of the line of the title. */
  readonly aside?: Html | string;
  readonly content: Html | string;
}

/** A card with a title, whose content reaches its edges. */
export function listCard({ id, title, aside = "", content }: ListCardOptions): Html {
  return html`<section class="card flush" aria-labelledby="${id}">
    <div class="card-head">
      <h2 id="${id}">${title}</h2>
      ${aside}
    </div>
    ${content}
  </section>`;
}

/** Facts with their names. Undefined: the fact is not shown. */
export function factList(facts: readonly (readonly [name: string, fact: Html | string] | undefined)[]): Html {
  return html`<dl class="facts">
    ${facts.map((each) =>
      each === undefined
        ? ""
        : html`<div>
            <dt>${each[0]}</dt>
            <dd>${each[1]}</dd>
          </div>`,
    )}
  </dl>`;
}
