import type { Machine } from "../machine/machine.ts";

export const ADDRESS = "http://127.0.0.1:8080";
/** Cookies of the browser. */
const COOKIES = "/srv/cookies";

/** A person with a browser and git, in the machine. The browser is curl with its cookies. */
export class SvcClient {
  readonly #machine: Machine;

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  /** Signs in with the account of the code host, which asks nothing. */
  async signIn(): Promise<void> {
    await this.#machine.sh(`curl -sSf -L -c ${COOKIES} -b ${COOKIES} -o /dev/null ${ADDRESS}/auth/login`);
  }

  /** Calls the API with the session of the browser. @returns the JSON body */
  async call(method: string, path: string, body?: object): Promise<unknown> {
    const args = ["curl", "-sS", "--fail-with-body", "-b", COOKIES, "-X", method, "-H", `Origin: ${ADDRESS}`];
    const sent = body === undefined ? [] : ["--json", JSON.stringify(body)];
    const text = await this.#machine.must([...args, ...sent, ADDRESS + path]);
    return text === "" ? undefined : (JSON.parse(text) as unknown);
  }

  /** Makes a token that can read a repository. */
  async createToken(repository: string): Promise<string> {
    const made = await this.call("POST", "/api/tokens", {
      repository,
      scopes: "contents:read",
      duration: "7d",
    });
    return (made as { token: string }).token;
  }

  /** Clones with stock git. @returns the number of commits */
  async clone(repository: string, token?: string): Promise<string> {
    const base = token === undefined ? ADDRESS : ADDRESS.replace("://", `://x:${token}@`);
    return this.#machine.sh(
      `rm -rf /tmp/clone; git clone -q "${base}/${repository}" /tmp/clone; git -C /tmp/clone rev-list --count HEAD`,
    );
  }
}
