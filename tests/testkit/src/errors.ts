import { AppError, type AppErrorOptions } from "@devplat/base";

/**
 * - `peer_missing`: a program that the tests need is not installed; the hint names the command that installs it.
 * - `peer_failed`: a peer did not start, or ended on its own.
 * - `command_failed`: a command that had to succeed did not.
 * - `bad_setting`: an environment variable of the tests holds no usable value.
 */
export type TestkitErrorCode = "peer_missing" | "peer_failed" | "command_failed" | "bad_setting";

export class TestkitError extends AppError<TestkitErrorCode> {
  static missing(program: string): TestkitError {
    return new TestkitError("peer_missing", `${program} is not installed`, {
      hint: "run `npm run setup:peers`",
    });
  }

  static failed(peer: string, found: string, options: AppErrorOptions = {}): TestkitError {
    return new TestkitError("peer_failed", `${peer} did not run: ${found}`, options);
  }
}
