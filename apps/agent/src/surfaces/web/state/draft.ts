export const DRAFT_ACTIONS = ["save", "add", "remove", "new"] as const;

/** Text that was typed into a form whose action has failed. The response returns it, and nothing else keeps it. */
export interface Draft {
  readonly action: (typeof DRAFT_ACTIONS)[number];
  /** The secret, or for `new` the folder, that the form belongs to. */
  readonly path: string;
  /** Values of the form; empty where it has none. */
  readonly version: string;
  readonly field: string;
  readonly name: string;
  readonly text: string;
  /** It held a NUL character, which the page shows as U+FFFD. */
  readonly damaged: boolean;
}
