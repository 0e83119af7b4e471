import { ACTION_KINDS, type ActionKind } from "./action-kinds.ts";

/** The offers of a peer socket: the store token, and the peer actions. */
export const PEER_OFFERS = ["token", ...ACTION_KINDS] as const;
export type PeerOffer = "token" | ActionKind;
