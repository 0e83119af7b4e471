import { html, raw, type Html } from "@devplat/web-kit";
import { lastName } from "../../../../secrets/url-path.ts";
import { SECRETS_PREFIX, secretUrl } from "./links.ts";

/** A secret, or a folder with what is in it; a folder not yet listed has no `children`. */
export interface TreeNode {
  readonly path: string;
  readonly children?: Branch;
}

/** Entries of a folder. */
export interface Branch {
  readonly nodes: readonly TreeNode[];
  /** Why it could not be listed, if it could not. */
  readonly fault?: string;
}

export interface SidebarModel {
  /** The root's entries; undefined if they cannot be listed. */
  readonly tree: Branch | undefined;
  /** Editable subtrees, whether they exist or not. */
  readonly editable: readonly string[];
  /** The path that is shown. */
  readonly current: string;
  readonly query?: string;
}

/** Sidebar of every page of secrets: search, editable subtrees, and the tree of names. */
export function sidebar({ tree, editable, current, query = "" }: SidebarModel): Html {
  return html`<aside class="sidebar" aria-label="Secrets">
    <form class="search" method="get" action="${SECRETS_PREFIX}" role="search">
      <input
        type="search"
        name="q"
        value="${query}"
        aria-label="Search names"
        placeholder="Search names"
        autocomplete="off"
      />
      <button type="submit">Search</button>
    </form>
    ${
      editable.length === 0
        ? ""
        : html`<nav aria-labelledby="editable-heading">
            <h2 id="editable-heading">Editable</h2>
            <ul class="tree">
              ${editable.map((path) => html`<li>${link(path, path, current)}</li>`)}
            </ul>
          </nav>`
    }
    <nav aria-labelledby="tree-heading">
      <h2 id="tree-heading">All secrets</h2>
      ${
        tree === undefined
          ? html`<p class="error">The secrets cannot be listed.</p>`
          : html`<ul class="tree">
              ${treeItems(tree, current)}
            </ul>`
      }
    </nav>
  </aside>`;
}

/** The entries of one folder, for the tree. */
export function treeItems({ nodes, fault }: Branch, current: string): Html {
  if (fault !== undefined) return html`<li class="error small">${fault}</li>`;
  if (nodes.length === 0) return html`<li class="empty small">Nothing here.</li>`;
  return html`${nodes.map((node) => html`<li>${treeItem(node, current)}</li>`)}`;
}

function treeItem({ path, children }: TreeNode, current: string): Html {
  const name = lastName(path);
  if (!path.endsWith("/")) return link(path, name, current);
  if (children !== undefined) {
    return html`<details open>
      <summary>${name}</summary>
      <ul>
        ${treeItems(children, current)}
      </ul>
    </details>`;
  }
  // Until it is opened it holds a link to the folder's own page, for browsers without scripts.
  return html`<details hx-get="${secretUrl(path)}?part=tree" hx-trigger="toggle once" hx-target="find ul">
    <summary>${name}</summary>
    <ul>
      <li>${link(path, `Open ${name}`, current)}</li>
    </ul>
  </details>`;
}

function link(path: string, text: string, current: string): Html {
  const here = path === current ? raw('aria-current="page"') : "";
  return html`<a href="${secretUrl(path)}" ${here}>${text}</a>`;
}
