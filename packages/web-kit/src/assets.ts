import { createHash } from "node:crypto";
import { assetContent } from "@devplat/base/asset-content";

export interface Asset {
  /** Path with a digest of the content, so that caches may keep it for ever: `/static/app.1a2b3c4d.css`. */
  readonly path: string;
  readonly type: string;
  readonly body: Buffer;
}

const TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};

/** Files served under `/static/`, read once. */
export class Assets {
  readonly #byPath = new Map<string, Asset>();
  readonly #byName = new Map<string, Asset>();

  /** Adds a file under a name with the extension css, js or svg. */
  add(name: string, file: URL): Asset {
    const dot = name.lastIndexOf(".");
    const type = TYPES[name.slice(dot + 1)];
    if (type === undefined)
      throw new TypeError(`Cannot serve "${name}": its extension is not css, js or svg`);
    const body = assetContent(file);
    const digest = createHash("sha256").update(body).digest("hex").slice(0, 8);
    const path = `/static/${name.slice(0, dot)}.${digest}${name.slice(dot)}`;
    const asset = { path, type, body };
    this.#byPath.set(path, asset);
    this.#byName.set(name, asset);
    return asset;
  }

  /** Path of a file for a page. */
  path(name: string): string {
    const asset = this.#byName.get(name);
    if (asset === undefined) throw new RangeError(`There is no asset "${name}"`);
    return asset.path;
  }

  find(path: string): Asset | undefined {
    return this.#byPath.get(path);
  }
}

/** Adds htmx, its SSE extension and the common style sheet. */
export function addCommonAssets(assets: Assets): void {
  assets.add("kit.css", new URL("kit.css", import.meta.url));
  assets.add("htmx.js", new URL(import.meta.resolve("htmx.org/dist/htmx.min.js")));
  assets.add("hx-sse.js", new URL(import.meta.resolve("htmx.org/dist/ext/hx-sse.min.js")));
}
