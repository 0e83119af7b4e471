/** The actions that a peer does on the desktop in front of its user. */
export const ACTION_KINDS = ["browse", "notify", "clipboard"] as const;
export type ActionKind = (typeof ACTION_KINDS)[number];
