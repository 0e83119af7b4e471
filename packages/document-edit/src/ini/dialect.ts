import type { IniDialect } from "../contract.ts";

/** Rules of an ini dialect. */
export interface IniRules {
  /** Characters that end a key. */
  readonly separators: string;
  /** Separator of a new entry, if the file has no entry as a model. */
  readonly separator: string;
  /** Whether case is ignored in keys and section names. */
  readonly foldsCase: boolean;
  /** Whether some parsers ignore the case of keys and others do not. A new key then keeps its case. */
  readonly matchesAnyCase: boolean;
  /** Whether ` #` and ` ;` after a value begin a comment for some parsers. */
  readonly inlineComments: boolean;
  /** Whether lines that are indented deeper than the key continue the value. */
  readonly continues: boolean;
  /** Whether a key without a separator is allowed. It means true. */
  readonly bareKeys: boolean;
  readonly values: "raw" | "npm" | "git";
  readonly joinsSections: boolean;
  readonly spacesSections: boolean;
  /** Indentation of entries, if the file has no entry as a model. */
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
 * - generic, pip, aws: Python's configparser, which pip and aws use. Other parsers of ini read comments after a value
 *   (for aws: parsers of other SDKs). A value that they would cut is not written.
 * - npmrc: the `ini` package, with keys like `//host/:_authToken`, and `key[]` for lists.
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

/** Dialect of a file by its path. Default `generic`. */
export function iniDialectOf(path: string): IniDialect {
  const [name = "", folder = ""] = path.split(/[/\\]/).toReversed();
  if (name === ".npmrc" || name === "npmrc") return "npmrc";
  if (/^\.?gitconfig$/.test(name) || (name === "config" && /^\.?git$/.test(folder))) return "gitconfig";
  if (name === "pip.conf" || name === "pip.ini" || name === ".pypirc") return "pip";
  if (folder === ".aws" && (name === "credentials" || name === "config")) return "aws";
  return "generic";
}
