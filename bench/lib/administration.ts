/** The administration API as an operator uses it, in development mode. */
export class Administration {
  readonly #url: string;
  readonly #token: string;

  private constructor(url: string, token: string) {
    this.#url = url;
    this.#token = token;
  }

  static async signIn(url: string): Promise<Administration> {
    const answer = await fetch(`${url}/auth/test-login`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ username: "bench", role: "admin" }),
    });
    const { session_token: token } = (await answer.json()) as { session_token: string };
    return new Administration(url, token);
  }

  /** Lists a repository; gives its id. */
  async list(owner: string, name: string): Promise<string> {
    const answer = await this.#call("POST", "/api/cached-repos", { owner, name });
    return ((await answer.json()) as { id: string }).id;
  }

  /** Drops the repository's cached data and waits until it is removed. */
  async purge(id: string): Promise<void> {
    await this.#call("POST", `/api/cached-repos/${id}/purge`);
    for (;;) {
      const answer = await this.#call("GET", `/api/cached-repos/${id}`);
      const { stats } = (await answer.json()) as { stats: { size_bytes: number } };
      if (stats.size_bytes === 0) return;
      await new Promise((wait) => setTimeout(wait, 20));
    }
  }

  /** Packs of the repository that the service has open. */
  async packs(id: string): Promise<number> {
    const answer = await this.#call("GET", `/api/cached-repos/${id}`);
    return ((await answer.json()) as { stats: { packs: number } }).stats.packs;
  }

  async #call(method: string, path: string, body?: unknown): Promise<Response> {
    const answer = await fetch(this.#url + path, {
      method,
      headers: { Authorization: `Bearer ${this.#token}`, "Content-Type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${await answer.text()}`);
    return answer;
  }
}
