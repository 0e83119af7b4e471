import { git, run } from "../process.ts";
import { TestkitError } from "../errors.ts";
import { gitEnvironment } from "../git-environment.ts";

/** The first commit's time; every commit and tag is a minute later than the one before. */
const FIRST_SECOND = 1_700_000_000;
const PERSON = "Ada Tester <ada@example.test>";

export type ObjectFormat = "sha1" | "sha256";

/** A commit of the script: its mark in the stream, to name as a parent. */
export interface Mark {
  readonly mark: number;
}

/** A file's content, or the commit that a submodule's link names; null removes the path. */
export type Entry = string | Uint8Array | { readonly submodule: string } | null;

export interface CommitPlan {
  /** Full name of the ref that moves to the new commit. */
  readonly ref: string;
  readonly message?: string;
  /** Path → content. */
  readonly files?: Readonly<Record<string, Entry>>;
  /** Parents, first one first. Default: the last commit of this script on `ref`; none: a root commit. */
  readonly parents?: readonly (Mark | string)[];
}

/**
 * Builds history as one `git fast-import` stream (git-fast-import(1)): thousands of commits take one process, and
 * equal scripts give equal object ids.
 */
export class History {
  readonly #parts: Uint8Array[] = [];
  #marks = 0;
  #second: number;

  constructor(startSecond: number = FIRST_SECOND) {
    this.#second = startSecond;
  }

  commit(plan: CommitPlan): Mark {
    const mark = ++this.#marks;
    this.#line(`commit ${plan.ref}`);
    this.#line(`mark :${mark}`);
    this.#line(`committer ${PERSON} ${this.#time()}`);
    this.#data(plan.message ?? `Change ${mark}\n`);
    for (const [at, parent] of (plan.parents ?? []).entries()) {
      const name = typeof parent === "string" ? parent : `:${parent.mark}`;
      this.#line(`${at === 0 ? "from" : "merge"} ${name}`);
    }
    for (const [path, entry] of Object.entries(plan.files ?? {})) this.#entry(path, entry);
    this.#line("");
    return { mark };
  }

  /** An annotated tag, by its short name. */
  tag(name: string, target: Mark, message: string = `Tag ${name}\n`): void {
    this.#line(`tag ${name}`);
    this.#line(`from :${target.mark}`);
    this.#line(`tagger ${PERSON} ${this.#time()}`);
    this.#data(message);
  }

  /** A ref (or lightweight tag) by its full name. */
  ref(name: string, target: Mark): void {
    this.#line(`reset ${name}`);
    this.#line(`from :${target.mark}`);
    this.#line("");
  }

  /** Runs the script in a bare repository. */
  async import(dir: string): Promise<void> {
    const input = Buffer.concat([...this.#parts, Buffer.from("done\n")]);
    const result = await run("git", ["-C", dir, "fast-import", "--quiet", "--done"], {
      input,
      env: gitEnvironment(),
    });
    if (result.code !== 0) {
      throw new TestkitError("command_failed", `git fast-import ended with ${result.code}: ${result.stderr}`);
    }
  }

  #entry(path: string, entry: Entry): void {
    if (entry === null) {
      this.#line(`D ${path}`);
    } else if (typeof entry === "object" && "submodule" in entry) {
      this.#line(`M 160000 ${entry.submodule} ${path}`);
    } else {
      this.#line(`M 100644 inline ${path}`);
      this.#data(entry);
    }
  }

  #time(): string {
    this.#second += 60;
    return `${this.#second} +0000`;
  }

  #line(text: string): void {
    this.#parts.push(Buffer.from(`${text}\n`));
  }

  #data(content: string | Uint8Array): void {
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    this.#line(`data ${bytes.length}`);
    this.#parts.push(bytes, Buffer.from("\n"));
  }
}

/** Makes an empty bare repository whose HEAD names `main`. */
export async function initialise(dir: string, objectFormat: ObjectFormat = "sha1"): Promise<void> {
  await git([
    "init",
    "--quiet",
    "--bare",
    "--initial-branch=main",
    `--object-format=${objectFormat}`,
    "--template=",
    dir,
  ]);
}

/** Brings a repository into the shape of a well-kept server's: one pack with a bitmap, files for dumb HTTP. */
export async function finish(dir: string): Promise<void> {
  await git(["-C", dir, "pack-refs", "--all"]);
  // Writes the files for dumb HTTP as well.
  await git(["-C", dir, "repack", "-a", "-d", "-b", "-q"]);
}
