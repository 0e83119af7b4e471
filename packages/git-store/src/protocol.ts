/** Git's wire protocol under a name of this package, so that a program needs one package only. */
export * from "@devplat/git-protocol";
export * from "@devplat/git-protocol/object-info";
export * from "@devplat/git-protocol/receive-pack";
