import assert from "node:assert/strict";
import type { Answer, Stand } from "./svc-git-stand.ts";

export const MAIN = "refs/heads/main";
/** Parts of a request that a test may set. */
interface Asked {
  readonly timeout?: number;
  readonly headers?: Record<string, string>;
}

/** Asks for objects of refs. */
export const ensure = (
  stand: Stand,
  repository: string,
  refs: Readonly<Record<string, unknown>>,
  { timeout, headers }: Asked = {},
): Promise<Answer> => {
  const wait = timeout === undefined ? {} : { timeout };
  return post(stand, repository, JSON.stringify({ refs, ...wait }), headers);
};

/** Sends a body as it is. */
export const post = (
  stand: Stand,
  repository: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  stand.ask(`/${repository}.git/svc/ensure`, {
    method: "POST",
    body,
    headers: { "Content-Type": "application/json", ...headers },
  });

export const parsed = (answer: Answer): Record<string, unknown> =>
  JSON.parse(answer.text) as Record<string, unknown>;

export function assertProblem(answer: Answer, status: number, code: string): void {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers["content-type"], "application/problem+json");
  const { detail, message } = parsed(answer);
  assert.equal(parsed(answer)["code"], code);
  assert.equal(message, detail);
}
