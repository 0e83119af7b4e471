import type { Plugin } from "esbuild";

/** Programs read their version from their package.json. A bundle holds the version of the release there, and nothing else. */
export function releaseVersion(version: string): Plugin {
  return {
    name: "release-version",
    setup: (bundle) => {
      bundle.onLoad({ filter: /apps\/\w+\/package\.json$/ }, () => ({
        contents: JSON.stringify({ version }),
        loader: "json",
      }));
    },
  };
}
