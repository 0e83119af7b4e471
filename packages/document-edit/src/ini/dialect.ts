import type { IniDialect } from "../contract.ts";

/** What differs between the flavours of ini. */
export interface IniRules {
  /** The characters that end a key. */
  readonly separators: string;
  /** What a new entry has between key and value where the file shows nothing else. */
  readonly separator: string;
  /** Keys (and section names) are the same in any letter case. */
  readonly foldsCase: boolean;
  /** Readers find a key in any letter case, but some do not: a new key keeps its case. */
  readonly matchesAnyCase: boolean;
  /** ` #` and ` ;` behind a value begin a comment for some readers. */
  readonly inlineComments: boolean;
  /** Lines that are indented deeper than their key go on with its value. */
  readonly continues: boolean;
  /** A key may stand without a separator and means true. */
  readonly bareKeys: boolean;
  readonly values: "raw" | "npm" | "git";
  readonly joinsSections: boolean;
  readonly spacesSections: boolean;
  /** The indentation of entries where the file shows nothing else. */
  readonly indent: string;
  isList(key: string): boolean;
}

const GENERIC: IniRules = {
  separators: "=:",
  separator: " = ",
  foldsCase: false,
  matchesAnyCase: true,
  inlineComments: true,
  continues: true,
  bareKeys: false,
  values: "raw",
  joinsSections: false,
  spacesSections: true,
  indent: "",
  isList: () => false,
};

/**
 * - generic, pip, aws: Python's configparser, which the last two use; where other readers of ini see a comment behind
 *   a value (aws: those of other SDKs), nothing is written that they would cut.
 * - npmrc: the `ini` package; keys like `//host/:_authToken`, `key[]` for lists.
 * - gitconfig: git-config(1), "Syntax".
 */
export const INI_RULES: Readonly<Record<IniDialect, IniRules>> = {
  generic: GENERIC,
  pip: { ...GENERIC, foldsCase: true, inlineComments: false },
  aws: { ...GENERIC, foldsCase: true },
  npmrc: {
    ...GENERIC,
    separators: "=",
    separator: "=",
    matchesAnyCase: false,
    continues: false,
    bareKeys: true,
    values: "npm",
    isList: (key) => key.endsWith("[]"),
  },
  gitconfig: {
    ...GENERIC,
    separators: "=",
    foldsCase: true,
    matchesAnyCase: false,
    continues: false,
    bareKeys: true,
    values: "git",
    joinsSections: true,
    spacesSections: false,
    indent: "\t",
    isList: () => true,
  },
};

/** The dialect of a file by its path; `generic` where nothing tells. */
export function iniDialectOf(path: string): IniDialect {
  const [name = "", folder = ""] = path.split(/[/\\]/).toReversed();
  if (name === ".npmrc" || name === "npmrc") return "npmrc";
  if (/^\.?gitconfig$/.test(name) || (name === "config" && /^\.?git$/.test(folder))) return "gitconfig";
  if (name === "pip.conf" || name === "pip.ini" || name === ".pypirc") return "pip";
  if (folder === ".aws" && (name === "credentials" || name === "config")) return "aws";
  return "generic";
}
