import { git, History } from "@devplat/testkit";

/** Bytes of the file that each push changes. They are random digits, which do not compress to less than half. */
const PUSH_BYTES = 100_000;

/** A repository at the code host that gets pushes. */
export class PushedRepository {
  readonly #path: string;
  readonly #branch: string;
  readonly #random: () => number;
  /** Commits of the default branch, the newest last. */
  readonly #commits: string[];
  #pushes = 0;

  private constructor(path: string, branch: string, commits: string[], random: () => number) {
    this.#path = path;
    this.#branch = branch;
    this.#commits = commits;
    this.#random = random;
  }

  /** @param path of the bare repository @param random numbers for the content */
  static async open(path: string, random: () => number): Promise<PushedRepository> {
    const branch = (await git(["-C", path, "symbolic-ref", "HEAD"])).trim();
    const log = await git(["-C", path, "rev-list", "--first-parent", "--max-count=20", branch]);
    return new PushedRepository(path, branch, log.trim().split("\n").toReversed(), random);
  }

  /** Commit that many pushes before the newest one. */
  before(pushes: number): string {
    return this.#commits[Math.max(0, this.#commits.length - 1 - pushes)]!;
  }

  /** Adds a commit that changes one file. */
  async push(): Promise<void> {
    const line = (): string => `${this.#random().toString(36).slice(2)}\n`;
    let content = "";
    while (content.length < PUSH_BYTES) content += line();
    const history = new History(Math.floor(Date.now() / 1000));
    history.commit({
      ref: this.#branch,
      message: `push ${++this.#pushes}`,
      parents: [`${this.#branch}^0`],
      files: { "bench.txt": content },
    });
    await history.import(this.#path);
    this.#commits.push((await git(["-C", this.#path, "rev-parse", this.#branch])).trim());
  }
}
