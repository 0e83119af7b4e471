import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { PLATFORMS, type Platform } from "../build/single/platforms.ts";
import { PROGRAMS, type ProgramName } from "../build/single/program.ts";
import { FORMATS, type Format } from "./packages.ts";

export const HELP = `Usage: npm run release -- --out DIR [options]

Makes a release of both programs: archives with single executables, Linux packages, lists of components, provenance, SHA256SUMS,
its signature, and manifests of package managers. The npm packages of the git engine are part of it, with versions of their own. Equal commits and options give equal bytes.

  --out DIR             folder of the release; has to be empty or absent
  --version V           version, as 1.2.3 or 1.2.3-rc.1 (default: the one of apps/svc/package.json)
  --key FILE            private key of OpenSSH (ssh-keygen -t ed25519) that signs SHA256SUMS. With a key in the SSH agent: its public key
  --pgp-key FILE        secret PGP key for signatures in deb and rpm packages; NFPM_PASSPHRASE has its passphrase
  --url URL             address of the folder that the files will be uploaded to: makes the manifests for Homebrew, Scoop and winget
  --publisher NAME      publisher in winget's manifest (default: Devplat)
  --maintainer TEXT     "Name <address>" in the packages (default: the author of the commit)
  --programs LIST       by comma (default: ${PROGRAMS.join(",")})
  --platforms LIST      by comma (default: ${PLATFORMS.map(({ name }) => name).join(",")})
  --formats LIST        of Linux packages, by comma, or none (default: ${FORMATS.join(",")})
  --allow-changes       release files that differ from the commit; the provenance says so
  --help                show this

It needs git, npm, tar and the network for Node of other platforms; Go 1.25 for packages; ssh-keygen for --key.`;

/** Numbers without leading zeros, and a part before the release: what every package manager takes. */
const VERSION = /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-(?:rc|beta|alpha)\.\d+)?$/;

export interface ReleaseOptions {
  readonly out: string;
  readonly version: string | undefined;
  readonly key: string | undefined;
  readonly pgpKey: string | undefined;
  readonly url: string | undefined;
  readonly publisher: string;
  readonly maintainer: string | undefined;
  readonly programs: readonly ProgramName[];
  readonly platforms: readonly Platform[];
  readonly formats: readonly Format[];
  readonly allowChanges: boolean;
}

/** Reads the command line. @returns undefined if help was asked for */
export function readOptions(args: readonly string[]): ReleaseOptions | undefined {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      out: text,
      version: text,
      key: text,
      "pgp-key": text,
      url: text,
      publisher: { ...text, default: "Devplat" },
      maintainer: text,
      programs: text,
      platforms: text,
      formats: text,
      "allow-changes": flag,
      help: { ...flag, short: "h" },
    },
  });
  if (values.help) return undefined;
  const { out, version, key, url, publisher, maintainer } = values;
  if (out === undefined) throw new Error("Cannot make a release: name its folder by --out DIR");
  if (version !== undefined && !VERSION.test(version)) {
    throw new Error(`Cannot release the version "${version}": write it as 1.2.3 or 1.2.3-rc.1`);
  }
  if (url !== undefined && !URL.canParse(url))
    throw new Error(`Cannot use --url "${url}": it is not an address`);
  if (!/^[A-Za-z][A-Za-z0-9]*$/.test(publisher)) {
    throw new Error(`Cannot use --publisher "${publisher}": letters and digits only`);
  }
  const platforms = listed(values.platforms, "--platforms", PLATFORMS, ({ name }) => name);
  return {
    out: resolve(out),
    version,
    key: key === undefined ? undefined : resolve(key),
    pgpKey: values["pgp-key"] === undefined ? undefined : resolve(values["pgp-key"]),
    url,
    publisher,
    maintainer,
    programs: listed(values.programs, "--programs", PROGRAMS, (name) => name),
    platforms,
    formats: values.formats === "none" ? [] : listed(values.formats, "--formats", FORMATS, (name) => name),
    allowChanges: values["allow-changes"],
  };
}

/** Entries of a table that a list by comma names. Default: all. */
function listed<Entry>(
  list: string | undefined,
  option: string,
  known: readonly Entry[],
  nameOf: (entry: Entry) => string,
): readonly Entry[] {
  if (list === undefined) return known;
  return list.split(",").map((word) => {
    const found = known.find((entry) => nameOf(entry) === word);
    if (found === undefined) {
      throw new Error(`Cannot use "${word}" in ${option}: it takes ${known.map(nameOf).join(", ")}`);
    }
    return found;
  });
}
