import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import type { Plugin } from "esbuild";
import { ROOT } from "./root.ts";

/**
 * Source of a module in place of `undici`. Its index loads all of it, and its cookies read the global `Headers`, which loads
 * Node's own copy besides. An export that is not here fails the build. A late import of the package still loads all of it.
 */
const SOURCE = `
import Dispatcher from "./lib/dispatcher/dispatcher.js";
import EnvHttpProxyAgent from "./lib/dispatcher/env-http-proxy-agent.js";
import Pool from "./lib/dispatcher/pool.js";
import ProxyAgent from "./lib/dispatcher/proxy-agent.js";
import api from "./lib/api/index.js";
import buildConnector from "./lib/core/connect.js";
import errors from "./lib/core/errors.js";
Object.assign(Dispatcher.prototype, api);
export { Dispatcher, EnvHttpProxyAgent, Pool, ProxyAgent, buildConnector, errors };
`;

const EAGER_HTTP2 = "const connectH2 = require('./client-h2.js')";

/** Bundles of the service hold the parts of undici that pools of connections need. */
export const UNDICI_PARTS: Plugin = {
  name: "undici-parts",
  setup: (bundle) => {
    // The bundle holds this path: it must not depend on the folder of the repository.
    bundle.onResolve({ filter: /^undici$/ }, ({ resolveDir, namespace }) =>
      namespace === "file"
        ? { path: relative(ROOT, resolveDir), namespace: "undici-parts", pluginData: resolveDir }
        : undefined,
    );
    // HTTP/2 is never offered to the code host.
    bundle.onLoad({ filter: /undici\/lib\/dispatcher\/client\.js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const contents = text.replace(
        EAGER_HTTP2,
        "const connectH2 = (...args) => require('./client-h2.js')(...args)",
      );
      if (contents === text) throw new Error(`${path} does not load client-h2.js as expected`);
      return { contents, loader: "js" };
    });
    bundle.onLoad({ filter: /./, namespace: "undici-parts" }, ({ pluginData }) => ({
      contents: SOURCE,
      loader: "js",
      resolveDir: dirname(createRequire(join(String(pluginData), "here.js")).resolve("undici")),
    }));
  },
};
