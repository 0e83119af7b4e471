import type { Secret } from "@devplat/base";
import type { SshAgentStatus } from "../../ssh-agent-view.ts";
import type { UserQuestions } from "./identity.ts";

/** The questions to the user that wait for an answer. */
export interface QuestionBoard extends UserQuestions {
  open(): SshAgentStatus["questions"];
  /** @returns false if nobody waits for the answer any more */
  answer(id: string, answer: { readonly confirmed: boolean } | { readonly passphrase: Secret }): boolean;
  /** Calls back after a question was asked or answered until the signal fires. */
  onChange(listener: () => void, signal: AbortSignal): void;
}
